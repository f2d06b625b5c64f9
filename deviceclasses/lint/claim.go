package lint

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
)

// Claim looks at a claim.
func (l *Linter) Claim(claim *resourceapi.ResourceClaim) []Finding {
	return l.claimSpec("spec", claim.Spec)
}

// Template looks at the claims that a template is for.
func (l *Linter) Template(template *resourceapi.ResourceClaimTemplate) []Finding {
	return l.claimSpec("spec.spec", template.Spec.Spec)
}

// Class looks at a device class.
func (l *Linter) Class(class *resourceapi.DeviceClass) (findings []Finding) {
	for i, config := range class.Spec.Config {
		findings = append(findings, checkParameters(fmt.Sprintf("spec.config[%d]", i), config.DeviceConfiguration)...)
	}
	findings = append(findings, l.guards("spec.selectors", nil, class.Spec.Selectors)...)
	if class.Spec.ExtendedResourceName != nil && accounting.OfZones(class, nil) {
		findings = append(findings, warn(ExtendedZones, "spec.extendedResourceName", "a pod that asks for 1 gets a share of a zone with no CPUs and no memory: have it use a claim"))
	}
	return findings
}

func (l *Linter) claimSpec(path string, spec resourceapi.ResourceClaimSpec) (findings []Finding) {
	devices := path + ".devices"
	for i, config := range spec.Devices.Config {
		findings = append(findings, checkParameters(fmt.Sprintf("%s.config[%d]", devices, i), config.DeviceConfiguration)...)
	}
	asks := asksOf(devices, spec)
	oneFirst := map[string]bool{} // requests that prefer a share of one zone
	for _, ask := range asks {
		class := l.known.DeviceClass(ask.class)
		if class == nil {
			continue // what it selects is not known
		}
		findings = append(findings, l.guards(ask.field+".selectors", class.Spec.Selectors, ask.selectors)...)
		if accounting.OfZones(class, ask.selectors) {
			findings = append(findings, l.capacityKeys(ask)...)
			if !oneFirst[ask.request] {
				findings = append(findings, checkCount(ask)...)
			}
			oneFirst[ask.request] = oneFirst[ask.request] || ask.alternative && size(ask) == 1
		}
	}
	findings = append(findings, l.order(devices, spec, asks)...)
	return append(findings, l.texts(devices, asks)...)
}

// checkParameters refuses what the driver would refuse, and warns of what it
// refuses on some nodes.
func checkParameters(field string, config resourceapi.DeviceConfiguration) []Finding {
	if config.Opaque == nil || config.Opaque.Driver != deviceclasses.DriverName {
		return nil
	}
	decoded, err := deviceclasses.RequestConfig{}.DecodeOver(config.Opaque.Parameters.Raw)
	switch {
	case err != nil:
		return []Finding{{InvalidParameters, Error, field + ".opaque.parameters", err.Error()}}
	case decoded.Zone.L3 == deviceclasses.L3Require:
		return []Finding{warn(RequiredL3Waits, field+".opaque.parameters", "l3: the scheduler does not see caches, the pod would wait on a node where no single one has the CPUs free: write prefer")}
	}
	return nil
}

// ask is a request, or one of its alternatives.
type ask struct {
	field, request string
	alternative    bool // some other may be allocated instead
	class          string
	selectors      []resourceapi.DeviceSelector
	capacity       *resourceapi.CapacityRequirements
	mode           resourceapi.DeviceAllocationMode
	count          int64
}

func asksOf(devices string, spec resourceapi.ResourceClaimSpec) (asks []ask) {
	for i, request := range spec.Devices.Requests {
		field := fmt.Sprintf("%s.requests[%d]", devices, i)
		if r := request.Exactly; r != nil {
			asks = append(asks, ask{
				field + ".exactly", request.Name, false,
				r.DeviceClassName, r.Selectors, r.Capacity, r.AllocationMode, r.Count,
			})
		}
		for j, r := range request.FirstAvailable {
			asks = append(asks, ask{
				fmt.Sprintf("%s.firstAvailable[%d]", field, j), request.Name, true,
				r.DeviceClassName, r.Selectors, r.Capacity, r.AllocationMode, r.Count,
			})
		}
	}
	return asks
}

func (l *Linter) capacityKeys(ask ask) (findings []Finding) {
	if ask.capacity == nil {
		return nil
	}
	for _, key := range sortedKeys(ask.capacity.Requests) {
		field := fmt.Sprintf("%s.capacity.requests[%s]", ask.field, key)
		published := l.known.Steps()
		_, is := published[key]
		switch near := nearest(key); {
		case is:
		case !accounting.IsCapacity(key) && near != "":
			findings = append(findings, warn(UnknownCapacityKey, field, "no device publishes it, the pod would stay Pending: write %s", near))
		case !accounting.IsCapacity(key):
			findings = append(findings, warn(UnknownCapacityKey, field, "no device publishes it, the pod would stay Pending: zones have cpu, memory, hugepages2Mi and the like"))
		case len(published) > 0:
			findings = append(findings, warn(UnknownCapacityKey, field, "no node publishes it now, the pod would stay Pending"))
		}
	}
	return findings
}

// nearest is what was meant by a key that no zone has, "" if that is anybody's
// guess: the driver's name before it, a pod's name for hugepages, capitals.
func nearest(key resourceapi.QualifiedName) resourceapi.QualifiedName {
	_, name, qualified := strings.Cut(string(key), "/")
	if !qualified {
		name = string(key)
	}
	name = strings.ReplaceAll(name, "-", "")
	for _, candidate := range []string{name, strings.ToLower(name), strings.ToLower(strings.TrimSuffix(name, "s"))} {
		if accounting.IsCapacity(resourceapi.QualifiedName(candidate)) {
			return resourceapi.QualifiedName(candidate)
		}
	}
	return ""
}

func checkCount(ask ask) []Finding {
	if ask.mode == resourceapi.DeviceAllocationModeAll {
		return []Finding{warn(CountOnShared, ask.field+".allocationMode", "All is a share of every zone of the node")}
	}
	if ask.count > 1 {
		return []Finding{warn(CountOnShared, ask.field+".count", "%d shares of zones are on %d different NUMA nodes", ask.count, ask.count)}
	}
	return nil
}
