package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// numaNode is the attribute of the NUMA node in constraints.
const numaNode = resourceapi.FullyQualifiedName(deviceclasses.AttributeNUMANode)

// socket is the attribute of the socket in constraints.
func socket() resourceapi.FullyQualifiedName {
	return deviceclasses.FullName(deviceclasses.AttributeSocket)
}

// Object is a manifest that kubectl create accepts, without what an API server fills in.
type Object struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        Metadata `json:"metadata"`
	Spec            any      `json:"spec"`
}

// Metadata is the name of an object. Namespace may be "".
type Metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

func object(kind string, name Metadata, spec any) (Object, error) {
	if problems := validation.IsDNS1123Subdomain(name.Name); len(problems) > 0 {
		return Object{}, fmt.Errorf("name %q: %s", name.Name, problems[0])
	}
	if problems := validation.IsDNS1123Label(name.Namespace); name.Namespace != "" && len(problems) > 0 {
		return Object{}, fmt.Errorf("namespace %q: %s", name.Namespace, problems[0])
	}
	return Object{metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: kind}, name, spec}, nil
}

// Class is a DeviceClass of the zones that pass the filter. Claims can override fields of
// its configurations that it does not lock.
func Class(name string, filter Filter, config deviceclasses.RequestConfig) (Object, error) {
	if isSet(config.Cache) {
		return Object{}, errors.New("a class of NUMA nodes has no caches: only claims have settings of caches")
	}
	if err := cmp.Or(filter.check(), checkConfig(config)); err != nil {
		return Object{}, err
	}
	zone := fmt.Sprintf("%s == %q", deviceclasses.Reading(deviceclasses.AttributeKind), deviceclasses.KindZone)
	spec := resourceapi.DeviceClassSpec{Selectors: selector(append([]string{ofDriver, zone}, filter.terms()...))}
	for _, one := range configurations(config) {
		spec.Config = append(spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: one})
	}
	return object("DeviceClass", Metadata{Name: name}, spec)
}

// Claim is a ResourceClaim for the wish.
func Claim(name Metadata, wish Wish) (Object, error) {
	spec, err := wish.Spec()
	if err != nil {
		return Object{}, err
	}
	return object("ResourceClaim", name, spec)
}

// Template is a ResourceClaimTemplate for the wish.
func Template(name Metadata, wish Wish) (Object, error) {
	spec, err := wish.Spec()
	if err != nil {
		return Object{}, err
	}
	return object("ResourceClaimTemplate", name, struct {
		Spec resourceapi.ResourceClaimSpec `json:"spec"`
	}{spec})
}

// Spec is the spec of a claim for the wish: zones before devices, and rare devices before
// large sets, which is the fastest order for the scheduler. With one share, its request is
// named zone.
func (w Wish) Spec() (spec resourceapi.ResourceClaimSpec, err error) {
	if err := w.Check(); err != nil {
		return spec, err
	}
	devices := &spec.Devices
	var zones []string
	if capacity := w.ofZone().capacity(); capacity != nil {
		devices.Requests = w.shares(capacity)
		for _, request := range devices.Requests {
			zones = append(zones, request.Name)
		}
		if w.Apart || w.Paired && w.Shares > 1 {
			devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: zones, DistinctAttribute: new(numaNode)})
		}
		memories := w.addMemory(devices, zones)
		for _, one := range configurations(deviceclasses.RequestConfig{Zone: w.Config.Zone}) {
			devices.Config = append(devices.Config, resourceapi.DeviceClaimConfiguration{Requests: slices.Concat(zones, memories), DeviceConfiguration: one})
		}
		for _, one := range configurations(deviceclasses.RequestConfig{Performance: w.Config.Performance}) {
			devices.Config = append(devices.Config, resourceapi.DeviceClaimConfiguration{Requests: zones, DeviceConfiguration: one})
		}
	}
	if w.Cache != nil {
		w.Cache.addTo(devices, zones, w.Config.Cache)
	}
	taken := make(map[string]bool)
	for i := range devices.Requests {
		taken[devices.Requests[i].Name] = true
	}
	if w.Paired {
		w.addPairs(devices, zones, func(class string) string { return nameOf(class, taken) })
		return spec, nil
	}
	var names []string
	for i, wanted := range w.byCount() {
		names = append(names, nameOf(wanted.Class, taken))
		devices.Requests = append(devices.Requests, resourceapi.DeviceRequest{
			Name:    names[i],
			Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: wanted.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: wanted.Count},
		})
	}
	switch {
	case len(w.Places) > 0 && len(names) > 0:
		devices.Constraints = append(devices.Constraints, w.near(names)...)
	case w.Same == SameNode:
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: w.bound(zones, names), MatchAttribute: new(numaNode)})
	case w.Same == SameSocket:
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: w.bound(zones, names), MatchAttribute: new(socket())})
	case len(w.Places) > 1 && w.Places[1] == OneSocket:
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: []string{"zone/" + OneSocket}, MatchAttribute: new(socket())})
	}
	return spec, nil
}

