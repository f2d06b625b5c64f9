package cdi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Written is the content of a spec file of this driver, read back from disk.
type Written struct {
	ClaimUID string          `json:"claimUID"` // from the name of the file
	File     string          `json:"file"`     // in the folder of the specs
	CPUs     cpuset.Set      `json:"cpus"`     // of the environments: those to run on and those to be idle
	Devices  []WrittenDevice `json:"devices"`  // in the order of the file

	// Problem says why the file is not a spec of this driver; empty if it is one.
	// With a problem, there are neither CPUs nor Devices.
	Problem string `json:"problem,omitempty"`
}

// WrittenDevice is one share in a spec file. For CPUs and memory, it has the arguments of
// the hook. No hook pins for a PCI function, which has device nodes, nor for a share of a
// zone that leaves CPUs and memory as they are, nor for a share of a cache.
type WrittenDevice struct {
	ID        string     `json:"id"`            // as DeviceID returns it
	CPUs      cpuset.Set `json:"cpus"`          // empty: the hook leaves the CPUs alone
	Idle      cpuset.Set `json:"idle,omitzero"` // the part of CPUs that the container keeps idle
	Mems      cpuset.Set `json:"mems"`          // NUMA nodes of its memory; empty: the hook leaves them alone
	Partition string     `json:"partition"`     // PartitionRoot, PartitionIsolated or PartitionNone
	Scope     string     `json:"scope"`         // ScopeContainer or ScopePod

	Function bool     `json:"function,omitempty"` // no hook pins: of the fields above, only ID is set
	Nodes    []string `json:"nodes,omitempty"`    // paths of the function's device nodes
	Group    string   `json:"group,omitempty"`    // of resctrl, that the container joins
}

// ReadSpecs reads every spec of this driver in the directory, ascending by file name.
// It leaves out files that are removed while it reads.
func ReadSpecs(dir fs.FS) ([]Written, error) {
	uids, err := claimUIDs(dir)
	if err != nil {
		return nil, err
	}
	var all []Written
	for _, uid := range uids {
		name := fileName(uid)
		data, err := fs.ReadFile(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		written, err := parseSpec(data)
		if err != nil {
			written = Written{Problem: err.Error()}
		}
		written.ClaimUID, written.File = uid, name
		all = append(all, written)
	}
	return all, nil
}

// parseSpec is the inverse of Render, for the fields that Written has.
func parseSpec(data []byte) (w Written, err error) {
	var spec specs.Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return Written{}, err
	}
	env := spec.ContainerEdits.Env
	for _, device := range spec.Devices {
		env = append(env, device.ContainerEdits.Env...)
	}
	if w.CPUs, err = cpusOf(env); err != nil {
		return Written{}, err
	}
	for _, device := range spec.Devices {
		read, err := parseDevice(device)
		if err != nil {
			return Written{}, fmt.Errorf("device %q: %w", device.Name, err)
		}
		w.Devices = append(w.Devices, read)
	}
	return w, nil
}

// cpusOf returns the CPUs in an environment: those to run on and those that stay idle,
// also of single requests.
func cpusOf(env []string) (all cpuset.Set, err error) {
	for _, entry := range env {
		name, list, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, cpusVariable) || strings.HasPrefix(name, idleCPUsVariable) {
			cpus, err := cpuset.Parse(list)
			if err != nil {
				return cpuset.Set{}, fmt.Errorf("%s: %w", name, err)
			}
			all = all.Union(cpus)
		}
	}
	return all, nil
}

func parseDevice(device specs.Device) (read WrittenDevice, err error) {
	read.ID = Kind + "=" + device.Name
	if rdt := device.ContainerEdits.IntelRdt; rdt != nil {
		read.Function, read.Group = true, rdt.ClosID
		return read, nil
	}
	edits := device.ContainerEdits
	if slices.Contains(edits.Hooks, nil) {
		return read, errors.New("a hook is null")
	}
	i := slices.IndexFunc(edits.Hooks, func(hook *specs.Hook) bool { return len(hook.Args) > 1 && hook.Args[1] == "pin" })
	if i < 0 && len(edits.Hooks)+len(edits.DeviceNodes)+len(edits.Env) > 0 {
		read.Function = true
		for _, node := range edits.DeviceNodes {
			if node == nil {
				return read, errors.New("a device node is null")
			}
			read.Nodes = append(read.Nodes, node.Path)
		}
		return read, nil
	}
	if i < 0 {
		return read, errors.New("it has no edits")
	}
	for _, arg := range edits.Hooks[i].Args {
		flag, value, _ := strings.Cut(arg, "=")
		switch flag {
		case "--cpus":
			read.CPUs, err = cpuset.Parse(value)
		case "--idle":
			read.Idle, err = cpuset.Parse(value)
		case "--mems":
			read.Mems, err = cpuset.Parse(value)
		case "--partition":
			read.Partition = value
		case "--scope":
			read.Scope = value
		}
		if err != nil {
			return read, fmt.Errorf("%s: %w", flag, err)
		}
	}
	return read, nil
}
