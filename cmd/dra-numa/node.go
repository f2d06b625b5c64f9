package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// node is the machine, and the configuration of the driver for it.
type node struct {
	machine    numa.Machine
	config     driver.Config
	modeReason string // why config.Exclusivity is what it is
	signature  string // of the machine; empty if it cannot be read
}

func readNode(o options) (n node, err error) {
	root := o.machine()
	n.signature, _ = numa.Signature(root, !o.attached.IsEmpty()) // before Read, so that a change during Read is noticed later
	if n.machine, err = numa.Read(root); err != nil {
		return node{}, fmt.Errorf("read machine: %w", err)
	}
	bootID, err := readBootID(os.DirFS(o.machineRoot))
	if err != nil {
		return node{}, err
	}
	n.config = driver.Config{
		NodeName:      o.nodeName,
		BootID:        bootID,
		ExcludedZones: o.exclude.ZoneNames(),
		ZoneBy:        o.zoneBy,
		ZoneOrder:     o.zoneOrder,
		Groups:        o.groups,
		CPUDrivers:    o.cpuDrivers,
		MemoryDrivers: o.memoryDrivers,
		NUMANodeKeys:  o.numaNodeKeys,
		Hook:          o.specHook(),
		MadeUp:        o.madeUp != "",
		Attached:      o.attached,
		Machine:       root,
		StaticSpecs:   os.DirFS(o.staticCDIDir),
		Hugepages: func(nodes cpuset.Set, pods map[string][]string) (driver.Hugepages, error) {
			return o.hugepages(root, nodes, pods)
		},
		Containers: o.containers,
		Held:       o.heldOf,
	}
	if o.cachePools != nil {
		n.config.Caches = cachesOf(o)
	}
	n.config.Tuning = tuningOf(o)
	if err := n.reserve(o); err != nil {
		return node{}, &cli.UsageError{Err: err}
	}
	if cmp.Or(o.bindDrivers, deviceclasses.BindNone) != deviceclasses.BindNone {
		n.config.Drivers, n.config.ClaimsBind = binding.On(o.bindRoot, o.hostProc), o.bindDrivers == deviceclasses.BindClaim
	}
	return n, nil
}

// openDriver loads the checkpoint. It creates missing directories and writes nothing
// else.
func openDriver(o options, n node) (*driver.Driver, error) {
	state, err := openDir(o.pluginDir(), 0o750)
	if err != nil {
		return nil, err
	}
	specs, err := openDir(o.cdiDir, 0o755)
	if err != nil {
		return nil, err
	}
	return driver.Open(n.machine, n.config, state, specs)
}

func openDir(path string, mode os.FileMode) (*os.Root, error) {
	if err := os.MkdirAll(path, mode); err != nil {
		return nil, err
	}
	return os.OpenRoot(path)
}

func readBootID(root fs.FS) (string, error) {
	text, err := fs.ReadFile(root, numa.BootIDFile)
	return strings.TrimSpace(string(text)), err
}

// reserve sets what no claim gets: CPUs, memory and hugepages.
func (n *node) reserve(o options) error {
	var kubelet []byte
	var err error
	if o.kubeletConfig != "" && o.madeUp == "" { // it is about the real machine
		if kubelet, err = os.ReadFile(o.kubeletConfig); err != nil {
			return err
		}
	}
	if n.config.Reserved, err = driver.Reserved(n.machine, o.reservedCPUs, kubelet); err != nil && o.reservedCPUs != "" {
		return fmt.Errorf("%s: %w", o.reservedIn, err)
	} else if err != nil {
		return err
	}
	hugepages, err := driver.ReservedHugepages(n.machine, o.reservedHugepages)
	if err != nil {
		return fmt.Errorf("%s%w", o.fieldOf("reservedHugepages"), err)
	}
	memory, err := driver.ReservedNodeMemory(n.machine, o.reservedNodeMemory)
	if err != nil {
		return fmt.Errorf("%s%w", o.fieldOf("reservedNodeMemory"), err)
	}
	excluded, err := driver.ExcludedMemory(n.machine, o.exclude)
	if err != nil {
		return fmt.Errorf("%s.%w", o.fieldOf("exclude"), err)
	}
	n.config.ReservedMemory, err = driver.ReservedMemory(n.machine, o.reservedQuantity, hugepages, kubelet)
	n.config.ReservedMemory = slices.Concat(n.config.ReservedMemory, memory, excluded)
	return err
}