// nameOf returns the first name that is not taken for a request: the beginning of the class
// and a number, such as gpu-0 of gpu.dra.numa.
func nameOf(class string, taken map[string]bool) string {
	stem, _, _ := strings.Cut(class, ".")
	stem = stem[:min(len(stem), validation.DNS1123LabelMaxLength-len("-00"))]
	for i := 0; ; i++ {
		if name := fmt.Sprintf("%s-%d", stem, i); !taken[name] {
			taken[name] = true
			return name
		}
	}
}

// bound returns the requests that are on the same node or socket; nil for all requests of
// the claim. A cache has no socket, and is where its zone is in any case.
func (w Wish) bound(zones, devices []string) []string {
	if w.Cache == nil {
		return nil
	}
	return slices.Concat(zones, devices)
}

// near puts each device on the NUMA node or socket of the share, depending on the
// alternative. Each has constraints of its own, because a constraint also binds its devices
// to each other if the alternative is not chosen. names are those of the devices.
func (w Wish) near(names []string) (list []resourceapi.DeviceConstraint) {
	for _, name := range names {
		for _, place := range w.Places {
			attribute, binds := map[string]resourceapi.FullyQualifiedName{OneNode: numaNode, OneSocket: socket()}[place]
			if !binds {
				continue
			}
			list = append(list, resourceapi.DeviceConstraint{Requests: []string{"zone/" + place, name}, MatchAttribute: &attribute})
		}
	}
	return list
}

// byCount returns the devices in the order of their counts, the largest last. With
// alternatives, each device is a request of its own.
func (w Wish) byCount() (list []Devices) {
	if len(w.Places) > 0 {
		for _, devices := range w.Devices {
			list = append(list, slices.Repeat([]Devices{{Class: devices.Class, Count: 1}}, int(devices.Count))...)
		}
		return list
	}
	return slices.SortedStableFunc(slices.Values(w.Devices), func(a, b Devices) int { return cmp.Compare(a.Count, b.Count) })
}

// capacity is nil if the wish has no share of a zone.
func (w Wish) capacity() *resourceapi.CapacityRequirements {
	requests := make(map[resourceapi.QualifiedName]resource.Quantity)
	if w.CPUs > 0 {
		requests[deviceclasses.CapacityCPU] = *resource.NewQuantity(w.CPUs, resource.DecimalSI)
	}
	if w.Memory.Sign() > 0 {
		requests[deviceclasses.CapacityMemory] = w.Memory
	}
	for size, amount := range w.Hugepages {
		requests[deviceclasses.CapacityHugepagesPrefix+resourceapi.QualifiedName(size)] = amount
	}
	if len(requests) == 0 {
		return nil
	}
	return &resourceapi.CapacityRequirements{Requests: requests}
}

// shares are the requests for zones.
func (w Wish) shares(capacity *resourceapi.CapacityRequirements) (requests []resourceapi.DeviceRequest) {
	if len(w.Places) > 0 {
		return []resourceapi.DeviceRequest{{Name: "zone", FirstAvailable: w.alternatives(capacity)}}
	}
	for i := range w.Shares {
		name := "zone"
		if w.Shares > 1 {
			name = fmt.Sprintf("zone-%d", i)
		}
		requests = append(requests, resourceapi.DeviceRequest{
			Name:    name,
			Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: w.Class, Selectors: w.Filter.Selectors(), Capacity: capacity},
		})
	}
	return requests
}

func (w Wish) alternatives(capacity *resourceapi.CapacityRequirements) (list []resourceapi.DeviceSubRequest) {
	part, _ := w.part() // Check has called it
	for _, place := range w.Places {
		one := resourceapi.DeviceSubRequest{Name: place, DeviceClassName: w.Class, Selectors: w.Filter.Selectors(), Capacity: capacity}
		if place != OneNode && w.Parts > 1 {
			one.AllocationMode, one.Count, one.Capacity = resourceapi.DeviceAllocationModeExactCount, int64(w.Parts), part.capacity()
		}
		list = append(list, one)
	}
	return list
}
