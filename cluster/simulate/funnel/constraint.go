package funnel

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/attribute"
)

// attributeOf returns a value of the device as text. Two values are equal if and only
// if their texts are equal.
func attributeOf(d *inventory.Device, name resourceapi.FullyQualifiedName) (text string, has bool) {
	value, _ := attribute.Of(d.Slice.Spec.Driver, d.Attributes, name)
	switch {
	case value.StringValue != nil:
		return fmt.Sprintf("%q", *value.StringValue), true
	case value.IntValue != nil:
		return fmt.Sprint(*value.IntValue), true
	case value.BoolValue != nil:
		return fmt.Sprint(*value.BoolValue), true
	case value.VersionValue != nil:
		return "v" + *value.VersionValue, true
	}
	return "", false
}

// applyConstraints is the stage for the claim's constraints. It applies each constraint
// alone, and keeps the devices that could be part of a set that meets the constraint.
func applyConstraints(constraints []resourceapi.DeviceConstraint, funnels []*funnel) {
	for _, f := range funnels {
		f.counts.Left.Constraint = len(f.left)
	}
	for _, constraint := range constraints {
		covered := coveredBy(constraint, funnels)
		switch {
		case constraint.MatchAttribute != nil:
			for _, f := range covered {
				f.matched = append(f.matched, *constraint.MatchAttribute)
			}
			applyMatch(*constraint.MatchAttribute, covered)
		case constraint.DistinctAttribute != nil:
			applyDistinct(*constraint.DistinctAttribute, covered)
		}
	}
}

func coveredBy(constraint resourceapi.DeviceConstraint, funnels []*funnel) (covered []*funnel) {
	for _, f := range funnels {
		if len(constraint.Requests) == 0 || slices.Contains(constraint.Requests, f.Name) || slices.Contains(constraint.Requests, requests.Base(f.Name)) {
			covered = append(covered, f)
		}
	}
	return covered
}

// applyMatch keeps the devices whose value suits all covered requests. A value suits a
// request if the request, or one of its alternatives, finds as many devices with it as
// it wants.
func applyMatch(name resourceapi.FullyQualifiedName, covered []*funnel) {
	if slices.ContainsFunc(covered, func(f *funnel) bool { return f.counts.Blocks != "" && !strings.Contains(f.Name, "/") }) {
		return // nothing can meet the constraint, but the constraint is not the reason
	}
	found := make([]map[string][]string, len(covered)) // names of devices by value
	for i, f := range covered {
		found[i] = make(map[string][]string)
		for _, d := range f.left {
			if value, has := attributeOf(d, name); has {
				found[i][value] = append(found[i][value], d.Name)
			}
		}
	}
	var spellings [][]string // of the attribute, by request
	if slices.ContainsFunc(found, func(values map[string][]string) bool { return len(values) == 0 }) {
		for _, f := range covered {
			spellings = append(spellings, spellingsOf(name, f))
		}
	}
	suits := func(value string) bool {
		met := make(map[string]bool)
		for i, f := range covered {
			met[requests.Base(f.Name)] = met[requests.Base(f.Name)] || len(found[i][value]) >= f.wanted
		}
		for _, ok := range met {
			if !ok {
				return false
			}
		}
		return true
	}
	for _, f := range covered {
		f.stage(StageConstraint, &f.counts.Left.Constraint, func(d *inventory.Device) bool {
			value, has := attributeOf(d, name)
			return has && suits(value)
		}, func([]*inventory.Device) finding { return explainMatch(name, covered, found, spellings) })
	}
}

// explainMatch says which values each covered request finds.
func explainMatch(name resourceapi.FullyQualifiedName, covered []*funnel, found []map[string][]string, spellings [][]string) finding {
	var texts []string
	for i, f := range covered {
		values := make([]string, 0, len(found[i]))
		for _, value := range sortedNames(found[i]) {
			names := found[i][value]
			on := devices(len(names))
			if len(names) == 1 {
				on = names[0]
			}
			values = append(values, fmt.Sprintf("%s on %s", value, on))
		}
		if len(values) == 0 {
			return finding{
				sentence: fmt.Sprintf("no device of request %s has the attribute %s, which a constraint matches", f.Name, name),
				hint:     missingAttributeHint(name, i, covered, spellings),
			}
		}
		texts = append(texts, fmt.Sprintf("%s finds %s", f.Name, listText(values)))
	}
	return finding{sentence: fmt.Sprintf("no value of %s has enough devices for all requests that must match: %s", name, strings.Join(texts, "; "))}
}

// applyDistinct requires as many different values as devices.
func applyDistinct(name resourceapi.FullyQualifiedName, covered []*funnel) {
	values, wanted := make(map[string]bool), 0
	for _, f := range covered {
		if !strings.Contains(f.Name, "/") {
			wanted += f.wanted
		}
		for _, d := range f.left {
			if value, has := attributeOf(d, name); has {
				values[value] = true
			}
		}
	}
	for _, f := range covered {
		f.stage(StageConstraint, &f.counts.Left.Constraint, func(d *inventory.Device) bool {
			_, has := attributeOf(d, name)
			return has && len(values) >= wanted
		}, func([]*inventory.Device) finding {
			return finding{sentence: fmt.Sprintf("%s must differ in %s, but it has only %d values: %s", devices(wanted), name, len(values), listText(sortedNames(values)))}
		})
	}
}
