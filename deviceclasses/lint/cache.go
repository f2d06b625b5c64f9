package lint

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// cacheClaim is what a claim asks for of caches, and of the zones whose CPUs they are for.
// Zones are requests of the claim, not subrequests.
type cacheClaim struct {
	devices     string
	constraints []resourceapi.DeviceConstraint
	zones       []string
	cpus        map[string]bool // zones that the claim asks for CPUs
	several     map[string]bool // requests that may get several zones
	unclear     bool            // another request may be for a zone
	caches      []cacheAsk
	others      map[string]bool // requests that may get something else than a cache
}

// cacheAsk is a request for a cache, or one of its alternatives.
type cacheAsk struct {
	ask
	config deviceclasses.CacheConfig
	pools  []string // that it can get
}

func newCacheClaim(devices string, constraints []resourceapi.DeviceConstraint) *cacheClaim {
	return &cacheClaim{devices: devices, constraints: constraints, cpus: map[string]bool{}, several: map[string]bool{}, others: map[string]bool{}}
}

// addTo adds a request. A request with adminAccess holds nothing. What is not proven is
// unclear, because findings about caches are errors.
func (l *Linter) addTo(c *cacheClaim, class *resourceapi.DeviceClass, ask ask, config deviceclasses.RequestConfig) {
	possible := l.possible(class, ask)
	switch {
	case ask.admin:
	case possible.OnlyCaches():
		c.caches = append(c.caches, cacheAsk{ask, config.Cache, possible.Pools})
		return
	case possible.OnlyZones():
		if !slices.Contains(c.zones, ask.request) {
			c.zones = append(c.zones, ask.request)
		}
		c.cpus[ask.request] = c.cpus[ask.request] || amountsOf(ask).cpus
		c.several[ask.request] = c.several[ask.request] || ask.count > 1 || ask.mode == resourceapi.DeviceAllocationModeAll
	case possible.Zones:
		c.unclear = true
	}
	c.others[ask.request] = true
}

// unknownPools finds selectors that select no device, because they name a pool that no
// cache has.
func (l *Linter) unknownPools(field string, class, own []resourceapi.DeviceSelector) []Finding {
	result := l.known.Selectors().Try(class, own)
	pool := result.UnknownPool
	possible, err := l.known.Selectors().Possible(class, own, nil)
	if pool == nil || err != nil || !possible.Nothing() {
		return nil
	}
	return []Finding{fail(UnknownPool, fmt.Sprintf("%s[%d].cel.expression", field, pool.Index),
		"pool %q: no device has it, allowed are %s", pool.Name, list(deviceclasses.ClaimPools()))}
}

// findings are what is wrong with the requests for caches.
func (c *cacheClaim) findings() (findings []Finding) {
	first := map[string]string{}   // by zone, the first request for a cache
	unaligned := map[string]bool{} // requests that were reported
	for _, ask := range c.caches {
		findings = append(findings, ask.amounts()...)
		zone, found := c.zoneOf(ask)
		findings = append(findings, found...)
		findings = append(findings, ask.single()...)
		if zone == "" {
			continue
		}
		if c.several[zone] {
			findings = append(findings, warn(CacheOfSeveralZones, ask.field, "request %q gets CPUs of several zones, and the ways are of one cache: want a request for each zone", zone))
		}
		if !c.aligned(ask.request, zone) && !unaligned[ask.request] {
			unaligned[ask.request] = true
			findings = append(findings, warn(CacheNotAligned, c.devices+".constraints",
				"no matchAttribute %s binds requests %q and %q, so the cache may not be that of the CPUs", deviceclasses.FullName(deviceclasses.AttributeL3), zone, ask.request))
		}
		switch other := first[zone]; {
		case c.others[ask.request]: // another alternative may be allocated
		case other == "":
			first[zone] = ask.request
		case other != ask.request:
			findings = append(findings, fail(CacheAskedTwice, ask.field, "request %q is for the CPUs of request %q, too: want one request for a cache for each request for a zone", other, zone))
		}
	}
	return findings
}

// zoneOf returns the request for a zone whose CPUs the cache is for, "" if there is none or
// it is not known.
func (c *cacheClaim) zoneOf(ask cacheAsk) (string, []Finding) {
	zones := slices.DeleteFunc(slices.Clone(c.zones), func(zone string) bool { return !c.cpus[zone] })
	if len(zones) == 0 {
		zones = c.zones
	}
	zone, err := ask.config.ZoneRequest(zones)
	switch {
	case c.unclear && (err != nil || ask.config.CPUs == ""):
		return "", nil
	case len(c.zones) == 0:
		return "", []Finding{fail(CacheWithoutCPUs, ask.field, "no request of the claim is for a zone: a cache is for CPUs of the same claim")}
	case err != nil:
		return "", []Finding{fail(UnclearCacheCPUs, ask.field, "%v", err)}
	case !c.cpus[zone]:
		return "", []Finding{fail(CacheWithoutCPUs, ask.field, "request %q for a zone asks for no cpu: a cache is for CPUs of the same claim", zone)}
	}
	return zone, nil
}

// aligned reports whether a constraint puts both requests into one cache.
func (c *cacheClaim) aligned(cache, zone string) bool {
	return slices.ContainsFunc(c.constraints, func(constraint resourceapi.DeviceConstraint) bool {
		match := constraint.MatchAttribute
		return match != nil && *match == deviceclasses.FullName(deviceclasses.AttributeL3) &&
			bound([]resourceapi.DeviceConstraint{constraint}, cache, zone)
	})
}

// single refuses a request for several pools: all of them would be for the same CPUs.
func (a cacheAsk) single() []Finding {
	switch {
	case a.mode == resourceapi.DeviceAllocationModeAll:
		return []Finding{fail(CacheAskedTwice, a.field+".allocationMode", "All asks for every pool of every cache, and CPUs have ways of one pool: want ExactCount")}
	case a.count > 1:
		return []Finding{fail(CacheAskedTwice, a.field+".count", "%d, allowed is 1: CPUs have ways of one pool", a.count)}
	}
	return nil
}
