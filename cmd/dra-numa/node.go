package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// hookName is the hook below the plugin directory, which the host sees too.
const hookName = "bin/numa-pin"

// installHook copies the hook to the host. Containers may be starting: the old
// file is replaced whole, and only if it differs.
func installHook(source string, state *os.Root) error {
	binary, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	if err := state.MkdirAll(path.Dir(hookName), 0o755); err != nil {
		return err
	}
	info, err := state.Stat(hookName)
	if err == nil && info.Mode().Perm() == 0o755 {
		installed, err := state.ReadFile(hookName)
		if err == nil && bytes.Equal(installed, binary) {
			return nil
		}
	}
	return cdi.ReplaceFile(state, hookName, binary, 0o755)
}

func readBootID(root fs.FS) (string, error) {
	text, err := fs.ReadFile(root, "proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

func readReserved(o options, machine numa.Machine) (cpuset.Set, error) {
	var kubelet []byte
	if o.kubeletConfig != "" {
		var err error
		if kubelet, err = os.ReadFile(o.kubeletConfig); err != nil {
			return cpuset.Set{}, err
		}
	}
	reserved, err := driver.Reserved(machine, o.reservedCPUs, kubelet)
	if err != nil && o.reservedCPUs != "" {
		return cpuset.Set{}, fmt.Errorf("--reserved-cpus: %w", err)
	}
	return reserved, err
}
