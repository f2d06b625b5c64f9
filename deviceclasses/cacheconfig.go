package deviceclasses

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// CacheConfigKind is the kind of a CacheConfig.
const CacheConfigKind = "CacheConfig"

// CacheConfig says how a claim uses a cache. It is the opaque configuration of a request
// for a cache, in the claim or in its class. The number of ways and the bandwidth are
// capacities of the request, so that the scheduler sees them.
type CacheConfig struct {
	metav1.TypeMeta `json:",inline"`

	// CPUs is the name of the claim's request for a zone. The cache and its bandwidth are
	// for the CPUs of this request. The field is required if several such requests have
	// CPUs.
	//
	//	cpus: workers
	CPUs string `json:"cpus,omitempty"`
	// MaxWays is the number of ways up to which a claim of the pool besteffort grows. Its
	// minimum is the capacity ways of the request. The default is that of the pool.
	//
	//	maxWays: 5
	MaxWays int `json:"maxWays,omitempty"`
	// Locked are names of fields that claims must not change, not even from their default,
	// and of capacities that claims must not ask for, so that they have the default of the
	// pool: ways, bandwidth. Only a DeviceClass can lock them.
	//
	//	locked: [maxWays, ways]
	Locked []string `json:"locked,omitempty"`
}

// LockBandwidth in CacheConfig.Locked stands for the bandwidth in any unit.
const LockBandwidth = "bandwidth"

// DecodeOver reads one CacheConfig, in JSON. Fields that raw does not name keep the
// values of c. Anything unknown is an error of one line, which names the field and what
// is allowed.
func (c CacheConfig) DecodeOver(raw []byte) (CacheConfig, error) {
	c.Locked = slices.Clone(c.Locked) // decoding writes into a list that is there
	return decodeValid(CacheConfigKind, raw, &c, &c.TypeMeta)
}

// Validate checks the values of the fields. A field may be empty.
func (c CacheConfig) Validate() error {
	if problems := content.IsDNS1123Label(c.CPUs); c.CPUs != "" && len(problems) > 0 {
		return fmt.Errorf("cpus: %q, allowed is the name of a request: %s", c.CPUs, problems[0])
	}
	amounts := []setting{{string(CapacityWays), ""}, {LockBandwidth, ""}}
	return cmp.Or(
		checkOptional("maxWays", c.MaxWays, 1, MaxWays),
		checkLocked(c.Locked, slices.Concat(c.settings(), amounts)),
	)
}

// settings returns the fields that a class can lock.
func (c CacheConfig) settings() []setting {
	maxWays := ""
	if c.MaxWays != 0 {
		maxWays = strconv.Itoa(c.MaxWays)
	}
	return []setting{{"cpus", c.CPUs}, {"maxWays", maxWays}}
}

// CheckRequest refuses capacities that a request of a claim must not ask for with this
// configuration: what the class locks, and a minimum of ways above the maximum. The
// capacities are named as devices publish them. An error for what is locked is a
// [LockedError].
func (c CacheConfig) CheckRequest(class string, asked map[resourceapi.QualifiedName]resource.Quantity) error {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		lock := string(name)
		if name == CapacityBandwidthPercent || name == CapacityBandwidthMBps {
			lock = LockBandwidth
		}
		if amount := asked[name]; slices.Contains(c.Locked, lock) {
			return &LockedError{class, string(name), amount.String(), "the default of the pool"}
		}
	}
	ways, has := asked[CapacityWays]
	if has && c.MaxWays != 0 && (!spelling.Countable(ways) || ways.CmpInt64(int64(c.MaxWays)) > 0) {
		return fmt.Errorf("maxWays: %d, allowed are the %s ways that the request asks for, or more", c.MaxWays, ways.String())
	}
	return nil
}

// ZoneRequest returns the request for a zone whose CPUs the cache is for. zones are the
// names of the claim's requests for zones that ask for CPUs. The name of a subrequest is
// like "main/sub".
func (c CacheConfig) ZoneRequest(zones []string) (string, error) {
	var requests []string // without subrequests
	for _, zone := range zones {
		if request, _, _ := strings.Cut(zone, "/"); !slices.Contains(requests, request) {
			requests = append(requests, request)
		}
	}
	i := slices.Index(requests, c.CPUs)
	switch {
	case len(requests) == 0:
		return "", fmt.Errorf("cpus: %q, but no request of the claim is for a zone: a cache is for CPUs of the same claim", c.CPUs)
	case c.CPUs == "" && len(requests) == 1:
		i = 0
	case i < 0:
		return "", fmt.Errorf("cpus: %q, allowed are the requests of the claim for zones: %s", c.CPUs, strings.Join(requests, ", "))
	}
	return zones[slices.IndexFunc(zones, func(zone string) bool { return zone == requests[i] || strings.HasPrefix(zone, requests[i]+"/") })], nil
}
