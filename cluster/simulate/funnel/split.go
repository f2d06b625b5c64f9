package funnel

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// part is a request that one device can have: the capacities of a larger request that
// these devices have.
type part struct {
	names   []resourceapi.QualifiedName
	devices []*inventory.Device
}

// explainSplit is for a request whose capacities exist, but on different devices, such as
// the CPUs of a level-3 cache and the memory of its NUMA node. found is false for any other
// request.
func (f *funnel) explainSplit() (split finding, found bool) {
	parts := f.parts()
	if len(parts) < 2 {
		return finding{}, false
	}
	var names, has []string
	for _, name := range sortedNames(f.Capacity.Requests) {
		names = append(names, string(name))
	}
	for _, p := range parts {
		has = append(has, fmt.Sprintf("%s has %s", p.devices[0].Name, namesText(p.names)))
	}
	all := "all of " + strings.Join(names, ", ")
	if len(names) == 2 {
		all = "both " + strings.Join(names, " and ")
	}
	split.sentence = fmt.Sprintf("no device has %s: %s", all, listText(has))
	split.hint = f.splitHint(parts)
	return split, true
}

// parts divides what the request asks for among selected devices, as few as possible. It
// returns nil if a capacity is on none of them.
func (f *funnel) parts() (parts []part) {
	if f.Capacity == nil {
		return nil
	}
	left := sortedNames(f.Capacity.Requests)
	for len(left) > 0 {
		var most part
		for _, d := range f.selected {
			names := slices.DeleteFunc(slices.Clone(left), func(name resourceapi.QualifiedName) bool {
				_, has := d.Capacity[name]
				return !has
			})
			switch {
			case len(names) > len(most.names):
				most = part{names, []*inventory.Device{d}}
			case len(names) > 0 && slices.Equal(names, most.names):
				most.devices = append(most.devices, d)
			}
		}
		if len(most.names) == 0 {
			return nil
		}
		parts = append(parts, most)
		left = slices.DeleteFunc(left, func(name resourceapi.QualifiedName) bool { return slices.Contains(most.names, name) })
	}
	return parts
}

// splitHint has the requests to write instead. The constraint keeps them on one NUMA node,
// if the devices have it.
func (f *funnel) splitHint(parts []part) string {
	var texts, names []string
	near := resourceapi.FullyQualifiedName(deviceclasses.NUMANodeAttributes()[0])
	aligned := true
	for _, p := range parts {
		name := strings.ReplaceAll(f.Name, "/", "-") + "-" + strings.ToLower(string(p.names[0]))
		var amounts []string
		for _, key := range p.names {
			amount := f.Capacity.Requests[key]
			amounts = append(amounts, fmt.Sprintf("%s: %s", key, amount.String()))
		}
		selectors := ""
		if len(f.Selectors) > 0 {
			selectors = ", selectors: [as now]"
		}
		names = append(names, name)
		texts = append(texts, fmt.Sprintf("{name: %s, exactly: {deviceClassName: %s%s, capacity: {requests: {%s}}}}", name, f.Class, selectors, strings.Join(amounts, ", ")))
		aligned = aligned && slices.ContainsFunc(p.devices, func(d *inventory.Device) bool { _, has := attributeOf(d, near); return has })
	}
	hint := fmt.Sprintf("a request gets its capacities from one device: write %d requests, %s", len(parts), strings.Join(texts, ", "))
	if aligned {
		hint += fmt.Sprintf(", with the constraint {requests: [%s], matchAttribute: %s}", strings.Join(names, ", "), near)
	}
	return hint
}

func namesText(names []resourceapi.QualifiedName) string {
	var texts []string
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return strings.Join(texts, " and ")
}
