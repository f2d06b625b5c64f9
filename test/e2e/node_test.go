package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// testNode is the node under test and what it publishes.
type testNode struct {
	name  string
	zones []publishedZone // in order of their NUMA node

	// The scheduler counts what claims hold in the node's allocatable (the feature gate
	// DRANodeAllocatableResources): pods do not request it, and cannot share a claim.
	counts bool
}

// publishedZone is a zone as its ResourceSlice says.
type publishedZone struct {
	device         string
	id             int // NUMA node
	cpus           int
	threadsPerCore int
	hugepages2Mi   int64 // bytes
	hugepages1Gi   int64 // bytes
}

// readNode returns the first node, by name, that publishes a zone with CPUs.
func readNode(ctx context.Context) testNode {
	GinkgoHelper()
	slicesList, err := cluster.Kubernetes.ResourceV1().ResourceSlices().List(ctx, slicesOf(driverName))
	Expect(err).NotTo(HaveOccurred())
	var found testNode
	for _, slice := range slicesList.Items {
		if slice.Spec.NodeName == nil || found.name != "" && *slice.Spec.NodeName > found.name {
			continue
		}
		if *slice.Spec.NodeName != found.name {
			found = testNode{name: *slice.Spec.NodeName}
		}
		for _, device := range slice.Spec.Devices {
			found.counts = found.counts || len(device.NodeAllocatableResources) > 0
			if zone, ok := readZone(device); ok {
				found.zones = append(found.zones, zone)
			}
		}
	}
	slices.SortFunc(found.zones, func(a, b publishedZone) int { return cmp.Compare(a.id, b.id) })
	return found
}

// readZone reads a zone that has CPUs. Isolated CPUs are not a zone.
func readZone(device resourceapi.Device) (publishedZone, bool) {
	if kind := deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeKind).StringValue; kind == nil || *kind != "zone" {
		return publishedZone{}, false
	}
	cpus := device.Capacity["cpu"].Value
	id := device.Attributes["resource.kubernetes.io/numaNode"].IntValue
	threads := deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeThreadsPerCore).IntValue
	if cpus.IsZero() || id == nil || threads == nil {
		return publishedZone{}, false
	}
	huge, gigantic := device.Capacity["hugepages2Mi"].Value, device.Capacity["hugepages1Gi"].Value
	return publishedZone{
		device: device.Name, id: int(*id), cpus: int(cpus.Value()),
		threadsPerCore: int(*threads), hugepages2Mi: huge.Value(), hugepages1Gi: gigantic.Value(),
	}, true
}

// checkNode compares what the driver publishes with the kernel's machine: no
// spec may stand on a wrong slice.
func checkNode(s kernel.Snapshot) {
	GinkgoHelper()
	for _, zone := range node.zones {
		machineZone, ok := s.Zone(zone.id)
		Expect(ok).To(BeTrue(), "device %s: the kernel has no NUMA node %d", zone.device, zone.id)
		Expect(zone.cpus).To(BeNumerically("<=", machineZone.CPUs.Intersection(s.Online).Size()),
			"device %s publishes more CPUs than NUMA node %d has online", zone.device, zone.id)
	}
}

// zoneOf returns the published zone of a device.
func zoneOf(device string) publishedZone {
	GinkgoHelper()
	for _, zone := range node.zones {
		if zone.device == device {
			return zone
		}
	}
	Fail("node " + node.name + " publishes no device " + device)
	return publishedZone{}
}

// wholeZone returns a zone that publishes every CPU of its NUMA node and can
// hold at least two claims of one core each, and these CPUs.
func wholeZone(s kernel.Snapshot) (publishedZone, cpuset.Set) {
	GinkgoHelper()
	for _, zone := range node.zones {
		machineZone, ok := s.Zone(zone.id)
		if ok && zone.cpus == machineZone.CPUs.Size() && zone.cpus >= 2*zone.threadsPerCore {
			return zone, machineZone.CPUs
		}
	}
	lacks("node %s publishes no whole zone of two cores", node.name)
	return publishedZone{}, cpuset.Set{}
}

// kubeletReserved returns the kubelet's reservedSystemCPUs.
func kubeletReserved(ctx context.Context) cpuset.Set {
	GinkgoHelper()
	var answer struct {
		KubeletConfig struct {
			ReservedSystemCPUs string `json:"reservedSystemCPUs"`
		} `json:"kubeletconfig"`
	}
	data, err := cluster.Kubernetes.CoreV1().RESTClient().Get().
		Resource("nodes").Name(node.name).SubResource("proxy").Suffix("configz").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(data, &answer)).To(Succeed())
	reserved, err := cpuset.Parse(answer.KubeletConfig.ReservedSystemCPUs)
	Expect(err).NotTo(HaveOccurred())
	return reserved
}
