package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// attributeOf is a value of the device as text; two values are equal if and only
// if their texts are. Constraints name attributes in full, devices may leave
// their driver's domain out.
func attributeOf(d *device, name resourceapi.FullyQualifiedName) (text string, has bool) {
	attribute, has := d.Attributes[resourceapi.QualifiedName(name)]
	if !has {
		domain, short, _ := strings.Cut(string(name), "/")
		if domain != d.slice.Spec.Driver {
			return "", false
		}
		if attribute, has = d.Attributes[resourceapi.QualifiedName(short)]; !has {
			return "", false
		}
	}
	switch {
	case attribute.StringValue != nil:
		return fmt.Sprintf("%q", *attribute.StringValue), true
	case attribute.IntValue != nil:
		return fmt.Sprint(*attribute.IntValue), true
	case attribute.BoolValue != nil:
		return fmt.Sprint(*attribute.BoolValue), true
	case attribute.VersionValue != nil:
		return "v" + *attribute.VersionValue, true
	}
	return "", false
}

// constrain is the stage of the claim's constraints, each by itself: what is
// left is what could be part of a set of devices that meets it.
func constrain(constraints []resourceapi.DeviceConstraint, funnels []*funnel) {
	for _, f := range funnels {
		f.counts.Left.Constraint = len(f.left)
	}
	for _, constraint := range constraints {
		covered := coveredBy(constraint, funnels)
		switch {
		case constraint.MatchAttribute != nil:
			match(*constraint.MatchAttribute, covered)
		case constraint.DistinctAttribute != nil:
			distinct(*constraint.DistinctAttribute, covered)
		}
	}
}

func coveredBy(constraint resourceapi.DeviceConstraint, funnels []*funnel) (covered []*funnel) {
	for _, f := range funnels {
		if len(constraint.Requests) == 0 || slices.Contains(constraint.Requests, f.name) || slices.Contains(constraint.Requests, baseRequest(f.name)) {
			covered = append(covered, f)
		}
	}
	return covered
}

// match keeps the values of which every covered request finds as many devices as
// it wants, or one of its alternatives does.
func match(name resourceapi.FullyQualifiedName, covered []*funnel) {
	if slices.ContainsFunc(covered, func(f *funnel) bool { return f.counts.Blocks != "" && !strings.Contains(f.name, "/") }) {
		return // nothing can meet it, but it is not to blame
	}
	counts := make([]map[string]int, len(covered))
	for i, f := range covered {
		counts[i] = make(map[string]int)
		for _, d := range f.left {
			if value, has := attributeOf(d, name); has {
				counts[i][value]++
			}
		}
	}
	suits := func(value string) bool {
		met := make(map[string]bool)
		for i, f := range covered {
			met[baseRequest(f.name)] = met[baseRequest(f.name)] || counts[i][value] >= f.wanted
		}
		for _, ok := range met {
			if !ok {
				return false
			}
		}
		return true
	}
	for _, f := range covered {
		f.stage(StageConstraint, &f.counts.Left.Constraint, func(d *device) bool {
			value, has := attributeOf(d, name)
			return has && suits(value)
		}, func([]*device) (string, string) { return unmatched(name, covered, counts) })
	}
}

// unmatched says which values the covered requests find.
func unmatched(name resourceapi.FullyQualifiedName, covered []*funnel, counts []map[string]int) (sentence, hint string) {
	var found []string
	for i, f := range covered {
		values := make([]string, 0, len(counts[i]))
		for _, value := range sortedNames(counts[i]) {
			values = append(values, fmt.Sprintf("%s on %s", value, devices(counts[i][value])))
		}
		if len(values) == 0 {
			return fmt.Sprintf("no device of request %s has the attribute %s, which has to match", f.name, name), withoutAttribute(name, f)
		}
		found = append(found, fmt.Sprintf("%s finds %s", f.name, some(values)))
	}
	return fmt.Sprintf("no value of %s suits all requests that have to match in it: %s", name, strings.Join(found, "; ")), ""
}

// distinct wants as many values as devices.
func distinct(name resourceapi.FullyQualifiedName, covered []*funnel) {
	values, wanted := make(map[string]bool), 0
	for _, f := range covered {
		if !strings.Contains(f.name, "/") {
			wanted += f.wanted
		}
		for _, d := range f.left {
			if value, has := attributeOf(d, name); has {
				values[value] = true
			}
		}
	}
	for _, f := range covered {
		f.stage(StageConstraint, &f.counts.Left.Constraint, func(d *device) bool {
			_, has := attributeOf(d, name)
			return has && len(values) >= wanted
		}, func([]*device) (string, string) {
			return fmt.Sprintf("%s have to differ in %s, but there are only %d values: %s", devices(wanted), name, len(values), some(sortedNames(values))), ""
		})
	}
}

// explainTogether is for requests each of which could be met alone: it asks the
// allocator for less and less to see what is too much.
func (c *Cluster) explainTogether(ctx context.Context, d *demand, n *node) (sentence, hint string, err error) {
	fits := func(claims ...*resourceapi.ResourceClaim) bool {
		allocations, allocateErr := n.allocator.Allocate(ctx, n.Node, claims)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return allocateErr == nil && len(allocations) == len(claims)
	}
	claims := c.unallocated(d, n)
	for _, used := range claims {
		if fits(used.claim) {
			continue
		}
		relaxed := used.claim.DeepCopy()
		relaxed.Spec.Devices.Constraints = nil
		if fits(relaxed) {
			return fmt.Sprintf("claim %s: every request could be met alone, but not all together with its constraints on %s", used.entry, constraintNames(used.claim)), "", err
		}
		return fmt.Sprintf("claim %s: every request could be met alone, but not all together: %s", used.entry, totals(used.claim)), "", err
	}
	var names []string
	for _, used := range claims {
		names = append(names, used.entry)
	}
	return fmt.Sprintf("the claims %s could each be met alone, but not all together", strings.Join(names, ", ")), initHint(d.pod), err
}

func constraintNames(claim *resourceapi.ResourceClaim) string {
	var names []string
	for _, constraint := range claim.Spec.Devices.Constraints {
		for _, name := range []*resourceapi.FullyQualifiedName{constraint.MatchAttribute, constraint.DistinctAttribute} {
			if name != nil {
				names = append(names, string(*name))
			}
		}
	}
	return strings.Join(names, ", ")
}

// totals is what the requests of a claim ask for.
func totals(claim *resourceapi.ResourceClaim) string {
	var parts []string
	for _, request := range claim.Spec.Devices.Requests {
		for _, a := range alternatives(request) {
			part := fmt.Sprintf("%s wants %s of %s", a.name, devices(int(a.count)), a.class)
			if a.capacity != nil {
				for _, name := range sortedNames(a.capacity.Requests) {
					amount := a.capacity.Requests[name]
					part += fmt.Sprintf(", %s %s", amount.String(), name)
				}
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}
