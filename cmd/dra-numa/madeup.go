package main

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

// madeUpMachine returns the machine that the node pretends to have; false if it has its own.
func (o *options) madeUpMachine() (fake.Machine, bool) {
	i := slices.IndexFunc(fake.Presets(), func(p fake.Preset) bool { return p.Name == o.madeUp })
	if i < 0 {
		return fake.Machine{}, false
	}
	return fake.Presets()[i].Machine, true
}

// checkMadeUp refuses what needs a real machine.
func (o *options) checkMadeUp() error {
	if o.madeUp == "" {
		return nil
	}
	if _, known := o.madeUpMachine(); !known {
		var names []string
		for _, preset := range fake.Presets() {
			names = append(names, preset.Name)
		}
		return cli.Usagef("--made-up-machine %q: there is no such machine, allowed are %s", o.madeUp, strings.Join(names, ", "))
	}
	if o.exclusivityMode != deviceclasses.ExclusivityAuto && o.exclusivityMode != deviceclasses.ExclusivityNone {
		return cli.Usagef("--made-up-machine %q: exclusivity %s needs a real machine", o.madeUp, o.exclusivityMode)
	}
	for _, field := range []struct {
		name  string
		asked bool
	}{
		{"devices", !o.attached.IsEmpty()}, {"cache", o.cachePools != nil}, {"performance", o.performance != (deviceclasses.NodePerformance{})},
	} {
		if field.asked {
			return cli.Usagef("--made-up-machine %q: %s needs a real machine", o.madeUp, field.name)
		}
	}
	o.exclusivityMode = deviceclasses.ExclusivityNone
	return nil
}

// machine returns the files of the machine that the node has, or pretends to have.
func (o *options) machine() fs.FS {
	if made, is := o.madeUpMachine(); is {
		return made.FS()
	}
	return os.DirFS(o.machineRoot)
}

// specHook returns the hook that containers of claims run. Without a real machine, it could
// pin nothing.
func (o *options) specHook() cdi.Hook {
	if o.madeUp != "" {
		return cdi.Hook{None: true}
	}
	hook := o.hook()
	hook.LiftQuota = o.cpuQuota != deviceclasses.CPUQuotaKeep
	return hook
}
