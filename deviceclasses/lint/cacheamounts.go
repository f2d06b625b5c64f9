package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// cacheLimit is what one claim can have of a capacity of a cache, on any node.
type cacheLimit struct {
	name  resourceapi.QualifiedName
	most  int64
	pools []string // that have the capacity
}

func cacheLimits() []cacheLimit {
	exclusive := []string{deviceclasses.PoolGuaranteed, deviceclasses.PoolBestEffort}
	return []cacheLimit{
		{deviceclasses.CapacityWays, deviceclasses.MaxWays, exclusive},
		{deviceclasses.CapacityClasses, 1, exclusive},
		{deviceclasses.CapacityBandwidthPercent, deviceclasses.MaxBandwidthPercent, exclusive},
		{deviceclasses.CapacityBandwidthMBps, deviceclasses.MaxBandwidthMBps, exclusive},
		{deviceclasses.CapacityMembers, 1, []string{deviceclasses.PoolShared}},
	}
}

// amounts refuses amounts that the claim must not ask for, and those that no cache has.
func (a cacheAsk) amounts() []Finding {
	findings := a.keys()
	field := a.field + ".capacity.requests"
	asked := spelling.Amounts(deviceclasses.DriverName, a.requests())
	err := a.config.CheckRequest(a.class, asked)
	var locked *deviceclasses.LockedError
	switch {
	case errors.As(err, &locked):
		findings = append(findings, fail(LockedField, fmt.Sprintf("%s[%s]", field, locked.Field), "%v (request %q)", err, a.request))
	case err != nil:
		findings = append(findings, fail(ImpossibleCacheAmount, a.field, "%v", err))
	}
	if a.config.MaxWays != 0 && !slices.Contains(a.pools, deviceclasses.PoolBestEffort) {
		findings = append(findings, fail(ImpossibleCacheAmount, a.field, "maxWays: %d, allowed is none: the request can only get %s", a.config.MaxWays, pools(a.pools)))
	}
	for _, limit := range cacheLimits() {
		amount, asks := asked[limit.name]
		has := func(pool string) bool { return slices.Contains(limit.pools, pool) }
		switch key := fmt.Sprintf("%s[%s]", field, limit.name); {
		case !asks:
		case !slices.ContainsFunc(a.pools, has):
			findings = append(findings, fail(ImpossibleCacheAmount, key, "%q, allowed is none: the request can only get %s", amount.String(), pools(a.pools)))
		case !spelling.Countable(amount) || amount.CmpInt64(1) < 0 || amount.CmpInt64(limit.most) > 0:
			findings = append(findings, fail(ImpossibleCacheAmount, key, "%q, allowed %s", amount.String(), upTo(limit.most)))
		}
	}
	return append(findings, a.together()...)
}

// together refuses a request for two capacities if no device has both.
func (a cacheAsk) together() (findings []Finding) {
	asked := spelling.Amounts(deviceclasses.DriverName, a.requests())
	both := func(one, other resourceapi.QualifiedName, where string) {
		_, asksOne := asked[one]
		_, asksOther := asked[other]
		if asksOne && asksOther {
			findings = append(findings, fail(ImpossibleCacheAmount, a.field+".capacity.requests", "%s and %s: no %s has both, allowed is one of them", one, other, where))
		}
	}
	both(deviceclasses.CapacityBandwidthPercent, deviceclasses.CapacityBandwidthMBps, "node")
	if len(a.pools) > 1 { // else the pool has only one of them
		both(deviceclasses.CapacityWays, deviceclasses.CapacityMembers, "pool")
	}
	return findings
}

// keys finds names of capacities that no cache has.
func (a cacheAsk) keys() (findings []Finding) {
	known := deviceclasses.CacheCapacities()
	for _, key := range sortedKeys(a.requests()) {
		if slices.Contains(known, key) {
			continue
		}
		field := fmt.Sprintf("%s.capacity.requests[%s]", a.field, key)
		near := slices.IndexFunc(known, func(name resourceapi.QualifiedName) bool {
			return strings.EqualFold(string(name), string(spelling.Capacity(deviceclasses.DriverName, key)))
		})
		if near >= 0 {
			findings = append(findings, warn(UnknownCapacityKey, field, "no device has this capacity, so the pod would stay Pending: write %s", known[near]))
		} else {
			findings = append(findings, warn(UnknownCapacityKey, field, "no cache has this capacity, so the pod would stay Pending: caches have %s", list(known)))
		}
	}
	return findings
}

// pools returns "the pools guaranteed, besteffort".
func pools(names []string) string {
	if len(names) == 1 {
		return "the pool " + names[0]
	}
	return "the pools " + list(names)
}

// upTo says which amounts from 1 on are allowed.
func upTo(most int64) string {
	if most == 1 {
		return "is 1"
	}
	return fmt.Sprintf("are 1 to %d", most)
}

// list joins names.
func list[N ~string](names []N) string {
	var texts []string
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return strings.Join(texts, ", ")
}
