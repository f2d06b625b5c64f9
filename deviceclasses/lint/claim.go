package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Claim checks a claim.
func (l *Linter) Claim(claim *resourceapi.ResourceClaim) []Finding {
	return l.claimSpec("spec", claim.Spec)
}

// Template checks the claims that a template is for.
func (l *Linter) Template(template *resourceapi.ResourceClaimTemplate) []Finding {
	return l.claimSpec("spec.spec", template.Spec.Spec)
}

// Class checks a device class.
func (l *Linter) Class(class *resourceapi.DeviceClass) (findings []Finding) {
	for i, config := range class.Spec.Config {
		findings = append(findings, checkParameters(fmt.Sprintf("spec.config[%d]", i), config.Opaque, deviceclasses.RequestConfig.DecodeOver)...)
	}
	findings = append(findings, l.guards("spec.selectors", nil, class.Spec.Selectors)...)
	findings = append(findings, l.unknownPools("spec.selectors", nil, class.Spec.Selectors)...)
	if class.Spec.ExtendedResourceName == nil {
		return findings
	}
	switch whole := (ask{class: class.Name}); {
	case l.ofZones(class, whole):
		findings = append(findings, warn(ExtendedZones, "spec.extendedResourceName", "a pod that requests 1 gets a share of a zone without CPUs and memory: use a claim instead"))
	case l.possible(class, whole).OnlyCaches():
		findings = append(findings, fail(CacheWithoutCPUs, "spec.extendedResourceName", "a pod that requests 1 gets part of a cache and no CPUs that have it: use a claim instead"))
	}
	return findings
}

func (l *Linter) claimSpec(path string, spec resourceapi.ResourceClaimSpec) (findings []Finding) {
	devices := path + ".devices"
	for i, config := range spec.Devices.Config {
		findings = append(findings, checkParameters(fmt.Sprintf("%s.config[%d]", devices, i), config.Opaque, decodeClaim)...)
	}
	asks := asksOf(devices, spec)
	caches := newCacheClaim(devices, spec.Devices.Constraints)
	oneFirst := map[string]bool{} // requests whose first alternative is a share of one zone
	for _, ask := range asks {
		class := l.known.DeviceClass(ask.class)
		if class == nil {
			caches.unclear = true
			continue // what the class selects is not known
		}
		findings = append(findings, l.guards(ask.field+".selectors", class.Spec.Selectors, ask.selectors)...)
		findings = append(findings, l.unknownPools(ask.field+".selectors", class.Spec.Selectors, ask.selectors)...)
		config, locked := configOf(devices, ask, class, spec.Devices.Config)
		findings = append(findings, locked...)
		l.addTo(caches, class, ask, config)
		findings = append(findings, l.notChecked(class, ask)...)
		if l.ofZones(class, ask) {
			findings = append(findings, l.capacityKeys(ask)...)
			findings = append(findings, checkAmounts(ask)...)
			elsewhere := slices.ContainsFunc(asks, ask.hasMemoryBeside)
			binds := config.Zone.MemoryPolicy == deviceclasses.MemoryBind && l.possible(class, ask).OnlyZones()
			findings = append(findings, checkMemory(ask, binds, elsewhere)...)
			if !oneFirst[ask.request] {
				findings = append(findings, l.count(ask, class, spec.Devices.Constraints)...)
			}
			oneFirst[ask.request] = oneFirst[ask.request] || ask.alternative && size(ask) == 1
		}
	}
	findings = append(findings, caches.findings()...)
	findings = append(findings, l.order(devices, spec, asks)...)
	return append(findings, l.texts(devices, asks)...)
}

// isOurs reports whether the parameters are for this driver.
func isOurs(opaque *resourceapi.OpaqueDeviceConfiguration) bool {
	return opaque != nil && opaque.Driver == deviceclasses.DriverName
}

// decodeClaim reads a claim's parameters alone, so that no class locks a field of them.
func decodeClaim(before deviceclasses.RequestConfig, raw []byte) (deviceclasses.RequestConfig, error) {
	return before.DecodeClaim(raw, "")
}

// checkParameters reports parameters that the driver would refuse, and parameters that it
// refuses on some nodes.
func checkParameters(field string, opaque *resourceapi.OpaqueDeviceConfiguration, decode func(deviceclasses.RequestConfig, []byte) (deviceclasses.RequestConfig, error)) []Finding {
	if !isOurs(opaque) {
		return nil
	}
	decoded, err := decode(deviceclasses.RequestConfig{}, opaque.Parameters.Raw)
	switch {
	case err != nil:
		return []Finding{{InvalidParameters, Error, field + ".opaque.parameters", err.Error()}}
	case decoded.Zone.L3 == deviceclasses.L3Require:
		return []Finding{warn(RequiredL3Waits, field+".opaque.parameters", "l3: the scheduler does not see level-3 caches, so the pod may wait on a node where no single cache has enough free CPUs: write prefer")}
	}
	return nil
}

