// Package driver is the core of the node daemon. It says what a machine
// publishes, decides which CPUs each claim gets, keeps that in a checkpoint and
// prepares and unprepares claims. It talks to no socket and no API server.
//
// It is larger than other packages because one lock and one checkpoint are around all
// of it: what a share holds, how that is planned, recorded, applied and recovered. What
// needs neither is in its children: zones, attached and binding.
package driver

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// Name is the name of the driver in ResourceSlices, claims and sockets.
const Name = deviceclasses.DriverName

// Config is what the operator and the start-up probes decide for one node.
type Config struct {
	NodeName            string             // also the name of the node's only pool
	BootID              string             // the kernel's random id of this boot
	Reserved            cpuset.Set         // CPUs no claim gets
	ReservedMemoryBytes uint64             // memory of each NUMA node no claim gets
	ZoneBy              string             // what one zone is, as in a NodeConfig; "" is a NUMA node
	Exclusivity         Exclusivity        // how a claim's CPUs are kept from others
	HookPath            string             // numa-pin on the host
	NodeAllocatable     bool               // the scheduler counts claims in the node's allocatable, if it is told how
	Attached            attached.Selection // PCI functions that are published
	Machine             fs.FS              // holds sys: a PCI function is read again when it is prepared
	Drivers             *binding.Host      // binds kernel drivers that claims want; nil: claims cannot
	StaticSpecs         fs.FS              // the CDI specs that others write once, in /etc/cdi; nil for none
}

// Exclusivity says who keeps other tasks off the CPUs of a claim.
type Exclusivity string

// The modes of a node.
const (
	ExclusivityKernel      Exclusivity = deviceclasses.ExclusivityKernel      // remote cpuset partitions
	ExclusivityCooperative Exclusivity = deviceclasses.ExclusivityCooperative // the container runtime, where it is asked to
	ExclusivityNone        Exclusivity = deviceclasses.ExclusivityNone        // nobody
)

// Driver holds the claims of one node. Its methods may be called concurrently;
// only one Driver at a time may use a state directory.
//
// Invariant: from Recover on, no CPU and no PCI function is in two grants, and none
// has a physical function of which another has a virtual one.
type Driver struct {
	config    Config
	state     *os.Root
	files     *durable.Files // in state
	specs     cdi.Store
	specFiles fs.FS // those of specs, and of others

	shown atomic.Pointer[view] // of what is below; never nil after Open

	mu        sync.Mutex                    // held for a whole recovery, prepare or unprepare
	machine   *numa.Machine                 // replaced, never changed
	zones     []zones.Zone                  // of machine, as they are published
	picker    *pick.Picker                  // of machine
	grantable cpuset.Set                    // CPUs of machine that a claim may ever get
	devices   map[string]resourceapi.Device // of machine, by name
	grants    grantList
	ready     bool                 // Recover is done
	loaded    onRecord             // what grants were before it
	orphans   map[types.UID]string // grants that nobody needs and a partition holds, and why
	blocked   []Held               // CPUs that partitions hold, and no grant
	text      []byte               // of the last checkpoint: its memory serves the next

	published published // by Publish alone
}

// ErrNotRecovered says that Recover was not called, or did not succeed.
var ErrNotRecovered = errors.New("what the node's claims hold is not recovered yet")

// Open reads what the claims of the node hold, from the checkpoint in the state
// directory and from the CDI specs. It writes nothing: the caller may look at
// Grants, and goes on with Recover. A damaged or lost checkpoint is an error
// that wraps ErrDamaged, because a start with no grants would give away CPUs
// that containers run on.
func Open(machine numa.Machine, config Config, state, specs *os.Root) (*Driver, error) {
	d := &Driver{config: config, state: state, files: durable.NewFiles(state), specs: cdi.NewStore(specs), specFiles: specs.FS()}
	d.use(machine)
	var err error
	if d.loaded, err = loadRecord(state, d.specs, config.BootID); err != nil {
		return nil, err
	}
	for _, entry := range d.loaded.entries {
		d.grants = d.grants.with(entry.Grant)
	}
	d.show()
	return d, nil
}

