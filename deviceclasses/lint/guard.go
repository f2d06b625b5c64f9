package lint

import (
	"context"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
)

// compiledTexts is how many selectors stay compiled: more than the classes of a cluster
// have.
const compiledTexts = 256

// Linter checks objects. Several goroutines can use it at the same time.
type Linter struct {
	known    accounting.Known
	compiled *cel.Cache
	probes   []probe
}

// New returns a Linter that looks up in known what objects refer to.
func New(known accounting.Known) *Linter {
	features := cel.Features{EnableConsumableCapacity: true}
	return &Linter{known, cel.NewCache(compiledTexts, features), probes()}
}

// probe is a device for which no selector may fail. fix says what to do if a selector
// fails, with %s for the missing name.
type probe struct {
	device cel.Device
	fix    string
}

// probes are a device of another driver without attributes, and devices of this driver
// with the attributes that all devices of their kind have.
func probes() []probe {
	text := func(value string) resourceapi.DeviceAttribute {
		return resourceapi.DeviceAttribute{StringValue: &value}
	}
	number := resourceapi.DeviceAttribute{IntValue: ptr.To(int64(0))}
	zone := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		deviceclasses.AttributeKind: text(deviceclasses.KindZone), deviceclasses.AttributeCoreType: text("standard"),
		deviceclasses.AttributeExclusivity:    text(deviceclasses.ExclusivityKernel),
		deviceclasses.AttributeThreadsPerCore: number, deviceclasses.AttributeMemoryTier: number,
	}
	for _, name := range deviceclasses.NUMANodeAttributes() {
		zone[name] = number
	}
	pci := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{deviceclasses.AttributeKind: text("pci")}
	capacity := map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		deviceclasses.CapacityCPU: {Value: resource.MustParse("1")}, deviceclasses.CapacityMemory: {Value: resource.MustParse("1Gi")},
	}
	const ours, optional = deviceclasses.DriverName, "read it with .?%s.orValue(...)"
	return []probe{
		{cel.Device{Driver: "other.example.com"}, fmt.Sprintf("begin with device.driver == %q &&", ours)},
		{cel.Device{Driver: ours, AllowMultipleAllocations: ptr.To(true), Attributes: zone, Capacity: capacity}, optional},
		{cel.Device{Driver: ours, AllowMultipleAllocations: ptr.To(false), Attributes: pci}, optional},
	}
}

// guards finds selectors that make the scheduler give up at a device. The scheduler
// evaluates the selectors one after the other, those of the class first, until one does
// not match.
func (l *Linter) guards(field string, class, own []resourceapi.DeviceSelector) []Finding {
	for _, probe := range l.probes {
		if matched, _ := l.matches(class, probe.device); !matched {
			continue // the scheduler does not evaluate own selectors, or fails at the class
		}
		for i := range own {
			matched, missing := l.matches(own[i:i+1], probe.device)
			if missing != "" {
				fix := strings.ReplaceAll(probe.fix, "%s", missing)
				return []Finding{warn(MissingGuard, fmt.Sprintf("%s[%d].cel.expression", field, i),
					"it reads %s, and the scheduler gives up on the pod if a device lacks that: %s", missing, fix)}
			}
			if !matched {
				break
			}
		}
	}
	return nil
}

// matches reports whether all selectors match, or the name that one of them misses. A
// selector that does not compile is refused by the API server.
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

// missingName is the name in a CEL error; "" for other errors.
func missingName(err error) string {
	_, rest, found := strings.Cut(err.Error(), "no such key: ")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, " ")
	return strings.TrimRight(name, ".,;:)")
}