// ofZones reports whether the request gets zones, and nothing else, as far as is known.
// That is enough for a warning.
func (l *Linter) ofZones(class *resourceapi.DeviceClass, ask ask) bool {
	gets, err := l.known.Selectors().OfZones(class.Spec.Selectors, ask.selectors, ask.requests())
	return gets == probe.OnlyZones && err == nil
}

// possible is all that the request can get. An error rests on what it excludes. A selector
// that does not compile excludes nothing: the API server refuses it.
func (l *Linter) possible(class *resourceapi.DeviceClass, ask ask) probe.Possible {
	possible, _ := l.known.Selectors().Possible(class.Spec.Selectors, ask.selectors, ask.requests())
	return possible
}

// notChecked reports a request for capacities of zones of which is not known whether it
// gets zones: nothing excludes that, and no zone was found that it selects.
func (l *Linter) notChecked(class *resourceapi.DeviceClass, ask ask) []Finding {
	if ask.admin || amountsOf(ask) == (amounts{}) {
		return nil
	}
	gets, err := l.known.Selectors().OfZones(class.Spec.Selectors, ask.selectors, ask.requests())
	switch {
	case err != nil:
		return []Finding{warn(NotChecked, ask.field+".selectors", "the request is not checked: %v", err)}
	case gets == probe.Unclear && !l.known.Selectors().Try(class.Spec.Selectors, ask.selectors).Zones:
		return []Finding{warn(NotChecked, ask.field+".selectors",
			`the request is not checked, because it is not clear whether it gets a zone: begin a selector with device.driver == "NAME" &&, with the driver whose devices you want`)}
	}
	return nil
}

// ask is a request, or one of its alternatives.
type ask struct {
	field, request string
	subrequest     string // its name among the alternatives
	alternative    bool   // another one may be allocated instead
	admin          bool   // it holds nothing
	class          string
	selectors      []resourceapi.DeviceSelector
	capacity       *resourceapi.CapacityRequirements
	mode           resourceapi.DeviceAllocationMode
	count          int64
}

// requests are the capacities that it asks for; nil for none.
func (a ask) requests() map[resourceapi.QualifiedName]resource.Quantity {
	if a.capacity == nil {
		return nil
	}
	return a.capacity.Requests
}

