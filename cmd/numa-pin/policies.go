package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
)

// copied are the files in the kubelet's root directory that a copier reads.
var copied = [...]string{keeperfile.CPUManagerFile, keeperfile.MemoryManagerFile}

// copier tells the daemon which policies the kubelet's managers have. It reads the
// kubelet's files only if they have changed.
type copier struct {
	kubelet, to *os.Root
	boot        string
	copied      [len(copied)]fs.FileInfo // as they were last read; nil: missing
	written     fs.FileInfo              // the daemon's file, as it was written; nil: it was not
}

// newCopier takes the kubelet's root directory and the driver's.
func newCopier(kubelet, to, boot string) (c *copier, err error) {
	c = &copier{boot: boot}
	if c.kubelet, err = os.OpenRoot(kubelet); err != nil {
		return nil, err
	}
	if c.to, err = os.OpenRoot(to); err != nil {
		c.kubelet.Close()
		return nil, err
	}
	return c, nil
}

func (c *copier) close() {
	c.kubelet.Close()
	c.to.Close()
}

// copy writes the policies if they have changed, or if another program has changed the
// daemon's file. It can be called again after an error.
func (c *copier) copy() error {
	var now [len(copied)]fs.FileInfo
	for i, name := range copied {
		now[i] = lstat(c.kubelet, name) // before the read, so that a change during it is noticed
	}
	if c.written != nil && same(c.written, lstat(c.to, keeperfile.PoliciesName)) && same(c.copied[0], now[0]) && same(c.copied[1], now[1]) {
		return nil
	}
	text := keeperfile.ReadPolicies(c.kubelet.FS(), c.boot).Encode()
	if current, err := c.to.ReadFile(keeperfile.PoliciesName); err != nil || !bytes.Equal(current, text) {
		if err := pin.Replace(c.to, keeperfile.PoliciesName, text); err != nil {
			return fmt.Errorf("write policies of the kubelet's managers: %w", err)
		}
	}
	c.copied, c.written = now, lstat(c.to, keeperfile.PoliciesName)
	return nil
}

// lstat returns nil if the file cannot be read.
func lstat(dir *os.Root, name string) fs.FileInfo {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil
	}
	return info
}

// same reports whether a file has not been replaced or written to.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
