package funnel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Hint looks for attributes with the same name in other domains, which drivers use for
// the same thing: one that the devices of all requests have, or else one request whose
// devices have those of all others, such as a zone. Then each of the others has a
// constraint with that request.
func (c noAttribute) Hint() string {
	own := c.spellings(c.requests[c.lacking])
	if len(own) == 0 {
		return fmt.Sprintf("a device without %s never meets a matchAttribute of it: remove the request from the constraint", c.attribute)
	}
	for _, name := range own {
		if !slices.ContainsFunc(c.requests, func(r finds) bool { return !slices.Contains(c.spellings(r), name) }) {
			return fmt.Sprintf("the devices have %s: match an attribute that all devices have", name)
		}
	}
	var has []string
	for i, r := range c.requests {
		if groups := c.bridge(i); groups != nil {
			return c.bridgeHint(r.Name, groups)
		}
		if spelled := c.spellings(r); len(spelled) > 0 {
			has = append(has, fmt.Sprintf("%s has %s", r.Name, strings.Join(spelled, ", ")))
		}
	}
	advice := "add a request for a device that has them, such as a zone, and a constraint for each"
	if c.requests[c.lacking].driver == deviceclasses.DriverName {
		own = []string{string(c.attribute)}
	}
	if strings.HasSuffix(string(c.attribute), "/numaNode") && slices.ContainsFunc(c.requests, func(r finds) bool { return r.driver == deviceclasses.DriverName }) {
		advice = fmt.Sprintf("name %s in numaNodeKeys of the NodeConfig, so that the devices of %s have it", strings.Join(own, ", "), deviceclasses.DriverName)
	}
	return fmt.Sprintf("no attribute is on the devices of all requests: %s; %s", strings.Join(has, ", "), advice)
}

// bridge returns the names of the other requests by the attribute that they have in common
// with one request, or nil if one of them has none.
func (c *constraint) bridge(one int) map[string][]string {
	groups, spellings := make(map[string][]string), c.spellings(c.requests[one])
	for i, r := range c.requests {
		if i == one {
			continue
		}
		others := c.spellings(r)
		common := slices.IndexFunc(others, func(spelling string) bool { return slices.Contains(spellings, spelling) })
		if common < 0 {
			return nil
		}
		groups[others[common]] = append(groups[others[common]], r.Name)
	}
	return groups
}

func (c *constraint) bridgeHint(one string, groups map[string][]string) string {
	var constraints []string
	for _, spelling := range slices.Sorted(maps.Keys(groups)) {
		names := append([]string{one}, groups[spelling]...)
		constraints = append(constraints, fmt.Sprintf("{requests: [%s], matchAttribute: %s}", strings.Join(names, ", "), spelling))
	}
	return fmt.Sprintf("no attribute is on the devices of all requests, but %s has one in common with each: write %d constraints, %s", one, len(constraints), strings.Join(constraints, " and "))
}

// spellings returns the attributes of a request's devices that differ from the constraint's
// only in their domain, sorted.
func (c *constraint) spellings(r finds) []string {
	_, short, _ := strings.Cut(string(c.attribute), "/")
	found := make(map[string]bool)
	for _, d := range r.devices {
		for has := range d.Attributes {
			if full := string(spelling.FullName(d.Slice.Spec.Driver, has)); strings.HasSuffix(full, "/"+short) {
				found[full] = true
			}
		}
	}
	return sortedNames(found)
}