// SyncTime is the time spent in fsync so far, for metrics.
func (d *Driver) SyncTime() time.Duration { return d.files.SyncTime() + d.specs.SyncTime() }

// Prepare gives the claim its CPUs and PCI functions, or finds those it has, and writes
// the CDI spec that pins its containers and gives them device nodes. It may be
// repeated, after a crash too. Pods are
// those that the claim is reserved for, as far as they exist; without any it is
// for one container. The devices are one for each allocation result of this driver.
// The grant is that on record; it has no shares if the claim has admin access only.
func (d *Driver) Prepare(claim *resourceapi.ResourceClaim, pods []*corev1.Pod) (Grant, []PreparedDevice, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return Grant{}, nil, ErrNotRecovered
	}
	wishes, err := d.wishes(claim)
	if err != nil {
		return Grant{}, nil, err
	}
	delete(d.orphans, claim.UID) // it is needed again
	next, err := d.plan(claim, pods, wishes)
	if err != nil {
		return Grant{}, nil, err
	}
	if steps := d.applySteps(next.Grant); len(steps) > 0 {
		if err := perform(steps); err != nil {
			return Grant{}, nil, err
		}
		if next, err = d.plan(claim, pods, wishes); err != nil { // with what that makes of the shares
			return Grant{}, nil, err
		}
	}
	if err := perform(d.prepareSteps(next)); err != nil {
		return Grant{}, nil, err
	}
	return next.Grant, d.prepared(next.Grant, wishes), nil
}

// prepareSteps are in the order that a crash between any two forgives: a CPU is
// on record before anybody can see it. Specs of other claims in the pod are
// looked at each time, as an error may have kept them from what is on record.
func (d *Driver) prepareSteps(next change) []step {
	if len(next.Shares) == 0 {
		return d.unprepareSteps(next.UID) // admin access only: holds nothing
	}
	var specs []step
	grants, changed := d.grants, false
	for i, grant := range next.grants {
		write := d.specs.Ensure
		if recorded, held := d.grants.find(grant.UID); !held || !recorded.equal(grant.Grant) {
			grants, changed = grants.withListed(grant), true
			write = d.specs.Write // the file says something else
		}
		specs = append(specs, step{"write CDI spec of claim " + grant.name(), func() error {
			return write(string(grant.UID), next.specs[i])
		}})
	}
	if !changed {
		return specs
	}
	return append([]step{d.recordStep("record claim "+next.name(), grants)}, specs...)
}

// Unprepare takes back what Prepare gave. It may be repeated, and called for a
// claim that was never prepared.
func (d *Driver) Unprepare(claimUID types.UID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return ErrNotRecovered
	}
	return perform(d.unprepareSteps(claimUID))
}

func (d *Driver) unprepareSteps(claimUID types.UID) []step {
	steps := []step{d.removeSpecStep(claimUID)}
	if grant, held := d.grants.find(claimUID); held {
		steps = append(steps, d.undoSteps(grant, nil)...)
		steps = append(steps, d.recordStep("record release of claim "+string(claimUID), d.grants.without(claimUID)))
	}
	return steps
}

func (d *Driver) removeSpecStep(claimUID types.UID) step {
	return step{"remove CDI spec of claim " + string(claimUID), func() error {
		return d.specs.Remove(string(claimUID))
	}}
}

func (d *Driver) recordStep(name string, next grantList) step {
	return step{name, func() error {
		text, err := d.recordText(next)
		if err != nil {
			return err
		}
		if err := d.files.Replace(CheckpointName, text, 0o600); err != nil {
			return err
		}
		d.grants = next
		d.show()
		return nil
	}}
}

// recordText is the checkpoint that has the grants on record, until the next
// call.
func (d *Driver) recordText(grants grantList) ([]byte, error) {
	version := checkpointV3
	var all held
	for _, grant := range grants {
		version = max(version, grant.version)
		if err := all.add(&grant.Grant, grant.words); err != nil {
			return nil, err
		}
	}
	d.text = appendCheckpoint(d.text[:0], version, d.config.BootID, func(yield func(string) bool) {
		for _, grant := range grants {
			if !yield(grant.text) {
				return
			}
		}
	})
	return d.text, nil
}
