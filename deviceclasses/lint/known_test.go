package lint

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// objects are the driver's classes, classes that lock fields, classes of another driver,
// the claims "four" and "two" with as many CPUs, and the claim templates "mixed" with
// requests for a zone and a device of another driver, "near" with alternatives, and
// "pages" with hugepages.
type objects struct {
	classes   map[string]*resourceapi.DeviceClass
	selectors *probe.Selectors
}

func known(t *testing.T) objects {
	t.Helper()
	all := object.Classes(t)
	for name, expression := range map[string]string{"nic": `device.driver == "nic.example.com"`, "any": "true"} {
		all[name] = object.Parse[resourceapi.DeviceClass](t, `{spec: {selectors: [{cel: {expression: '`+expression+`'}}]}}`)
	}
	all["locked"] = object.Parse[resourceapi.DeviceClass](t, `{spec: {selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"'}}],
		config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: isolated, locked: [partition, mixed]}}}]}}`)
	all["own-cache"] = object.Parse[resourceapi.DeviceClass](t, `{spec: {selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "cache"'}}],
		config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: CacheConfig, locked: [ways, bandwidth, maxWays]}}}]}}`)
	return objects{all, probe.New()}
}

func (o objects) DeviceClass(name string) *resourceapi.DeviceClass { return o.classes[name] }

func (o objects) ResourceClaim(_, name string) *resourceapi.ResourceClaim {
	if name != "four" && name != "two" {
		return nil
	}
	cpus := map[string]string{"four": "4", "two": "2"}[name]
	return &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
		Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{
			Request: "zone", Driver: deviceclasses.DriverName,
			ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse(cpus)},
		}}},
	}}}
}

func (o objects) ResourceClaimTemplate(_, name string) *resourceapi.ResourceClaimTemplate {
	requests, is := map[string]string{
		"mixed": `{name: cpus, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4}}}}, {name: nic, exactly: {deviceClassName: nic}}`,
		"near":  `{name: cpus, firstAvailable: [{name: one, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4}}}, {name: other, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4}}}]}`,
		"pages": `{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {hugepages2Mi: 4Mi, memory: 1Gi}}}}`,
	}[name]
	if !is {
		return nil
	}
	var template resourceapi.ResourceClaimTemplate
	if err := yaml.Unmarshal([]byte("spec: {spec: {devices: {requests: ["+requests+"]}}}"), &template); err != nil {
		panic(err)
	}
	return &template
}

func (o objects) Steps() accounting.Steps {
	return accounting.Steps{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Mi"), "hugepages2Mi": resource.MustParse("2Mi")}
}

func (o objects) Selectors() *probe.Selectors { return o.selectors }
