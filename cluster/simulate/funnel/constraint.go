package funnel

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// constraint is a constraint that blocks, and what its requests find.
type constraint struct {
	attribute resourceapi.FullyQualifiedName
	lists     bool // the scheduler compares the elements of lists
	requests  []finds
	distinct  bool // devices must differ in the attribute
	differ    int  // how many of them
}

// finds is what a request finds of an attribute, before the constraint.
type finds struct {
	*request
	devices []fit
	values  map[string][]string // names of devices by value, or by element of a list
}

// applyConstraints is the stage for the claim's constraints. It applies each constraint
// alone, and keeps the devices that could be part of a set that meets the constraint. With
// lists, those match that have an element in common, and those differ that have none.
func applyConstraints(constraints []resourceapi.DeviceConstraint, list []*request, lists bool) {
	for _, r := range list {
		r.counts.Left.Constraint = len(r.left)
	}
	for _, c := range constraints {
		covered := coveredBy(c, list)
		switch {
		case c.MatchAttribute != nil:
			for _, r := range covered {
				r.matched = append(r.matched, *c.MatchAttribute)
			}
			applyMatch(constraint{attribute: *c.MatchAttribute, lists: lists}, covered)
		case c.DistinctAttribute != nil:
			applyDistinct(constraint{attribute: *c.DistinctAttribute, lists: lists}, covered)
		}
	}
}

func coveredBy(c resourceapi.DeviceConstraint, list []*request) (covered []*request) {
	for _, r := range list {
		if len(c.Requests) == 0 || slices.Contains(c.Requests, r.Name) || slices.Contains(c.Requests, requests.Base(r.Name)) {
			covered = append(covered, r)
		}
	}
	return covered
}

// find adds what the requests find of the attribute.
func (c *constraint) find(covered []*request) {
	for _, r := range covered {
		found := finds{r, r.left, make(map[string][]string)}
		for _, d := range r.left {
			for _, value := range c.valuesOf(d) {
				found.values[value] = append(found.values[value], d.Name)
			}
		}
		c.requests = append(c.requests, found)
	}
}

// valuesOf returns the values of the device that the scheduler compares. A scheduler that knows
// no lists takes a device with one, but together with no other device.
func (c *constraint) valuesOf(d fit) []string {
	list, one := elementsOf(d.Device, c.attribute)
	if text, has := attributeOf(d.Device, c.attribute); has && !one && !c.lists {
		return []string{text}
	}
	return list
}

// apply keeps the devices with a value that suits.
func (c *constraint) apply(suits func(value string) bool) {
	for _, r := range c.requests {
		blocks := r.stage(StageConstraint, &r.counts.Left.Constraint, func(d fit) bool {
			return slices.ContainsFunc(c.valuesOf(d), suits)
		})
		if blocks {
			r.broken = c
		}
	}
}

// applyMatch keeps the devices whose value suits all covered requests. A value suits a
// request if the request, or one of its alternatives, finds as many devices with it as
// it wants.
func applyMatch(c constraint, covered []*request) {
	c.find(slices.DeleteFunc(slices.Clone(covered), func(r *request) bool { return r.counts.Blocks != "" }))
	for _, r := range covered {
		if !slices.ContainsFunc(c.requests, func(left finds) bool { return requests.Base(left.Name) == requests.Base(r.Name) }) {
			return // nothing can meet the constraint, but the constraint is not the reason
		}
	}
	c.apply(func(value string) bool {
		met := make(map[string]bool)
		for _, r := range c.requests {
			met[requests.Base(r.Name)] = met[requests.Base(r.Name)] || len(r.values[value]) >= r.wanted
		}
		for _, ok := range met {
			if !ok {
				return false
			}
		}
		return true
	})
}

// applyDistinct requires as many different values as devices.
func applyDistinct(c constraint, covered []*request) {
	c.find(covered)
	c.distinct = true
	for _, r := range covered {
		if !strings.Contains(r.Name, "/") {
			c.differ += r.wanted
		}
	}
	enough := len(c.values()) >= c.differ
	c.apply(func(string) bool { return enough })
}

// values returns all values of the attribute, sorted.
func (c *constraint) values() []string {
	all := make(map[string]bool)
	for _, r := range c.requests {
		for value := range r.values {
			all[value] = true
		}
	}
	return sortedNames(all)
}
