package driver

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// view is the state of the Driver that callers can read at any time. Readers do not
// wait for a disk, unlike callers that change something.
type view struct {
	machine *numa.Machine
	grants  ledger.List
	blocked []Held
	// downgraded are CPUs of shares whose partition does not exist now, because several
	// pods use them.
	downgraded cpuset.Set
	withheld   map[string]string // see withheldFunctions
	caches     *dividing.Caches
	orphans    int
	undone     undone

	gates Gates
}

// show makes the current state the view. The caller holds the lock.
func (d *Driver) show() {
	d.shown.Store(&view{d.layout.machine, d.grants, d.blocked, d.downgraded, d.withheldFunctions(), d.dividing.Current(), len(d.orphans), d.undone, d.gates})
}

// SetDowngraded tells the driver which CPUs of shares are in no partition now, because
// several pods use them: the SharedPool then has to keep other containers off. It reports
// whether that is new.
func (d *Driver) SetDowngraded(cpus cpuset.Set) (renewed bool) {
	if d.shown.Load().downgraded == cpus {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.downgraded = cpus
	d.show()
	return true
}

// Machine is the machine as it was last read, with the sizes of memory that the driver
// uses.
func (d *Driver) Machine() numa.Machine { return *d.shown.Load().machine }

// SetMachine replaces the machine after it has changed: CPUs or memory came or went.
// Grants keep what they hold, also CPUs that are gone. When these come back, no other
// claim gets them. Memory counts in steps: see withSteadyMemory.
func (d *Driver) SetMachine(machine numa.Machine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.use(withSteadyMemory(*d.layout.machine, machine))
	d.show()
}

func (d *Driver) use(machine numa.Machine) {
	d.layout = newLayout(&machine, &d.config)
	d.tuning.Use(d.layout.machine, d.layout.grantable)
	d.dividing.Use(d.layout.machine)
	d.useDevices()
}

// useDevices remembers what the node would publish if there were no claims.
func (d *Driver) useDevices() {
	d.layout = d.layout.with(devices(d.layout.machine, d.config.with(d.gates), d.dividing.Current(), holdings{}, nil))
}

// Grant is what a claim holds; held is false if it holds nothing.
func (d *Driver) Grant(claimUID types.UID) (grant ledger.Grant, held bool) {
	return d.shown.Load().grants.Find(claimUID)
}

// Blocked returns the CPUs that partitions hold and no grant has. No claim gets them.
func (d *Driver) Blocked() (cpus cpuset.Set) {
	for _, held := range d.shown.Load().blocked {
		cpus = cpus.Union(held.CPUs)
	}
	return cpus
}

// Config is what the driver was opened with.
func (d *Driver) Config() Config { return d.config }

// Grants is what each claim holds, the oldest first.
func (d *Driver) Grants() []ledger.Grant {
	return slices.SortedFunc(slices.Values(d.shown.Load().grants.Grants()), ledger.ByAge)
}

// List is what each claim holds, by UID. It is not copied, so it must not be changed.
func (d *Driver) List() ledger.List { return d.shown.Load().grants }

// Pinned is what claims give one container.
type Pinned struct {
	CPUs         cpuset.Set     // of all shares, or of those that are not mixed; without idle CPUs unless a partition has them; no CPUs: memory only
	Mems         cpuset.Set     // that its memory must come from; empty if it may come from any NUMA node
	Mixed        bool           // the container runs on the SharedPool as well; not if a share that is not mixed gives it CPUs
	MemoryPolicy string         // as in ZoneShare; that of the last share that has one
	PolicyMems   cpuset.Set     // that the MemoryPolicy is about: of the Mems for bind, else of the NUMA nodes of all shares, those with memory
	Claims       []string       // namespace/name, ascending, each once
	Shares       []ledger.Share // ascending by claim UID; not to be changed
}

// Pinned unites what these CDI devices give one container; ok is false if none of them
// is of a grant.
func (d *Driver) Pinned(cdiDeviceIDs []string) (pinned Pinned, ok bool) {
	seen := d.shown.Load()
	for _, grant := range seen.grants {
		for _, share := range grant.Shares {
			if !slices.Contains(cdiDeviceIDs, cdi.DeviceID(string(grant.UID), share.Request, share.Device)) {
				continue
			}
			pinned.Shares = append(pinned.Shares, share)
			pinned.Claims = append(pinned.Claims, grant.FullName())
			if zone := share.Zone(); zone != nil {
				pinned.add(zone, d.config.Exclusivity)
			}
		}
	}
	if pinned.MemoryPolicy == deviceclasses.MemoryBind {
		pinned.PolicyMems = pinned.Mems // a container may use only the requests without memory
	}
	for i := range seen.machine.Zones { // the kernel refuses a policy about nodes without memory
		if bytes := seen.machine.Zones[i].MemoryBytes; bytes != nil && *bytes == 0 {
			pinned.PolicyMems = pinned.PolicyMems.Difference(cpuset.New(seen.machine.Zones[i].ID))
		}
	}
	slices.Sort(pinned.Claims)
	pinned.Claims = slices.Compact(pinned.Claims)
	return pinned, len(pinned.Claims) > 0
}

// Environment returns the environment variables for all shares of the container, as
// name=value; see package cdi.
func (p *Pinned) Environment() []string {
	if len(p.Shares) == 0 {
		return nil
	}
	shares := make([]cdi.Share, 0, len(p.Shares))
	for _, share := range p.Shares {
		spec := share.Spec(false) // the environment is the same in all modes
		if zone, is := spec.Kind.(*cdi.Zone); is && zone.Mixed && p.alone() {
			spec.Kind = &cdi.Zone{Mems: zone.Mems}
		}
		shares = append(shares, spec)
	}
	return cdi.Environment(shares)
}

// alone reports whether the hook keeps the container on the CPUs of shares that are not mixed.
// Then it does not run on those of mixed ones.
func (p *Pinned) alone() bool { return !p.Mixed && !p.CPUs.IsEmpty() }

func (p *Pinned) add(share *ledger.ZoneShare, by Exclusivity) {
	cpus := share.RunCPUs()
	if by == ExclusivityKernel && share.KernelExclusive() {
		cpus = share.CPUs // the cpuset is the partition, which keeps other tasks off the idle CPUs
	}
	switch {
	case share.Mixed && p.alone():
	case p.Mixed && !share.Mixed && !cpus.IsEmpty():
		p.CPUs, p.Mixed = cpus, false
	default:
		p.CPUs, p.Mixed = p.CPUs.Union(cpus), p.Mixed || share.Mixed
	}
	p.Mems = p.Mems.Union(share.Binds())
	p.PolicyMems = p.PolicyMems.Union(share.Mems())
	if share.MemoryPolicy != "" {
		p.MemoryPolicy = share.MemoryPolicy
	}
}

// SharedPool returns the CPUs for containers without claims: the online CPUs that no claim
// holds. Restrict is false if such containers can run anywhere: no claim has CPUs, or the
// kernel keeps other tasks off all of them. It is also false if no CPU would remain.
func (d *Driver) SharedPool() (cpus cpuset.Set, restrict bool) {
	seen := d.shown.Load()
	cpus = ledger.Untaken(seen.machine.Online, seen.grants)
	for _, grant := range seen.grants {
		restrict = restrict || slices.ContainsFunc(grant.Shares, func(share ledger.Share) bool {
			byKernel := d.config.Exclusivity == ExclusivityKernel && share.KernelExclusive() && !share.CPUs().Overlaps(seen.downgraded)
			return !share.CPUs().IsEmpty() && !byKernel
		})
	}
	return cpus, restrict && !cpus.IsEmpty()
}
