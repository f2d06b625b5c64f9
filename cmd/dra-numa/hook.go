package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
)

// hookName is the file name of the hook on the host.
const hookName = "numa-pin"

// hook says where the container runtime finds the hook, and where the hook has its files.
// The program has a folder of its own, in which only the probe writes.
func (o *options) hook() cdi.Hook {
	return cdi.Hook{Path: filepath.Join(cmp.Or(o.hookDir, o.pluginDir()+"-hook"), hookName), Dir: o.pluginDir()}
}

// installHook copies the hook to the host. Containers may be starting, so it replaces
// the old file atomically, and only if it differs.
func installHook(source, path string) error {
	binary, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	dir, err := openDir(filepath.Dir(path), 0o755)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(path)
	info, err := dir.Stat(name)
	if err == nil && info.Mode().Perm() == 0o755 {
		installed, err := dir.ReadFile(name)
		if err == nil && bytes.Equal(installed, binary) {
			return nil
		}
	}
	return durable.Replace(dir, name, binary, 0o755)
}

// checkHook returns an error if the container runtime could not run the hook. Another
// version of it is no error: while two versions of the driver take turns on a node, either
// may have installed its own.
func checkHook(path string) error {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0) {
		err = fmt.Errorf("%s has the mode %s, want an executable file", path, info.Mode())
	}
	if err != nil {
		return fmt.Errorf("find pin hook: %w: run dra-numa probe, which installs it", err)
	}
	// access(2): a file that has the mode for it, on a file system that is mounted noexec.
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("no program runs from the folder of the pin hook, %s, because it is mounted noexec: set --hook-dir (hook.dir of the chart) to another one: %w", filepath.Dir(path), err)
	}
	return nil
}
