package funnel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/attribute"
)

// missingAttributeHint is for a request whose devices lack an attribute that a constraint
// matches; lacking is its index. It looks for attributes with the same name in other
// domains, which drivers use for the same thing: one that the devices of all requests have,
// or else one request whose devices have those of all others, such as a zone. Then each of
// the others has a constraint with that request. spellings are those of each request.
func missingAttributeHint(name resourceapi.FullyQualifiedName, lacking int, covered []*funnel, spellings [][]string) string {
	if len(spellings[lacking]) == 0 {
		return fmt.Sprintf("a device without %s never meets a matchAttribute of it: remove the request from the constraint", name)
	}
	for _, spelling := range spellings[lacking] {
		if !slices.ContainsFunc(spellings, func(has []string) bool { return !slices.Contains(has, spelling) }) {
			return fmt.Sprintf("the devices have %s: match an attribute that all devices have", spelling)
		}
	}
	var has []string
	for i, f := range covered {
		if groups := bridge(spellings, i); groups != nil {
			return bridgeHint(f.Name, groups, covered)
		}
		if len(spellings[i]) > 0 {
			has = append(has, fmt.Sprintf("%s has %s", f.Name, strings.Join(spellings[i], ", ")))
		}
	}
	advice := "add a request for a device that has them, such as a zone, and a constraint for each"
	if slices.ContainsFunc(covered, func(f *funnel) bool { return f.driver == deviceclasses.DriverName }) {
		advice = fmt.Sprintf("name %s in numaNodeKeys of the NodeConfig, so that the devices of %s have it", strings.Join(spellings[lacking], ", "), deviceclasses.DriverName)
	}
	return fmt.Sprintf("no attribute is on the devices of all requests: %s; %s", strings.Join(has, ", "), advice)
}

// spellingsOf returns the attributes of the request's devices that differ from the name
// only in their domain, sorted.
func spellingsOf(name resourceapi.FullyQualifiedName, f *funnel) []string {
	_, short, _ := strings.Cut(string(name), "/")
	found := make(map[string]bool)
	for _, d := range f.left {
		for has := range d.Attributes {
			if full := string(attribute.FullName(d.Slice.Spec.Driver, has)); strings.HasSuffix(full, "/"+short) {
				found[full] = true
			}
		}
	}
	return sortedNames(found)
}

// bridge returns which of the other requests have which attribute in common with one
// request, or nil if one of them has none.
func bridge(spellings [][]string, one int) map[string][]int {
	groups := make(map[string][]int)
	for i, has := range spellings {
		if i == one {
			continue
		}
		common := slices.IndexFunc(has, func(spelling string) bool { return slices.Contains(spellings[one], spelling) })
		if common < 0 {
			return nil
		}
		groups[has[common]] = append(groups[has[common]], i)
	}
	return groups
}

func bridgeHint(one string, groups map[string][]int, covered []*funnel) string {
	var constraints []string
	for _, spelling := range slices.Sorted(maps.Keys(groups)) {
		names := []string{one}
		for _, i := range groups[spelling] {
			names = append(names, covered[i].Name)
		}
		constraints = append(constraints, fmt.Sprintf("{requests: [%s], matchAttribute: %s}", strings.Join(names, ", "), spelling))
	}
	return fmt.Sprintf("no attribute is on the devices of all requests, but %s has one in common with each: write %d constraints, %s", one, len(constraints), strings.Join(constraints, " and "))
}
