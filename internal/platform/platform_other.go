//go:build !linux

package platform

import (
	"io/fs"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Read returns nil: elsewhere, ghw would describe the computer that this program runs on.
func Read(fs.FS) (*numa.Platform, error) { return nil, nil }
