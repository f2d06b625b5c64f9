package quota

import (
	"fmt"
	"math"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// mixed are classes that select zones and devices of other drivers, or of other kinds.
func mixed() map[string]string {
	return map[string]string{
		"ours":   `device.driver == "dra.numa"`,
		"either": `device.driver in ["dra.numa", "dra.cpu"]`,
		"any":    `true`,
		"loose":  `device.attributes["dra.numa"].?threadsPerCore.orValue(0) + device.attributes["dra.cpu"].?threadsPerCore.orValue(0) > 0`,
		"shared": `device.allowMultipleAllocations`,
	}
}

// classesOf are the driver's classes, those of administrators and of other drivers.
func classesOf(t *testing.T) inventory.Classes {
	t.Helper()
	classes := inventory.Classes(object.Classes(t))
	const zone = `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"`
	const cpus = `device.capacity["dra.numa"].?cpu.orValue(quantity("0"))`
	for _, list := range []map[string]string{mixed(), {
		"large":            zone + ` && ` + cpus + `.isGreaterThan(quantity("5")) && ` + cpus + `.isLessThan(quantity("1000"))`,
		"odd":              zone + ` && device.attributes["dra.numa"].threadsPerCore * 5 == 10`,
		"range":            `device.driver == "dra.numa" && ` + cpus + `.isGreaterThan(quantity("3")) && ` + cpus + `.isLessThan(quantity("500"))`,
		"hidden":           `device.attributes["dra.numa"].?memoryTier.orValue(-1) * 3 == 12 || device.attributes["dra.numa"].?threadsPerCore.orValue(0) * 5 == 10`,
		"no-zone":          `device.driver == "dra.numa" && !(device.attributes["dra.numa"].kind in ["zone", "isolated"])`,
		cpuDriver:          `device.driver == "dra.cpu"`,
		gpuDriver:          `device.driver == "gpu.example.com"`,
		"gpu-by-attribute": `device.attributes["gpu.example.com"].?model.orValue("") == "H100"`,
		"broken":           `device.driver`,
	}} {
		for name, expression := range list {
			classes[name] = &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{Selectors: selecting(expression)}}
		}
	}
	return classes
}

func selecting(expressions ...string) (list []resourceapi.DeviceSelector) {
	for _, expression := range expressions {
		list = append(list, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return list
}

// claim makes up a claim for devices of a node.
func (n *node) claim(r random, name string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
	for i := range weighted(r, []choice[int]{{70, 1}, {25, 2}, {5, 3}}) {
		request := resourceapi.DeviceRequest{Name: fmt.Sprintf("r%d", i)}
		if r.chance(25) {
			for j := range 2 + r.IntN(2) {
				one := n.request(r)
				request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
					Name: fmt.Sprintf("s%d", j), DeviceClassName: one.DeviceClassName, Selectors: one.Selectors,
					AllocationMode: one.AllocationMode, Count: one.Count, Capacity: one.Capacity,
				})
			}
		} else {
			request.Exactly = n.request(r)
			request.Exactly.AdminAccess = ptr.To(r.chance(2))
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
	}
	if r.chance(8) {
		attribute := resourceapi.FullyQualifiedName(deviceclasses.AttributeNUMANode)
		claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &attribute}}
	}
	return claim
}

func (n *node) request(r random) *resourceapi.ExactDeviceRequest {
	request := &resourceapi.ExactDeviceRequest{
		DeviceClassName: weighted(r, []choice[string]{
			{36, "zone.dra.numa"},
			{2, "isolated.dra.numa"},
			{7, "large"},
			{6, "odd"},
			{5, "range"},
			{3, "hidden"},
			{1, "no-zone"},
			{12, "ours"},
			{9, "either"},
			{9, "any"},
			{4, "loose"},
			{4, "shared"},
			{3, "cache.dra.numa"},
			{3, "gpu.dra.numa"},
			{6, cpuDriver},
			{4, gpuDriver},
			{1, "gpu-by-attribute"},
			{1, "broken"},
			{1, "absent"},
		}),
		AllocationMode: resourceapi.DeviceAllocationModeExactCount,
		Count:          weighted(r, []choice[int64]{{80, 1}, {8, 2}, {3, 4}, {1, 32}, {1, 33}, {2, 1 << 61}, {2, 1 << 62}, {1, math.MaxInt64}}),
	}
	if r.chance(3) {
		request.AllocationMode, request.Count = resourceapi.DeviceAllocationModeAll, 0
	}
	_, isMixed := mixed()[request.DeviceClassName]
	for range weighted(r, []choice[int]{{55, 0}, {40, 1}, {5, 2}}) {
		request.Selectors = append(request.Selectors, selecting(pick(r, n.selectors...))...)
	}
	if isMixed && r.chance(50) {
		request.Selectors = append(request.Selectors, selecting(pick(r, `device.driver == "dra.numa"`, `"dra.numa" == device.driver`))...)
	}
	if r.chance(1) {
		request.Selectors = append(request.Selectors, selecting("nonsense")...)
	}
	request.Capacity = n.capacity(r)
	return request
}

func (n *node) capacity(r random) *resourceapi.CapacityRequirements {
	requests := map[resourceapi.QualifiedName]resource.Quantity{}
	if r.chance(80) {
		requests["cpu"] = quantity(pick(r, "1", "2", "3", "4", "500m", "2500m", "7", "8", "12", "20", "40", "0"))
	}
	if r.chance(30) {
		requests["memory"] = quantity(pick(r, "1", "1Gi", "1500M", "3Gi", "16Gi", "1000000"))
	}
	if len(n.hugepages) > 0 && r.chance(15) {
		requests[pick(r, n.hugepages...)] = quantity(pick(r, "1", "1Mi", "3Mi", "1Gi"))
	}
	if r.chance(2) {
		requests[pick[resourceapi.QualifiedName](r, "ways", "dra.numa/cpu", "dra.numa/memory", "dra.cpu/cpu", "hugepages7Ei", "cpus", "CPU")] = quantity("4")
	}
	if r.chance(1) {
		requests["cpu"] = quantity(pick(r, "9223372036854775807", "18446744073709551616", "1e30", "-4", "70368744177664"))
	}
	if len(requests) == 0 {
		return nil
	}
	return &resourceapi.CapacityRequirements{Requests: requests}
}
