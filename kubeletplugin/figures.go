package kubeletplugin

import (
	"sync/atomic"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/internal/histogram"
)

// Figures are what the plugin has counted since it started, and what it last saw.
type Figures struct {
	Prepare, Unprepare Calls
	Devices            []resourceapi.Device // that the node publishes unless a guard stands; not to be changed
	Cgroups            map[CgroupState]int  // recorded cgroups with a process
	Faulty             map[types.UID]bool   // claims that do not have what they should
	Refusals           uint64               // containers that hooks did not let start
	Runtime            RuntimeState
	Unexplained        int64 // containers whose cpuset neither a claim nor the driver explains
	Registered         bool  // by the kubelet
	Paused             bool  // an administrator has paused publishing
}

// Calls says how long the kubelet's calls of one kind took, one for each claim.
type Calls struct{ Done, Failed histogram.Distribution }

// CgroupState is what the kernel grants a recorded cgroup.
type CgroupState string

// The states of cgroups.
const (
	CgroupExclusive  CgroupState = "exclusive"  // a partition keeps all other tasks off its CPUs, as it should
	CgroupPinned     CgroupState = "pinned"     // it has its CPUs or NUMA nodes; no partition was asked for
	CgroupDowngraded CgroupState = "downgraded" // no partition, while another cgroup uses the same CPUs of a claim
	CgroupFaulty     CgroupState = "faulty"     // it does not have what it should
)

// CgroupStates returns all states.
func CgroupStates() []CgroupState {
	return []CgroupState{CgroupExclusive, CgroupPinned, CgroupDowngraded, CgroupFaulty}
}

// RuntimeState is the state of the connection to the container runtime over NRI.
type RuntimeState string

// The states of the connection.
const (
	RuntimeUnused       RuntimeState = ""             // the driver does not ask the runtime
	RuntimeConnected    RuntimeState = "connected"    // and it has done what it was asked
	RuntimeRefused      RuntimeState = "refused"      // connected, but it did not do what it was asked
	RuntimeDisconnected RuntimeState = "disconnected" // until it is back, containers without claims may run on CPUs of claims
)

// counters are what Figures are made of. Any goroutine may read and write them.
type counters struct {
	prepare, unprepare calls
	refusals           atomic.Uint64
	unexplained        atomic.Int64
	seen               atomic.Pointer[seenClaims] // nil before the first Observe
	devices            atomic.Pointer[[]resourceapi.Device]
}

type calls struct{ done, failed histogram.Durations }

func (c *calls) add(began time.Time, err error) (took time.Duration) {
	took = time.Since(began)
	if err != nil {
		c.failed.Add(took)
	} else {
		c.done.Add(took)
	}
	return took
}

func (c *calls) read() Calls { return Calls{c.done.Read(), c.failed.Read()} }

// seenClaims is what the last Observe saw.
type seenClaims struct {
	cgroups map[CgroupState]int
	faulty  map[types.UID]bool
}

// see takes the recorded cgroups, and the states of claims that were made of them.
func (c *counters) see(live []pin.Live, partitions partitionStates) {
	seen := &seenClaims{make(map[CgroupState]int), make(map[types.UID]bool)}
	for i := range live {
		switch cgroup := &live[i]; {
		case cgroup.Fault != "":
			seen.cgroups[CgroupFaulty]++
		case cgroup.Downgraded:
			seen.cgroups[CgroupDowngraded]++
		case cgroup.Want.Partition != pin.PartitionNone:
			seen.cgroups[CgroupExclusive]++
		default:
			seen.cgroups[CgroupPinned]++
		}
	}
	for claim, states := range partitions {
		for _, state := range states {
			if state.fault != "" {
				seen.faulty[claim] = true
			}
		}
	}
	c.seen.Store(seen)
}

// Figures returns the figures of now. It waits for nothing.
func (p *Plugin) Figures() Figures {
	figures := Figures{
		Prepare: p.counters.prepare.read(), Unprepare: p.counters.unprepare.read(),
		Refusals: p.counters.refusals.Load(), Unexplained: p.counters.unexplained.Load(),
	}
	if seen := p.counters.seen.Load(); seen != nil {
		figures.Cgroups, figures.Faulty = seen.cgroups, seen.faulty
	}
	if devices := p.counters.devices.Load(); devices != nil {
		figures.Devices = *devices
	}
	if p.sharedPool != nil {
		figures.Runtime = map[sharedPoolState]RuntimeState{sharedPoolKept: RuntimeConnected, sharedPoolRefused: RuntimeRefused, sharedPoolAway: RuntimeDisconnected}[p.sharedPoolState()]
	}
	if p.publisher != nil {
		figures.Paused = p.publisher.isPaused()
	}
	if p.helper != nil {
		figures.Registered, _ = p.Registered()
	}
	return figures
}

// Registered reports whether the kubelet has registered the driver. Until then, why says
// what it answered, if it has.
func (p *Plugin) Registered() (registered bool, why string) {
	status := p.helper.RegistrationStatus()
	if status == nil {
		return false, ""
	}
	return status.PluginRegistered, status.Error
}
