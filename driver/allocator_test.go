package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// scheduler allocates what one node publishes, as the Kubernetes 1.37 scheduler does
// with default feature gates.
type scheduler struct {
	t       testing.TB
	slices  []*resourceapi.ResourceSlice
	classes inventory.Classes
	held    map[string]bool // devices that claims have as a whole
}

func newScheduler(t testing.TB, machine numa.Machine, include ...string) *scheduler {
	t.Helper()
	s := &scheduler{t: t, classes: object.Classes(t), held: map[string]bool{}}
	pool := Resources(node, Devices(machine, withAttached(t, include...), nil)).Pools[node]
	for i, part := range pool.Slices {
		s.slices = append(s.slices, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%d-%s", i, node)},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: Name, NodeName: new(node),
				Pool:    resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(pool.Slices))},
				Devices: part.Devices, SharedCounters: part.SharedCounters,
			},
		})
	}
	return s
}

// allocate returns the devices that a claim gets, in the order of its requests; "" if
// it gets none.
func (s *scheduler) allocate(spec resourceapi.DeviceClaim) string {
	s.t.Helper()
	held, features := allocation.NewState(), allocation.DefaultFeatures()
	for device := range s.held {
		held.AddDevices(allocation.MakeDeviceID(Name, node, device))
	}
	allocator, err := allocation.NewAllocator(s.t.Context(), features, held, s.classes, allocation.NewSlices(s.slices), allocation.NewCache(10, features))
	if err != nil {
		s.t.Fatal(err)
	}
	here := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	results, err := allocator.Allocate(s.t.Context(), here, []*resourceapi.ResourceClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default"}, Spec: resourceapi.ResourceClaimSpec{Devices: spec},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, result := range results {
		for _, given := range result.Devices.Results {
			names = append(names, given.Device)
			if given.ShareID == nil {
				s.held[given.Device] = true
			}
		}
	}
	return strings.Join(names, " ")
}

// free gives a device back.
func (s *scheduler) free(device string) { delete(s.held, device) }

// request asks for count devices of one of our classes that fulfil a condition.
func request(name, class string, count int64, condition ...string) resourceapi.DeviceRequest {
	exactly := &resourceapi.ExactDeviceRequest{
		DeviceClassName: class + ".dra.numa", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}
	if class == deviceclasses.KindZone {
		exactly.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{deviceclasses.CapacityCPU: resource.MustParse("8")}}
	}
	for _, text := range condition {
		exactly.Selectors = append(exactly.Selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: text}})
	}
	return resourceapi.DeviceRequest{Name: name, Exactly: exactly}
}

// same requires that all devices have the same value of an attribute.
func same(attribute string) resourceapi.DeviceConstraint {
	return resourceapi.DeviceConstraint{MatchAttribute: new(resourceapi.FullyQualifiedName(attribute))}
}

const isVirtual = `device.attributes["dra.numa"].virtualFunction`

func TestSchedulerNeverGivesAFunctionAndItsVirtualOnes(t *testing.T) {
	card := func(condition string) resourceapi.DeviceClaim {
		return resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{request("card", "nic", 1, condition)}}
	}
	physical, virtual := card(`!`+isVirtual), card(isVirtual)
	s := newScheduler(t, sample.Machine(t, "epyc-mi300x"), "true") // two cards with 8 virtual functions each
	if got := s.allocate(virtual); got != "nic-0000-09-00-1" {
		t.Fatalf("the first virtual function is %q", got)
	}
	if got := s.allocate(physical); got != "nic-0000-89-00-0" {
		t.Errorf("with a virtual function of 0000:09:00.0 in use, the physical one is %q", got)
	}
	if got := s.allocate(physical); got != "" {
		t.Errorf("with both cards in use, there is %q", got)
	}
	for vf := 2; vf <= 8; vf++ {
		if got := s.allocate(virtual); !strings.HasPrefix(got, "nic-0000-09-") {
			t.Errorf("virtual function %d is %q", vf, got)
		}
	}
	if got := s.allocate(virtual); got != "" {
		t.Errorf("of a card that is in use itself there is %q", got)
	}
	s.free("nic-0000-89-00-0")
	if got := s.allocate(virtual); got != "nic-0000-89-00-1" {
		t.Errorf("of a card that is free again there is %q", got)
	}
}

