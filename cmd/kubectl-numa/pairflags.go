package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/pairing"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// pairFlags are the flags for pairs of devices. What devices have in common is read from
// slices: those of files, or those of a known machine.
type pairFlags struct {
	pair   bool
	files  files
	preset string
}

func (p *pairFlags) addTo(command *cobra.Command) {
	command.Flags().BoolVar(&p.pair, "pair", false, "put one device of each --device under one PCIe root, on the NUMA node of the share; reads the ResourceSlices of --filename or --preset")
	p.files.addTo(command, "`file`, folder or URL with ResourceSlices and DeviceClasses, for --pair; - is standard input; can be repeated")
	addPreset(command, &p.preset)
}

// choose returns the wish with pairs that the slices have, if the user wants pairs.
func (p *pairFlags) choose(ctx context.Context, wish manifest.Wish) (manifest.Wish, error) {
	if !p.pair {
		for name, set := range map[string]bool{"filename": len(p.files) > 0, "preset": p.preset != ""} {
			if set {
				return wish, fmt.Errorf("--%s is for --pair: set --pair as well", name)
			}
		}
		return wish, nil
	}
	wish.Paired = true
	var objects *snapshot.Snapshot
	var err error
	switch {
	case p.preset != "" && len(p.files) > 0:
		return wish, errors.New("--filename and --preset: set only one of them")
	case p.preset != "":
		objects, err = presetSlices(p.preset)
	case len(p.files) > 0:
		objects, err = p.files.Snapshot(ctx)
	default:
		err = &hintedError{
			errors.New("--pair: there are no slices: set --filename or --preset"),
			[]string{"of a cluster: kubectl get resourceslices,deviceclasses -o yaml | kubectl numa generate pod NAME --pair -f -, with the other flags"},
		}
	}
	if err != nil {
		return wish, err
	}
	return pairing.Choose(objects, wish)
}

// presetSlices returns the slices of a known machine whose node publishes GPUs, network
// cards and drives.
func presetSlices(name string) (*snapshot.Snapshot, error) {
	known, err := presetNamed(name)
	if err != nil {
		return nil, err
	}
	machine, err := numa.Read(known.FS())
	if err != nil {
		return nil, err
	}
	selection, err := attached.NewSelection(deviceclasses.DeviceSelection{Presets: []string{deviceclasses.PresetGPU, deviceclasses.PresetNIC, deviceclasses.PresetNVMe}})
	if err != nil {
		return nil, err
	}
	objects := &snapshot.Snapshot{}
	published := resourceSlices(name, driver.Devices(machine, driver.Config{Attached: selection}, nil))
	for i := range published {
		if err := objects.Add(&published[i], "preset "+name); err != nil {
			return nil, err
		}
	}
	return objects, nil
}
