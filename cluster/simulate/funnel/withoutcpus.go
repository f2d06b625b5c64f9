package funnel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Hint helps if devices of other drivers are on a NUMA node without CPUs, such as the memory
// of a GPU: no zone with CPUs has its id, so a selector has to say which zone is near.
func (c noValue) Hint() string {
	_, short, _ := strings.Cut(string(c.attribute), "/")
	zone := slices.IndexFunc(c.requests, func(r finds) bool { return r.driver == deviceclasses.DriverName })
	if short != "numaNode" || zone < 0 {
		return ""
	}
	for _, r := range c.requests {
		for _, node := range sortedNames(r.values) {
			if near := c.near(zone, node); r.driver != deviceclasses.DriverName && len(near) > 0 {
				return fmt.Sprintf("NUMA node %s of request %s has no CPUs: take request %s out of the constraint, and select its zone by %s",
					node, r.Name, c.requests[zone].Name, strings.Join(near, " or "))
			}
		}
	}
	return ""
}

// near returns selectors for the zones that may be the nearest to a NUMA node without CPUs, with
// their names: one if the node says which it is. There is none if the NUMA node has CPUs.
func (c noValue) near(zone int, numaNode string) (selectors []string) {
	nearest := ""
	for _, d := range c.requests[zone].request.devices {
		if d.Slice.Spec.Driver != deviceclasses.DriverName {
			continue
		}
		kind, _ := attributeOf(d.Device, deviceclasses.FullName(deviceclasses.AttributeKind))
		if ids, _ := elementsOf(d.Device, c.attribute); !slices.Contains(ids, numaNode) || !deviceclasses.IsZoneKind(strings.Trim(kind, `"`)) {
			continue
		}
		if _, hasCPUs := d.Capacity[deviceclasses.CapacityCPU]; hasCPUs {
			return nil
		}
		nearest, _ = attributeOf(d.Device, deviceclasses.FullName(deviceclasses.AttributeNearest))
	}
	domain, id, _ := strings.Cut(string(c.attribute), "/")
	names := make(map[string][]string) // by value, which may be a list
	for _, d := range c.requests[zone].devices {
		if ids, _ := elementsOf(d.Device, c.attribute); len(ids) > 0 && (nearest == "" || slices.Contains(ids, nearest)) {
			value, _ := attributeOf(d.Device, c.attribute)
			names[value] = append(names[value], d.Name)
		}
	}
	for _, value := range sortedNames(names) {
		selectors = append(selectors, fmt.Sprintf("device.attributes[%q].?%s.orValue(-1) == %s (%s)", domain, id, value, strings.Join(names[value], ", ")))
	}
	return selectors
}
