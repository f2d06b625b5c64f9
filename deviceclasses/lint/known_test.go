package lint

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// objects are the driver's classes, classes of another driver, and the claims "four" and
// "two" with as many CPUs.
type objects map[string]*resourceapi.DeviceClass

func known(t *testing.T) objects {
	t.Helper()
	all := objects(object.Classes(t))
	for name, expression := range map[string]string{"nic": `device.driver == "nic.example.com"`, "any": "true"} {
		class := read[resourceapi.DeviceClass](t, `{spec: {selectors: [{cel: {expression: '`+expression+`'}}]}}`)
		all[name] = &class
	}
	return all
}

func (o objects) DeviceClass(name string) *resourceapi.DeviceClass { return o[name] }

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

func (o objects) ResourceClaimTemplate(string, string) *resourceapi.ResourceClaimTemplate { return nil }

func (o objects) Steps() accounting.Steps {
	return accounting.Steps{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Mi"), "hugepages2Mi": resource.MustParse("2Mi")}
}

func (o objects) Selectors() *probe.Selectors { return probe.New() }

// read reads an object in YAML.
func read[T any](t *testing.T, text string) (object T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return object
}

// findingsOf checks an object of a kind. text is the devices of a claim or template, or
// the spec of a class or pod, in YAML.
func findingsOf(t *testing.T, linter *Linter, kind, text string) []Finding {
	t.Helper()
	switch kind {
	case "claim":
		claim := &resourceapi.ResourceClaim{}
		claim.Spec.Devices = read[resourceapi.DeviceClaim](t, text)
		return linter.Claim(claim)
	case "template":
		template := &resourceapi.ResourceClaimTemplate{}
		template.Spec.Spec.Devices = read[resourceapi.DeviceClaim](t, text)
		return linter.Template(template)
	case "class":
		return linter.Class(&resourceapi.DeviceClass{Spec: read[resourceapi.DeviceClassSpec](t, text)})
	}
	return linter.Pod(&corev1.Pod{Spec: read[corev1.PodSpec](t, text)})
}