func asksOf(devices string, spec resourceapi.ResourceClaimSpec) (asks []ask) {
	for i, request := range spec.Devices.Requests {
		field := fmt.Sprintf("%s.requests[%d]", devices, i)
		if r := request.Exactly; r != nil {
			asks = append(asks, ask{
				field + ".exactly", request.Name, "", false, ptr.Deref(r.AdminAccess, false),
				r.DeviceClassName, r.Selectors, r.Capacity, r.AllocationMode, r.Count,
			})
		}
		for j, r := range request.FirstAvailable {
			asks = append(asks, ask{
				fmt.Sprintf("%s.firstAvailable[%d]", field, j), request.Name, r.Name, true, false,
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
		case slices.Contains(deviceclasses.CacheCapacities(), key):
			findings = append(findings, warn(UnknownCapacityKey, field, "no zone has this capacity, so the pod would stay Pending: write it in a request for a cache, such as of the class cache.dra.numa"))
		case strings.HasPrefix(string(key), deviceclasses.CapacityGroupPrefix):
			findings = append(findings, warn(UnknownCapacityKey, field, "no zone has this capacity, so the pod would stay Pending: the NodeConfig of the nodes needs the name in groups"))
		case !accounting.IsCapacity(key) && near != "":
			findings = append(findings, warn(UnknownCapacityKey, field, "no device has this capacity, so the pod would stay Pending: write %s", near))
		case !accounting.IsCapacity(key):
			findings = append(findings, warn(UnknownCapacityKey, field, "no device has this capacity, so the pod would stay Pending: zones have cpu, memory, and hugepages such as hugepages2Mi"))
		case len(published) > 0:
			findings = append(findings, warn(UnknownCapacityKey, field, "no zone has this capacity now, so the pod would stay Pending"))
		}
	}
	return findings
}

// amounts says which capacities of a zone a request asks for.
type amounts struct{ cpus, memory, hugepages bool }

func amountsOf(ask ask) (has amounts) {
	if ask.capacity == nil {
		return amounts{}
	}
	for key, quantity := range ask.capacity.Requests {
		if quantity.Sign() <= 0 {
			continue
		}
		name := spelling.Capacity(deviceclasses.DriverName, key)
		has.cpus = has.cpus || name == deviceclasses.CapacityCPU
		has.memory = has.memory || name == deviceclasses.CapacityMemory
		has.hugepages = has.hugepages || strings.HasPrefix(string(name), deviceclasses.CapacityHugepagesPrefix)
	}
	return has
}

// hasMemoryBeside reports whether another request has memory or hugepages.
func (a ask) hasMemoryBeside(other ask) bool {
	has := amountsOf(other)
	return other.request != a.request && (has.memory || has.hugepages)
}

// checkMemory reports a request for part of a zone whose containers use memory that
// nobody counts. The CPUs of a level-3 cache have none, so another request of the claim
// may have it. binds means that the request is for a zone, whose memory policy is bind.
func checkMemory(ask ask, binds, elsewhere bool) []Finding {
	field := ask.field + ".capacity.requests"
	switch has := amountsOf(ask); {
	case has.memory, ask.admin:
	case !has.hugepages && !elsewhere && binds:
		return []Finding{{BindWithoutMemory, Error, field, "memoryPolicy: bind needs memory or hugepages in the request"}}
	case elsewhere:
	case has.hugepages:
		return []Finding{warn(HugepagesOnly, field, "hugepages bind the container to the zone, but its other memory is not counted there: request memory too")}
	case has.cpus:
		return []Finding{warn(CPUsWithoutMemory, field, "the container's memory may come from any NUMA node: request memory too")}
	}
	return nil
}

// configOf returns what the class and the claim configure for a request, and reports what
// the claim changes of the fields that the class locks. It leaves out what is not valid.
// The claim's configuration comes after that of the class.
func configOf(devices string, ask ask, class *resourceapi.DeviceClass, configs []resourceapi.DeviceClaimConfiguration) (config deviceclasses.RequestConfig, findings []Finding) {
	for _, of := range class.Spec.Config {
		if !isOurs(of.Opaque) {
			continue
		}
		if next, err := config.DecodeOver(of.Opaque.Parameters.Raw); err == nil {
			config = next
		}
	}
	for i, of := range configs {
		names := func(request string) bool {
			return request == ask.request || ask.alternative && request == ask.request+"/"+ask.subrequest
		}
		if !isOurs(of.Opaque) || len(of.Requests) > 0 && !slices.ContainsFunc(of.Requests, names) {
			continue
		}
		next, err := config.DecodeClaim(of.Opaque.Parameters.Raw, ask.class)
		var locked *deviceclasses.LockedError
		switch {
		case err == nil:
			config = next
		case errors.As(err, &locked):
			findings = append(findings, Finding{LockedField, Error, fmt.Sprintf("%s.config[%d].opaque.parameters", devices, i), fmt.Sprintf("%v (request %q)", err, ask.request)})
		}
	}
	return config, findings
}

// nearest is the capacity that was probably meant by a key that no zone has, "" if there
// is none. It corrects the driver's name as a prefix, a pod's name for hugepages,
// capitals, and a final s.
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

// count reports a request for shares of several zones. What a zone is depends on the node.
func (l *Linter) count(ask ask, class *resourceapi.DeviceClass, constraints []resourceapi.DeviceConstraint) []Finding {
	switch {
	case ask.mode == resourceapi.DeviceAllocationModeAll:
		return []Finding{warn(CountOnShared, ask.field+".allocationMode", "All asks for a share of every zone of the node that has the requested capacities")}
	case ask.count <= 1 || l.ofL3Zones(class, ask):
		return nil
	case slices.ContainsFunc(constraints, ask.onOneNUMANode):
		return []Finding{warn(CountOnShared, ask.field+".count", "asks for shares of %d different zones of one NUMA node, which only nodes with zoneBy: l3 have; elsewhere, ask one zone for more capacity", ask.count)}
	}
	return []Finding{warn(CountOnShared, ask.field+".count", "asks for shares of %d different zones of one node; for a larger share of one zone, ask for more capacity", ask.count)}
}

// ofL3Zones reports whether the request, which gets only zones, gets only those that lie in
// one level-3 cache, as far as is known.
func (l *Linter) ofL3Zones(class *resourceapi.DeviceClass, ask ask) bool {
	other := resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{
		Expression: "!has(" + deviceclasses.Reading(deviceclasses.AttributeL3) + ")",
	}}
	result := l.known.Selectors().Try(class.Spec.Selectors, append(slices.Clone(ask.selectors), other))
	return !result.Zones && !result.Incomplete
}

// onOneNUMANode reports whether the constraint makes all devices of the request be on one
// NUMA node.
func (a ask) onOneNUMANode(constraint resourceapi.DeviceConstraint) bool {
	return constraint.MatchAttribute != nil && slices.Contains(deviceclasses.NUMANodeAttributes(), resourceapi.QualifiedName(*constraint.MatchAttribute)) &&
		bound([]resourceapi.DeviceConstraint{constraint}, a.request, a.request)
}
