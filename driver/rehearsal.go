package driver

import (
	"fmt"
	"io/fs"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// rehearsed is the namespace, the name and the UID of the claim that Rehearse makes up.
const rehearsed = "rehearsal"

// Rehearse returns an error if a driver with this configuration could not prepare a claim
// on this machine. It prepares a made-up claim of one CPU with the code of [Driver.Prepare],
// reads it back from the checkpoint and from the CDI spec, and unprepares it. A machine whose
// claims can have no CPU has a checkpoint only. runHook gets the arguments with which the
// container runtime would run the hook, and must not pin anything.
//
// state and specs are empty scratch directories, which the caller removes. Nothing else is
// changed: no claim, no cgroup, no PCI function, no cache and no frequency.
func Rehearse(machine numa.Machine, config Config, state, specs *os.Root, runHook func(args []string) error) error {
	config = config.withoutHost()
	start := func() (*Driver, error) {
		d, err := Open(machine, config, state, specs)
		if err == nil {
			_, err = d.Recover(nil, nil)
		}
		return d, err
	}
	d, err := start()
	if err != nil {
		return fmt.Errorf("rehearse the start of a node: %w", err)
	}
	claim := d.madeUpClaim()
	if claim == nil {
		return nil
	}
	grant, _, err := d.Prepare(claim, nil)
	if err != nil {
		return fmt.Errorf("rehearse to prepare a claim: %w", err)
	}
	if err := restarted(start, grant); err != nil {
		return fmt.Errorf("rehearse a restart: %w", err)
	}
	if err := state.Remove(ledger.CheckpointName); err != nil {
		return fmt.Errorf("rehearse the loss of the checkpoint: %w", err)
	}
	if err := restarted(start, grant); err != nil {
		return fmt.Errorf("rehearse the loss of the checkpoint: %w", err)
	}
	if config.Hook.None {
		// nothing to try
	} else if err := tryHook(specs.FS(), runHook); err != nil {
		return fmt.Errorf("rehearse to run the pin hook: %w", err)
	}
	if err := d.unprepareMadeUp(); err != nil {
		return fmt.Errorf("rehearse to unprepare a claim: %w", err)
	}
	return nil
}

// restarted returns an error if a driver that starts does not find the grant as it is.
func restarted(start func() (*Driver, error), grant ledger.Grant) error {
	d, err := start()
	if err != nil {
		return err
	}
	if read, held := d.Grant(grant.UID); !held || !read.Equal(grant) {
		return fmt.Errorf("%s was prepared, and %s is read back", grant, read)
	}
	return nil
}

// tryHook runs the hook as the CDI spec of the made-up claim says.
func tryHook(specs fs.FS, runHook func(args []string) error) error {
	calls, err := cdi.HookCalls(specs, rehearsed)
	if err != nil {
		return err
	}
	if len(calls) != 1 {
		return fmt.Errorf("the CDI spec has %d hooks, want one", len(calls))
	}
	return runHook(calls[0])
}

func (d *Driver) unprepareMadeUp() error {
	if err := d.Unprepare(rehearsed); err != nil {
		return err
	}
	uids, err := d.specs.ClaimUIDs()
	if err == nil && len(uids) > 0 {
		err = fmt.Errorf("CDI specs of claims %q are left, want none", uids)
	}
	return err
}

// withoutHost returns the configuration of a driver that changes and reads nothing of the
// host but its own two directories.
func (c Config) withoutHost() Config {
	c.Attached, c.Machine, c.Drivers, c.StaticSpecs = attached.Selection{}, nil, nil, nil
	c.Caches, c.Tuning, c.Hugepages, c.Containers, c.Held = nil, nil, nil, nil, nil
	return c
}

// madeUpClaim returns a claim that has one CPU of the first zone with a CPU for claims, or
// nil if there is none.
func (d *Driver) madeUpClaim() *resourceapi.ResourceClaim {
	for i := range d.layout.zones {
		if d.layout.zones[i].CPUs.Intersection(d.layout.grantable).IsEmpty() {
			continue
		}
		return &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: rehearsed, Name: rehearsed, UID: types.UID(rehearsed)},
			Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
				Results: []resourceapi.DeviceRequestAllocationResult{{
					Request: rehearsed, Driver: Name, Pool: d.config.NodeName, Device: d.layout.zones[i].Device,
					ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{
						deviceclasses.CapacityCPU: *resource.NewQuantity(1, resource.DecimalSI),
					},
				}},
			}}},
		}
	}
	return nil
}
