// Package guest is what a virtual node's disk holds beside the built programs: init scripts and configuration files.
package guest

import "embed"

// InitramfsInit is PID 1 until the root disk is mounted.
//
//go:embed initramfs-init
var InitramfsInit []byte

// Root is copied to the root disk, scripts executable.
//
//go:embed all:root
var Root embed.FS
