// Package driver is the core of the node daemon. It decides what a machine publishes
// and which CPUs each claim gets. It records that in a checkpoint, and prepares and
// unprepares claims. It uses no socket and no API server.
//
// It is larger than other packages because one lock and one checkpoint cover all of it:
// how a share is planned, recorded, applied and recovered. Code that needs neither is in
// the packages below it: what claims hold, as data (ledger), what is published (zones,
// attached, caches), what changes the host (binding, dividing with resctrl, tuning with
// cpufreq, interrupts and uncore), and the document nodestate.
//
// Its words, and those of kubeletplugin:
//
//	orphan      a grant that no claim needs any more and that cannot be released yet
//	waiting     the outcome of an orphan in a Report
//	abandoned   an orphan of which the kubelet was told that it is unprepared; see Abandon
//	leftover    a grant whose claim is gone, without a call of the kubelet
//	stray       a share whose device is not published as it was when it was allocated
//	withheld    what is not published, or with a taint, because of strays and orphans
//	blocked     CPUs that a partition holds and no grant has
//	downgraded  CPUs without their partition while several pods use them
//	group       of resctrl, which the kernel calls CLOSID; a class is a DeviceClass
//	pool        of ResourceSlices: all of a node; of ways: a part of a cache, with a rule;
//	            of hugepages, as in the kernel: those of one size on a NUMA node
//	shared pool CPUs that no claim holds
package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Name is the name of the driver in ResourceSlices, claims and sockets.
const Name = deviceclasses.DriverName

// Config is what the operator and the start-up probes decide for one node.
type Config struct {
	NodeName       string                      // also the name of the node's only pool
	BootID         string                      // the kernel's random id of this boot
	Reserved       cpuset.Set                  // CPUs that no claim gets
	ReservedMemory zones.Reservations          // memory and hugepages that no claim gets
	ExcludedZones  []string                    // names of zones that are not published
	ZoneBy         string                      // what one zone is, as in a NodeConfig; "" means a NUMA node
	ZoneOrder      string                      // in which order zones are published, as in a NodeConfig; "" means that of the zones
	Groups         []string                    // of which each zone takes one claim, as in a NodeConfig
	Exclusivity    Exclusivity                 // who keeps other tasks off a claim's CPUs
	Hook           cdi.Hook                    // where numa-pin is on the host; none if the machine is made up
	MadeUp         bool                        // the node only pretends to have this machine
	Attached       attached.Selection          // PCI functions that are published
	Machine        fs.FS                       // has the folder sys: a PCI function is read again when it is prepared
	Drivers        *binding.Host               // binds kernel drivers that claims want; nil if this node binds none
	ClaimsBind     bool                        // claims can ask for kernel drivers, and not only their DeviceClasses
	CPUDrivers     []string                    // names of other drivers that give out CPUs, whatever their devices say
	MemoryDrivers  []string                    // and that give out memory
	NUMANodeKeys   []resourceapi.QualifiedName // as in a NodeConfig; nil means the default
	Caches         *dividing.Config            // how level-3 caches are divided; nil if they are not
	Tuning         *tuning.Config              // how CPUs are made fast and quiet for claims; nil if they are not
	StaticSpecs    fs.FS                       // /etc/cdi, the static CDI specs of other programs; nil for none

	// Gates are those at the start: see [Driver.SetGates].
	Gates

	// Hugepages reads what is free on the NUMA nodes, and what is in use by the pods that it
	// knows and by those given, which have the UIDs of their claims. If it is nil, new claims
	// are not compared with that.
	Hugepages func(nodes cpuset.Set, pods map[string][]string) (Hugepages, error)

	// Containers looks which containers run. No grant ends while its containers may run. If
	// it is nil, grants end when the kubelet or the API server says so.
	Containers func() (Containers, error)

	// Held returns what the live partitions hold, if one of them may have some of these CPUs.
	// If it is nil, new claims may get CPUs that a partition took since the last Observe.
	Held func(cpus cpuset.Set) ([]Held, error)
}

// Exclusivity says who keeps other tasks off the CPUs of a claim.
type Exclusivity string

// The modes of a node.
const (
	ExclusivityKernel      Exclusivity = deviceclasses.ExclusivityKernel      // remote cpuset partitions
	ExclusivityCooperative Exclusivity = deviceclasses.ExclusivityCooperative // the container runtime, over NRI
	ExclusivityNone        Exclusivity = deviceclasses.ExclusivityNone        // nobody
)

