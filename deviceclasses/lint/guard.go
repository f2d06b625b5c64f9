package lint

import (
	"context"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
)

// driverName is the driver whose objects are looked at.
const driverName = "dra.numa"

// compiledTexts is how many selectors stay compiled: more than clusters have
// classes.
const compiledTexts = 256

// Linter looks at objects. It may be used by several goroutines at a time.
type Linter struct {
	known    accounting.Known
	compiled *cel.Cache
	probes   []probe
}

// New returns a Linter that looks up what objects refer to.
func New(known accounting.Known) *Linter {
	features := cel.Features{EnableConsumableCapacity: true}
	return &Linter{known, cel.NewCache(compiledTexts, features), probes()}
}

// probe is a device that a selector has to bear. Fix is what to do if it does not,
// with the missing name.
type probe struct {
	device cel.Device
	fix    string
}

// probes are a device of somebody else's, which has no attribute, and some of ours
// with what all of their kind have.
func probes() []probe {
	text := func(value string) resourceapi.DeviceAttribute {
		return resourceapi.DeviceAttribute{StringValue: &value}
	}
	number := resourceapi.DeviceAttribute{IntValue: ptr.To(int64(0))}
	ours := func(kind string, attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) cel.Device {
		attributes["kind"] = text(kind)
		return cel.Device{Driver: driverName, AllowMultipleAllocations: ptr.To(kind == "zone"), Attributes: attributes}
	}
	zone := ours("zone", map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"threadsPerCore": number, "memoryTier": number, "coreType": text("standard"), "exclusivity": text("kernel"),
		"resource.kubernetes.io/numaNode": number, "dra.net/numaNode": number, "gpu.amd.com/numaNode": number,
	})
	zone.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"cpu": {Value: resource.MustParse("1")}, "memory": {Value: resource.MustParse("1Gi")},
	}
	return []probe{
		{cel.Device{Driver: "somebody.example.com"}, `begin with device.driver == "dra.numa" &&`},
		{zone, "read it with .?%s.orValue(...)"},
		{ours("pci", map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}), "read it with .?%s.orValue(...)"},
	}
}

// guards finds selectors that stop the scheduler at a device. The scheduler
// evaluates one after the other, those of the class first, until one does not
// match.
func (l *Linter) guards(field string, class, own []resourceapi.DeviceSelector) []Finding {
	for _, probe := range l.probes {
		if matched, _ := l.matches(class, probe.device); !matched {
			continue // the scheduler does not get to the request's own, or stops at the class
		}
		for i := range own {
			matched, missing := l.matches(own[i:i+1], probe.device)
			if missing != "" {
				fix := strings.ReplaceAll(probe.fix, "%s", missing)
				return []Finding{warn(MissingGuard, fmt.Sprintf("%s[%d].cel.expression", field, i),
					"it reads %s, without which a device stops the scheduler: %s", missing, fix)}
			}
			if !matched {
				break
			}
		}
	}
	return nil
}

// matches reports whether all selectors match, or the name that one of them misses.
// One that does not compile is the API server's to refuse.
func (l *Linter) matches(selectors []resourceapi.DeviceSelector, device cel.Device) (matched bool, missing string) {
	for _, selector := range selectors {
		if selector.CEL == nil {
			return false, ""
		}
		compiled := l.compiled.GetOrCompile(selector.CEL.Expression)
		if compiled.Error != nil {
			return false, ""
		}
		matched, _, err := compiled.DeviceMatches(context.Background(), device)
		if err != nil {
			return false, missingName(err)
		}
		if !matched {
			return false, ""
		}
	}
	return true, ""
}

// missingName is the name in the error of CEL, "" if the error is another one.
func missingName(err error) string {
	_, rest, found := strings.Cut(err.Error(), "no such key: ")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, " ")
	return strings.TrimRight(name, ".,;:)")
}
