package caches

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// What the API server takes: validateRequestPolicy in pkg/apis/resource/validation of
// Kubernetes 1.37. Amounts are whole numbers here.
func checkDevice(device resourceapi.Device) error {
	if problems := validation.IsDNS1123Label(device.Name); len(problems) > 0 {
		return fmt.Errorf("name %q: %s", device.Name, problems[0])
	}
	if len(device.Attributes)+len(device.Capacity) > resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		return fmt.Errorf("%d attributes and %d capacities", len(device.Attributes), len(device.Capacity))
	}
	for _, name := range capacities(device) {
		if err := checkCapacity(device.Capacity[name]); err != nil {
			return fmt.Errorf("capacity %s: %w", name, err)
		}
	}
	return nil
}

func checkCapacity(capacity resourceapi.DeviceCapacity) error {
	value, policy := capacity.Value.Value(), capacity.RequestPolicy
	usual := policy.Default.Value()
	if value < 1 || (policy.ValidRange == nil) == (len(policy.ValidValues) == 0) || len(policy.ValidValues) > 10 {
		return fmt.Errorf("value %d, policy %+v", value, policy)
	}
	found, last := policy.ValidRange != nil, int64(0)
	for _, valid := range policy.ValidValues {
		if valid.Value() <= last || valid.Value() > value {
			return fmt.Errorf("valid value %d after %d, of %d", valid.Value(), last, value)
		}
		last, found = valid.Value(), found || valid.Value() == usual
	}
	if !found {
		return fmt.Errorf("default %d is not valid", usual)
	}
	if valid := policy.ValidRange; valid != nil {
		least, step := valid.Min.Value(), valid.Step.Value()
		most := usual // there is no maximum but the value
		if valid.Max != nil {
			most = valid.Max.Value()
		}
		if least < 1 || step < 1 || least+step > value || usual < least || most < usual || valid.Max != nil && most > value || (usual-least)%step != 0 || (most-least)%step != 0 {
			return fmt.Errorf("value %d: default %d, %d to %d in steps of %d", value, usual, least, most, step)
		}
	}
	return nil
}

// Whatever the machine, the pools and the other tools are, there is a reason why caches
// are not published, or the API server takes them.
func TestPublishedCachesAreWhatTheAPITakes(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	published, refused := 0, 0
	var machine numa.Machine
	for i := range 2000 {
		if i%40 == 0 {
			machine = randomMachine(t, random)
		}
		settings := randomSettings(random, bits.OnesCount64(machine.Resctrl.Caches[0].Mask))
		if settings.Pools.Validate() != nil {
			continue
		}
		node, err := Of(&machine, settings)
		if err != nil {
			refused++
			continue
		}
		devices, warnings := node.Devices(nil)
		if len(devices)+len(warnings) != len(node.Pools) {
			t.Fatalf("seed %d: %d pools, %d devices, warnings %q", seed, len(node.Pools), len(devices), warnings)
		}
		for _, device := range devices {
			published++
			if err := checkDevice(device); err != nil {
				t.Fatalf("seed %d: %s of %+v: %v", seed, device.Name, settings.Pools, err)
			}
		}
	}
	if published < 300 || refused < 100 {
		t.Errorf("seed %d: %d devices, %d times none", seed, published, refused)
	}
}

// base is a machine that is read once: only what resctrl offers differs.
var base = fake.Machine{Sockets: 2, CoresPerSocket: 2, Resctrl: &fake.Resctrl{CLOSIDs: 16, Ways: 20, MinBandwidth: 10, BandwidthStep: 10}}

func randomMachine(t testing.TB, random *rand.Rand) numa.Machine {
	t.Helper()
	made := base
	made.Resctrl = &fake.Resctrl{CLOSIDs: 1 + random.IntN(16), Ways: 1 + random.IntN(32), Sparse: random.IntN(4) == 0}
	if random.IntN(3) == 0 {
		made.Resctrl.ShareableMask = (uint64(3) << random.IntN(32)) & (1<<made.Resctrl.Ways - 1)
	}
	if random.IntN(4) > 0 {
		made.Resctrl.MinBandwidth, made.Resctrl.BandwidthStep = 1+random.IntN(60), 1+random.IntN(30)
	}
	machine, err := numa.Read(made.FS())
	if err != nil {
		t.Fatal(err)
	}
	machine.Resctrl.Caches[0].MinBits = random.IntN(4)
	if len(machine.Resctrl.Bandwidths) > 0 && random.IntN(4) == 0 {
		machine.Resctrl.Bandwidths[0] = amd
	}
	return machine
}

func randomSettings(random *rand.Rand, most int) Settings {
	number := func() int { return random.IntN(1 + most/2) }
	var s Settings
	if random.IntN(4) == 0 {
		s.Options = countsMBps
	}
	s.Pools.OS = &deviceclasses.CacheWays{Ways: 1 + random.IntN(2)}
	exclusive := func() deviceclasses.ExclusivePool {
		p := deviceclasses.ExclusivePool{Ways: 1 + number(), Classes: max(0, random.IntN(9)-4)}
		if random.IntN(3) == 0 {
			p.DefaultBandwidthPercent, p.DefaultBandwidthMBps = 1+random.IntN(100), 1+random.IntN(300000)
		}
		return p
	}
	if random.IntN(4) > 0 {
		p := &deviceclasses.GuaranteedPool{ExclusivePool: exclusive()}
		for ways := 1; ways <= p.Ways && random.IntN(3) > 0; ways += 1 + random.IntN(3) {
			p.ValidWays = append(p.ValidWays, ways)
		}
		if random.IntN(2) == 0 {
			p.DefaultWays = 1 + random.IntN(p.Ways)
		}
		s.Pools.Guaranteed = p
	}
	if random.IntN(2) == 0 {
		p := &deviceclasses.BestEffortPool{ExclusivePool: exclusive()}
		if random.IntN(2) == 0 {
			p.DefaultMaxWays = 1 + random.IntN(p.Ways)
			p.DefaultMinWays = 1 + random.IntN(p.DefaultMaxWays)
		}
		s.Pools.BestEffort = p
	}
	if random.IntN(2) == 0 {
		s.Pools.Shared = &deviceclasses.SharedPool{Ways: 1 + random.IntN(3), Members: 1 + random.IntN(20)}
	}
	for i := range random.IntN(3) {
		s.Foreign = append(s.Foreign, Group{fmt.Sprint(i), map[int]ways.Mask{random.IntN(2): ways.Mask(random.Uint64() & random.Uint64() & (1<<most - 1))}})
	}
	return s
}