// Driver holds the claims of one node. Its methods may be called concurrently, but
// Publish has one caller at a time. Only one Driver at a time may use a state directory.
//
// Invariant: after Recover, no CPU, PCI function or class of a cache is in two grants. If
// one grant has a physical function, no other grant has one of its virtual functions.
type Driver struct {
	config  Config
	records *records
	specs   cdi.Store

	shown atomic.Pointer[view] // what readers see of the fields below; never nil after Open

	policies atomic.Pointer[func() error] // see SetMemoryPolicies

	mu          mutex // held for a whole Recover, Observe, Prepare or Unprepare
	layout      *layout
	grants      ledger.List
	ready       bool                 // Recover has succeeded
	loaded      ledger.Record        // what Open read; empty after Recover
	orphans     map[types.UID]string // by UID of a grant that cannot be released yet: why no claim needs it
	lastPrepare map[types.UID]uint64 // by UID of a claim: which Prepare was its last one, of all since Open
	prepares    uint64               // how many there were
	blocked     []Held               // CPUs that partitions hold and no grant has
	downgraded  cpuset.Set           // as in view
	functions   *functions
	dividing    *dividing.State // never nil
	tuning      *tuning.State   // never nil
	undone      undone          // of the NodeConfig, as last seen

	releasing map[types.UID]bool // by UID of a claim: its last Unprepare has not succeeded

	gates Gates // Config.Gates, as they were set last

	published published // only Publish uses it
}

// BusyError says that the kernel has not finished to bind or release a PCI function.
type BusyError = binding.BusyError

// ErrNotRecovered says that Recover was not called, or did not succeed.
var ErrNotRecovered = errors.New("the grants of this node are not recovered yet")

// Open reads what the claims of the node hold, from the checkpoint in the state
// directory and from the CDI specs. It writes nothing. The caller may read Grants, and
// must call Recover next.
//
// Open returns an error for which GrantsUnknown is true if the checkpoint is damaged
// or of another build, or if it is lost and a CDI spec cannot be read. A start without
// grants would give away CPUs that containers run on.
func Open(machine numa.Machine, config Config, state, specs *os.Root) (*Driver, error) {
	d := &Driver{config: config, lastPrepare: make(map[types.UID]uint64), releasing: make(map[types.UID]bool), gates: config.Gates, records: newRecords(state), specs: cdi.NewStore(specs)}
	d.functions = &functions{config: &d.config, specs: []fs.FS{specs.FS()}}
	if config.StaticSpecs != nil {
		d.functions.specs = append(d.functions.specs, config.StaticSpecs)
	}
	d.config.Caches = config.Dividing()
	d.dividing = dividing.New(d.config.Caches)
	d.tuning = tuning.New(config.Tuning, config.Machine, func(text []byte) error { return d.records.replace(tuning.FirstName, text) })
	d.use(machine)
	var err error
	if d.loaded, err = ledger.Load(state, d.specs, config.BootID); err != nil {
		return nil, err
	}
	for _, entry := range d.loaded.Entries {
		d.grants = d.grants.With(entry.Grant)
	}
	d.tuning.Load(state, config.BootID, d.loaded, d.grants.Grants())
	d.show()
	return d, nil
}

// FirstUnknown says why it is not known what the node had before claims and the default of
// the NodeConfig changed it in this boot; nil if it is known. The Driver then takes what the
// kernel began with.
func (d *Driver) FirstUnknown() error { return d.tuning.Unknown() }

