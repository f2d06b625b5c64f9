// Package demo holds the manifests that the documentation, the end-to-end tests
// and users share. They name no namespace. Their image is a public one, which the test rig
// has under the same name.
package demo

import "embed"

// Image is the image of all manifests. It has commands of busybox, and stands for a user's own.
const Image = "docker.io/library/busybox:1.37"

// Manifests holds the *.yaml files of this folder.
//
//go:embed *.yaml
var Manifests embed.FS

// Devices holds those of the folder devices, which need attached devices.
//
//go:embed devices/*.yaml
var Devices embed.FS

// Containers holds those of the folder containers, in which several containers of a pod
// use one claim.
//
//go:embed containers/*.yaml
var Containers embed.FS

// Caches holds those of the folder cache, which need a node that divides its caches.
//
//go:embed cache/*.yaml
var Caches embed.FS
