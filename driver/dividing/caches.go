package dividing

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Caches is what is known of the caches. It is replaced, never changed.
type Caches struct {
	node     *caches.Node
	why      error                 // node is nil because of it
	machine  *numa.Machine         // that node was made of
	settings caches.Settings       // that node was made with
	info     *numa.Resctrl         // that node was made with
	devices  []resourceapi.Device  // of node
	warnings []string              // about groups of other tools, and pools that are not published
	missing  []string              // pools that are not published, whatever claims hold
	faults   map[caches.Key]string // why a claim does not have what it should
	unmade   []string              // groups of CPUs that no claim gets
	lost     map[int]int           // classes of each cache that claims cannot have; see [caches.Node.Lost]
}

// Get returns the caches, or why there are none.
func (s *Caches) Get() (caches.Node, error) {
	if s.node == nil {
		return caches.Node{}, s.why
	}
	return *s.node, nil
}

// CachesOf reads what a machine has for claims. machine.Resctrl counts if nothing is known
// of the groups. config may be nil.
func CachesOf(machine *numa.Machine, config *Config, groups *numa.ResctrlState) *Caches {
	if config == nil || !config.Pools.Divides() {
		return &Caches{why: errNotDivided}
	}
	state := &Caches{settings: caches.Settings{ZoneBy: config.ZoneBy, Pools: config.Pools, Reserved: config.Reserved}, info: machine.Resctrl}
	if groups != nil {
		state.info, state.settings.Foreign = &groups.Info, caches.ForeignGroups(*groups)
	}
	if config.Options != nil {
		state.settings.Options = config.Options()
	}
	mounted := *machine
	mounted.Resctrl = state.info
	node, err := caches.Of(&mounted, state.settings)
	if err != nil {
		state.why = fmt.Errorf("caches are not published: %w", err)
		return state
	}
	state.node = &node
	state.describe()
	return state
}

// Zones returns the cache in which each zone lies, by the zone's device.
func (s *Caches) Zones() map[string]int {
	if s.node == nil {
		return nil
	}
	return s.node.Zones
}

// describe makes the devices of the node.
func (s *Caches) describe() {
	devices, warnings := s.node.Devices(s.lost)
	s.devices, s.warnings = devices, slices.Concat(s.node.Warnings, warnings)
	if !s.settings.Pools.Restore {
		_, s.missing = s.node.Devices(nil)
	}
}

// Undone says why not all caches are divided; "" if they are, or should not be.
func (s *Caches) Undone() string {
	if s.node == nil && !errors.Is(s.why, errNotDivided) {
		return s.why.Error()
	}
	return strings.Join(slices.Concat(s.missing, s.unmade), "; ")
}

// same reports whether the machine is the same, and the kernel and other tools leave the
// same of it.
func (s *Caches) same(other *Caches) bool {
	return s.machine == other.machine && fmt.Sprint(s.why) == fmt.Sprint(other.why) &&
		slices.Equal(s.settings.Options, other.settings.Options) && reflect.DeepEqual(s.info, other.info) && reflect.DeepEqual(s.settings.Foreign, other.settings.Foreign)
}

// lookAtCaches reads the groups of resctrl, and what the machine then has for claims.
func lookAtCaches(machine *numa.Machine, config *Config) (groups numa.ResctrlState, state *Caches) {
	groups, err := config.Host.Read()
	var known *numa.ResctrlState
	if err == nil {
		known = &groups
	}
	withoutResctrl := *machine
	withoutResctrl.Resctrl = nil
	state = CachesOf(&withoutResctrl, config, known)
	state.machine = machine
	if err != nil && !errors.Is(err, resctrl.ErrNotMounted) && !errors.Is(state.why, errNotDivided) {
		state.why = fmt.Errorf("caches are not published: %w", err)
	}
	return groups, state
}

// WhyNone says why a node publishes no caches although its NodeConfig divides them; nil
// if it publishes them, or has no pools. config may be nil.
func WhyNone(machine *numa.Machine, config *Config) error {
	if config == nil || !config.Pools.Divides() {
		return nil
	}
	_, state := lookAtCaches(machine, config)
	return state.why
}

// Published returns the devices of the caches. A cache whose claims do not have what they
// should has a taint.
func (s *Caches) Published() []resourceapi.Device {
	devices := slices.Clone(s.devices)
	for i := range devices {
		cache, _, _ := caches.Parse(devices[i].Name)
		for key := range s.faults {
			if key.Cache == cache {
				devices[i].Taints = []resourceapi.DeviceTaint{deviceclasses.FaultTaint(deviceclasses.FaultWays)}
			}
		}
	}
	return devices
}

// AddProblems adds what claims do not get from caches.
func (s *Caches) AddProblems(problems map[string][]string, grants []ledger.Grant) {
	if len(s.faults) == 0 {
		return
	}
	for _, grant := range grants {
		for _, h := range holdings(grant) {
			if fault := s.faults[h.Key()]; fault != "" {
				problems[h.Device] = append(problems[h.Device], fmt.Sprintf("claim %s: %s", grant.FullName(), fault))
			}
		}
	}
}

// errNotDivided says that the NodeConfig has no pools.
var errNotDivided = errors.New("this node does not divide its caches: its NodeConfig has no pools of caches")

// Notes says what such a node does not publish of its caches, and why. It returns
// nothing without a config.
func Notes(machine numa.Machine, config *Config) []string {
	if config == nil {
		return nil
	}
	state := CachesOf(&machine, config, nil)
	if state.node == nil {
		return []string{state.why.Error()}
	}
	return state.warnings
}