func TestSchedulerAlignsAttachedDevices(t *testing.T) {
	const numaNode, pcieRoot, socket = "resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot", "dra.numa/socket"
	for name, row := range map[string]struct {
		machine string
		claim   resourceapi.DeviceClaim
		want    string
	}{
		"CPUs and a GPU on one NUMA node": {"epyc-2s-nps4", resourceapi.DeviceClaim{
			Requests:    []resourceapi.DeviceRequest{request("cpus", "zone", 1), request("gpu", "gpu", 1)},
			Constraints: []resourceapi.DeviceConstraint{same(numaNode)},
		}, "numa-0 gpu-0000-25-00-0"},
		"a GPU and a card under one PCIe root, CPUs on their NUMA node": {"dgx-h100", resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{
				request("cpus", "zone", 1), request("gpu", "gpu", 1, `device.attributes["resource.kubernetes.io"].numaNode == 1`), request("card", "nic", 1),
			},
			Constraints: []resourceapi.DeviceConstraint{same(numaNode), {Requests: []string{"gpu", "card"}, MatchAttribute: new(resourceapi.FullyQualifiedName(pcieRoot))}},
		}, "numa-1 gpu-0000-98-00-0 nic-0000-9a-00-0"},
		"CPUs and a GPU on one socket, on different NUMA nodes": {"epyc-2s-nps4", resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{
				request("cpus", "zone", 1, `device.attributes["resource.kubernetes.io"].numaNode == 3`), request("gpu", "gpu", 1),
			},
			Constraints: []resourceapi.DeviceConstraint{same(socket)},
		}, "numa-3 gpu-0000-01-00-0"},
		"virtual functions of distinct cards": {"epyc-mi300x", resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{request("cards", "nic", 2, isVirtual)},
			Constraints: []resourceapi.DeviceConstraint{
				{DistinctAttribute: new(resourceapi.FullyQualifiedName("dra.numa/physicalFunction"))},
			},
		}, "nic-0000-09-00-1 nic-0000-89-00-1"},
		"a drive that nobody knows where it is, with a constraint": {"epyc-mi300x", resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{
				request("drive", "nvme", 1, `device.attributes["resource.kubernetes.io"].pciBusID == "0000:c1:00.0"`), request("gpu", "gpu", 1),
			},
			Constraints: []resourceapi.DeviceConstraint{same(numaNode)},
		}, ""},
		"the same without": {"epyc-mi300x", resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{request("drive", "nvme", 1)},
		}, "nvme-0000-c1-00-0"},
		"CPUs alone, away from GPUs": {"epyc-2s-nps4", resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{request("cpus", "zone", 1)},
		}, "numa-1"},
	} {
		s := newScheduler(t, sample.Machine(t, row.machine), `device.attributes["dra.numa"].kind != "nvme" || device.attributes["dra.numa"].driver == "nvme"`)
		if row.machine == "epyc-2s-nps4" {
			s = newScheduler(t, sample.Machine(t, row.machine), `device.attributes["dra.numa"].kind == "gpu"`)
		}
		start := time.Now()
		if got := s.allocate(row.claim); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
		t.Logf("%s: %v", name, time.Since(start))
	}
}

// The expressions of classes are evaluated for every device of every driver. An error
// would keep the pod Pending on every node.
func TestEachPublishedDeviceIsInOneClass(t *testing.T) {
	classes := object.Classes(t)
	for _, preset := range []string{"dgx-h100", "epyc-mi300x", "epyc-2s-nps4", "cxl-expander", "rig"} {
		for _, device := range Devices(sample.Machine(t, preset), withAttached(t, "true"), nil) {
			kind, _, _ := strings.Cut(device.Name, "-")
			want := map[string]string{"numa": "zone.dra.numa"}[kind]
			if want == "" {
				want = kind + ".dra.numa"
			}
			var in []string
			for name, class := range classes {
				if len(class.Spec.Config) > 0 {
					continue // it is for users of another class, and changes how they use the device
				}
				expression := class.Spec.Selectors[0].CEL.Expression
				selector, err := allocation.Compile(expression)
				if err != nil {
					t.Fatal(err)
				}
				matches, _, err := selector.Matches(t.Context(), allocation.NewDevice(Name, &device))
				if err != nil {
					t.Errorf("class %s on %s of %s: %v", name, device.Name, preset, err)
				}
				if matches {
					in = append(in, name)
				}
			}
			if !slices.Equal(in, []string{want}) {
				t.Errorf("%s of %s is in classes %v, want %s", device.Name, preset, in, want)
			}
		}
	}
}