// Prepare gives the claim its CPUs and PCI functions, or finds those that it already
// has. It writes the CDI spec that pins the claim's containers and gives them device
// nodes. It may be repeated, also after a crash.
//
// Pods are those for which the claim is reserved, as far as they exist. Without pods,
// one container at a time is expected to use the claim. The result has one device for
// each allocation result of this driver. The Grant is the one on record. It has no
// shares if the claim has admin access only.
//
// If the kernel needs long to bind a driver that the claim wants, the error wraps a
// [BusyError]. The caller waits for it without the lock, so other claims do not wait, and
// calls Prepare again: it goes on from what is on record.
func (d *Driver) Prepare(claim *resourceapi.ResourceClaim, pods []*corev1.Pod) (ledger.Grant, []PreparedDevice, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return ledger.Grant{}, nil, ErrNotRecovered
	}
	wishes, err := d.planner().wishes(claim)
	if err != nil {
		return ledger.Grant{}, nil, err
	}
	if err := d.planner().checkPolicies(claim.UID, wishes); err != nil {
		return ledger.Grant{}, nil, err
	}
	if recorded, held := d.grants.Find(claim.UID); held && !fulfils(recorded, wishes) {
		if why := d.config.usedBy(recorded); why != "" {
			return ledger.Grant{}, nil, fmt.Errorf("the claim was allocated again, and what it had before is not free: %w", &InUseError{why})
		}
	}
	delete(d.orphans, claim.UID) // the claim needs its grant again
	delete(d.releasing, claim.UID)
	d.prepares++
	d.lastPrepare[claim.UID] = d.prepares
	if slices.ContainsFunc(wishes, func(w wish) bool { _, is := w.wanted.(functionWish); return is }) {
		if _, err := d.rereadFunctions(claim.UID); err != nil { // before a device is given that another spec has
			return ledger.Grant{}, nil, err
		}
	}
	if err := perform(d.untuneSteps(claim, wishes)); err != nil {
		return ledger.Grant{}, nil, err
	}
	if slices.ContainsFunc(wishes, tunes) {
		_ = d.tuning.SettleDefaults(d.grants.Grants()) // the claim starts from it; RepairPerformance reports what fails
	}
	next, err := d.planner().plan(claim, pods, wishes)
	if err != nil {
		return ledger.Grant{}, nil, err
	}
	if taken, err := d.blockTaken(next.Grant); err != nil {
		return ledger.Grant{}, nil, err
	} else if taken {
		if next, err = d.planner().plan(claim, pods, wishes); err != nil { // without the CPUs of the partition
			return ledger.Grant{}, nil, err
		}
	}
	if steps := d.applySteps(next.Grant); len(steps) > 0 {
		if err := perform(steps); err != nil {
			return ledger.Grant{}, nil, err
		}
		if next, err = d.planner().plan(claim, pods, wishes); err != nil { // again, because the changed host may have changed the shares
			return ledger.Grant{}, nil, err
		}
	}
	if err := perform(d.prepareSteps(next)); err != nil {
		return ledger.Grant{}, nil, err
	}
	return next.Grant, d.planner().prepared(next.Grant, wishes), nil
}

// prepareSteps returns steps that may be interrupted by a crash between any two: a CPU
// is on record before a CDI spec names it. The specs of other claims in the pod are
// checked each time, because an earlier error may have kept them from being written.
func (d *Driver) prepareSteps(next change) []step {
	if len(next.Shares) == 0 {
		return d.unprepareSteps(next.UID) // admin access only: the claim holds nothing
	}
	return slices.Concat(d.recordSteps(next), d.waysSteps(next.Grant), d.monitorSteps(next.Grant))
}

func (d *Driver) recordSteps(next change) []step {
	var specs []step
	grants, changed := d.grants, false
	for i, grant := range next.grants {
		write := d.specs.Ensure
		if recorded, held := d.grants.Find(grant.UID); !held || !recorded.Equal(grant.Grant) {
			grants, changed = grants.WithListed(grant), true
			write = d.specs.Write // the spec file is missing or outdated
		}
		specs = append(specs, step{"write CDI spec of claim " + grant.FullName(), func() error {
			return write(string(grant.UID), next.specs[i])
		}})
	}
	if !changed {
		return specs
	}
	return append([]step{d.recordStep("record claim "+next.FullName(), grants)}, specs...)
}

// Unprepare takes back what Prepare gave. It may be repeated, and called for a
// claim that was never prepared. If the kernel needs long to give a function its previous
// driver back, the error wraps a [BusyError], as with Prepare. If containers still use the
// claim, the error is an [InUseError], and nothing has changed: the kubelet unprepares the
// claims of a pod that was deleted by force while its containers run. See [Driver.Abandon].
func (d *Driver) Unprepare(claimUID types.UID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return ErrNotRecovered
	}
	grant, held := d.grants.Find(claimUID)
	if held {
		if why := d.config.usedBy(grant); why != "" {
			return &InUseError{why}
		}
	}
	d.releasing[claimUID] = true
	if err := perform(d.unprepareSteps(claimUID)); err != nil {
		return err
	}
	delete(d.releasing, claimUID)
	delete(d.lastPrepare, claimUID)
	d.dividing.Uncount(claimUID)
	d.dividing.Take(grant, d.grants)
	return nil
}

func (d *Driver) unprepareSteps(claimUID types.UID) []step {
	steps := []step{d.removeSpecStep(claimUID)}
	if grant, held := d.grants.Find(claimUID); held {
		steps = append(steps, d.undoSteps(grant, d.grants.Without(claimUID).Grants())...)
		steps = append(steps, d.recordStep("record release of claim "+string(claimUID), d.grants.Without(claimUID)))
	}
	return steps
}

func (d *Driver) removeSpecStep(claimUID types.UID) step {
	return step{"remove CDI spec of claim " + string(claimUID), func() error {
		return d.specs.Remove(string(claimUID))
	}}
}

func (d *Driver) recordStep(name string, next ledger.List) step {
	return step{name, func() error {
		text, err := d.records.checkpoint(d.config.BootID, next)
		if err != nil {
			return err
		}
		if err := d.records.replace(ledger.CheckpointName, text); err != nil {
			return err
		}
		d.grants = next
		d.show()
		return nil
	}}
}
