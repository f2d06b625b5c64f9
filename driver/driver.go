// Package driver is the core of the node daemon. It says what a machine
// publishes, decides which CPUs each claim gets, keeps that in a checkpoint and
// prepares and unprepares claims. It talks to no socket and no API server.
package driver

import (
	"maps"
	"os"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// Name is the name of the driver in ResourceSlices, claims and sockets.
const Name = "dra.numa"

// Config is what the operator and the start-up probes decide for one node.
type Config struct {
	NodeName            string      // also the name of the node's only pool
	BootID              string      // the kernel's random id of this boot
	Reserved            cpuset.Set  // CPUs no claim gets
	ReservedMemoryBytes uint64      // memory of each zone no claim gets
	Exclusivity         Exclusivity // how a claim's CPUs are kept from others
	HookPath            string      // numa-pin on the host
}

// Exclusivity says who keeps other tasks off the CPUs of a claim.
type Exclusivity string

// The modes of a node.
const (
	ExclusivityKernel Exclusivity = "kernel" // remote cpuset partitions
	ExclusivityNone   Exclusivity = "none"   // nobody
)

// Driver holds the claims of one node. Its methods may be called concurrently;
// only one Driver at a time may use a state directory.
type Driver struct {
	machine numa.Machine
	picker  *pick.Picker // of machine
	config  Config
	state   *os.Root
	specs   cdi.Store

	mu     sync.Mutex // held for a whole prepare or unprepare
	grants map[types.UID]Grant
}

// Open loads the checkpoint from the state directory and makes the spec files
// in the CDI directory what it says: missing ones are written, those of nobody
// removed. A damaged checkpoint is an error that wraps ErrDamaged, because a
// start with no grants would give away CPUs that containers run on.
func Open(machine numa.Machine, config Config, state, specs *os.Root) (*Driver, error) {
	saved, err := loadCheckpoint(state)
	if err != nil {
		return nil, err
	}
	d := &Driver{machine: machine, picker: pick.New(machine), config: config, state: state, specs: cdi.NewStore(specs)}
	d.grants = saved.byUID()
	return d, perform(d.recovery(saved.BootID))
}

// recovery plans what has to happen before the kubelet may ask for anything.
func (d *Driver) recovery(savedBootID string) []step {
	var steps []step
	kept := d.grants
	if savedBootID != d.config.BootID {
		// No container outlives a boot, so a grant that the machine can no
		// longer honour is forgotten: the kubelet prepares the claim again.
		kept = maps.Clone(d.grants)
		maps.DeleteFunc(kept, func(_ types.UID, grant Grant) bool { return !d.honours(grant) })
		steps = append(steps, d.recordStep("record boot "+d.config.BootID, kept))
	}
	for _, uid := range slices.Sorted(maps.Keys(kept)) {
		steps = append(steps, d.specStep(kept[uid]))
	}
	return append(steps, step{"remove CDI specs of no claim", func() error {
		return d.specs.RemoveExcept(func(uid string) bool {
			_, held := kept[types.UID(uid)]
			return held
		})
	}})
}

// Prepare gives the claim its CPUs, or finds those it has, and writes the CDI
// spec that pins its containers. It may be repeated, after a crash too. The
// result has one entry for each allocation result of this driver.
func (d *Driver) Prepare(claim *resourceapi.ResourceClaim) ([]PreparedDevice, error) {
	wishes, err := d.wishes(claim)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	grant, err := d.plan(claim, wishes)
	if err != nil {
		return nil, err
	}
	if err := perform(d.prepareSteps(grant)); err != nil {
		return nil, err
	}
	return prepared(claim.UID, wishes, d.config.NodeName), nil
}

// prepareSteps are in the order that a crash between any two forgives: a CPU is
// on record before anybody can see it.
func (d *Driver) prepareSteps(grant Grant) []step {
	if len(grant.Shares) == 0 {
		return d.unprepareSteps(grant.UID) // admin access only: holds nothing
	}
	var steps []step
	if recorded, held := d.grants[grant.UID]; !held || !recorded.equal(grant) {
		next := maps.Clone(d.grants)
		next[grant.UID] = grant
		steps = append(steps, d.recordStep("record "+grant.String(), next))
	}
	return append(steps, d.specStep(grant))
}

// Unprepare takes back what Prepare gave. It may be repeated, and called for a
// claim that was never prepared.
func (d *Driver) Unprepare(claimUID types.UID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return perform(d.unprepareSteps(claimUID))
}

func (d *Driver) unprepareSteps(claimUID types.UID) []step {
	steps := []step{{"remove CDI spec of claim " + string(claimUID), func() error {
		return d.specs.Remove(string(claimUID))
	}}}
	if _, held := d.grants[claimUID]; held {
		next := maps.Clone(d.grants)
		delete(next, claimUID)
		steps = append(steps, d.recordStep("record release of claim "+string(claimUID), next))
	}
	return steps
}

func (d *Driver) specStep(grant Grant) step {
	return step{"write CDI spec of claim " + grant.name(), func() error {
		return d.specs.Write(grant.cdiClaim(), d.config.HookPath)
	}}
}

func (d *Driver) recordStep(name string, next map[types.UID]Grant) step {
	return step{name, func() error {
		if err := saveCheckpoint(d.state, newCheckpoint(d.config.BootID, next)); err != nil {
			return err
		}
		d.grants = next
		return nil
	}}
}
