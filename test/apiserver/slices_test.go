// Package apiserver has a real API server take what the driver publishes. It
// needs a control plane without nodes and skips where the environment names
// none: APISERVER_KUBECONFIG for one with default feature gates,
// GATES_OFF_KUBECONFIG for one with DRAConsumableCapacity off,
// ALLOCATABLE_KUBECONFIG for one with DRANodeAllocatableResources and
// LISTS_KUBECONFIG for one with DRAListTypeAttributes on.
package apiserver

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// clientFor returns a client of the cluster whose kubeconfig the environment
// variable names.
func clientFor(t *testing.T, variable string) kubernetes.Interface {
	t.Helper()
	kubeconfig := os.Getenv(variable)
	if kubeconfig == "" {
		t.Skipf("%s names no kubeconfig; make apiserver starts a control plane and sets it", variable)
	}
	cluster, err := client.New(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Kubernetes
}

// publish creates the slices of a machine, with all PCI functions that there are, as
// those of the named node and returns what was sent, and what the server kept.
func publish(ctx context.Context, t *testing.T, api kubernetes.Interface, node string, machine numa.Machine) (sent, kept []resourceslice.Slice) {
	t.Helper()
	everything, err := attached.NewSelection(deviceclasses.DeviceSelection{Include: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	config := driver.Config{
		NodeName:       node,
		Reserved:       firstCore(machine),
		ReservedMemory: zones.Reservations{{Bytes: 64 << 20}},
		Exclusivity:    driver.ExclusivityKernel,
		Attached:       everything,
		Caches: &dividing.Config{Pools: deviceclasses.CachePools{
			OS:         &deviceclasses.CacheWays{Ways: 1},
			Guaranteed: &deviceclasses.GuaranteedPool{ExclusivePool: deviceclasses.ExclusivePool{Ways: 4}, DefaultWays: 2, ValidWays: []int{1, 2, 4}},
			BestEffort: &deviceclasses.BestEffortPool{ExclusivePool: deviceclasses.ExclusivePool{Ways: 3}, DefaultMinWays: 1, DefaultMaxWays: 3},
			Shared:     &deviceclasses.SharedPool{Ways: 2, Members: 10},
		}},
	}
	sent = driver.Resources(node, driver.Devices(machine, config, nil)).Pools[node].Slices
	return sent, publishSlices(ctx, t, api, node, sent)
}

// publishSlices creates the slices of a node until the test ends, and returns what
// the server kept.
func publishSlices(ctx context.Context, t *testing.T, api kubernetes.Interface, node string, sent []resourceslice.Slice) (kept []resourceslice.Slice) {
	t.Helper()
	for i, part := range sent {
		slice := &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{GenerateName: node + "-"},
			Spec: resourceapi.ResourceSliceSpec{
				Driver:         driver.Name,
				NodeName:       &node,
				Pool:           resourceapi.ResourcePool{Name: node, ResourceSliceCount: int64(len(sent))},
				Devices:        part.Devices,
				SharedCounters: part.SharedCounters,
			},
		}
		created, err := api.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
		// The API server looks for the node in its own watch, which may be behind.
		for deadline := time.Now().Add(patience); apierrors.IsForbidden(err) && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			created, err = api.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatalf("create slice %d: %v", i, err)
		}
		t.Cleanup(func() {
			//nolint:usetesting // the test's own context has ended by now
			err := api.ResourceV1().ResourceSlices().Delete(context.Background(), created.Name, metav1.DeleteOptions{})
			if err != nil {
				t.Errorf("delete slice %s: %v", created.Name, err)
			}
		})
		read, err := api.ResourceV1().ResourceSlices().Get(ctx, created.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, resourceslice.Slice{Devices: read.Spec.Devices, SharedCounters: read.Spec.SharedCounters})
	}
	return kept
}

func firstCore(machine numa.Machine) cpuset.Set {
	if len(machine.Cores) == 0 {
		return cpuset.Set{}
	}
	return machine.Cores[0].CPUs
}

// nodeName makes a valid Node name of a recorded machine's file name.
func nodeName(archive string) string {
	return strings.NewReplacer("+", "-", "_", "-").Replace(strings.ToLower(archive))
}

func TestServerKeepsEveryFieldOfOurSlices(t *testing.T) {
	api := clientFor(t, "APISERVER_KUBECONFIG")
	machines := recorded(t)
	machines["rig-default"] = rigMachine()
	for _, preset := range fake.Presets() {
		machines[preset.Name] = sample.Machine(t, preset.Name)
	}
	devices, counters, caches := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		t.Run(name, func(t *testing.T) {
			sent, kept := publish(t.Context(), t, api, nodeName(name), machines[name])
			if diff := cmp.Diff(sent, kept); diff != "" {
				t.Errorf("devices and counters (-sent +kept):\n%s", diff)
			}
			for _, slice := range kept {
				devices, counters = devices+len(slice.Devices), counters+len(slice.SharedCounters)
				for _, device := range slice.Devices {
					if kind := deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeKind).StringValue; kind != nil && *kind == deviceclasses.KindCache {
						caches++
					}
				}
			}
		})
	}
	t.Logf("%d machines, %d devices, %d of caches, %d counter sets", len(machines), devices, caches, counters)
	if devices < 10*len(machines) || counters == 0 || caches == 0 {
		t.Errorf("%d machines gave %d devices, %d of caches, and %d counter sets: most have no zone, or no PCI function", len(machines), devices, caches, counters)
	}
}

// TestRigMachineIsPublishedWhole keeps the test above from passing over
// machines that publish nothing.
func TestRigMachineIsPublishedWhole(t *testing.T) {
	api := clientFor(t, "APISERVER_KUBECONFIG")
	_, kept := publish(t.Context(), t, api, "rig-whole", rigMachine())
	var got []string
	for _, device := range kept[0].Devices {
		cpus := device.Capacity["cpu"].Value
		got = append(got, device.Name+": "+cpus.String())
	}
	want := []string{"numa-0: 2", "numa-1: 4", "numa-2: 4", "numa-3: 4"} // a core of zone 0 is reserved
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CPUs of the zones (-want +kept):\n%s", diff)
	}
}
