package deviceclasses

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Limits of a CachePools.
const (
	// MaxWays is how many ways a cache can have: a mask has 64 bits.
	MaxWays = 64
	// MaxBandwidthPercent is the bandwidth of a claim that is not limited, in percent.
	MaxBandwidthPercent = 100
	// MaxBandwidthMBps is the largest bandwidth in MBps that the kernel takes. It stands
	// for no limit: MBA_MAX_MBPS in include/linux/resctrl.h.
	MaxBandwidthMBps = 1<<32 - 1
)

// CachePools says how many ways of each level-3 cache each pool has, and whether the use
// of caches is measured. A pool that is not named does not exist. The ways of a pool are
// in no other one, but infra overlaps all pools except os, reserved and groups.
type CachePools struct {
	// OS has the lowest ways. Everything that belongs to no other pool has them to itself:
	// the default group of the kernel. This pool is mandatory, and so is one more.
	//
	//	os: {ways: 1, bandwidthPercent: 50}
	OS *CacheWays `json:"os,omitempty"`
	// Reserved is for the reserved CPUs of the node, which no claim gets. Its ways follow
	// those of os. Tasks that run on these CPUs have them to themselves. Without it, the
	// reserved CPUs belong to os.
	//
	//	reserved: {ways: 2}
	Reserved *CacheWays `json:"reserved,omitempty"`
	// Groups are for reserved CPUs that you name, at most 8 lists of them. Each has ways to
	// itself, which follow those of reserved, and takes a class of the kernel (CLOSID).
	//
	//	groups: [{name: dpdk, cpus: 2-3, ways: 2}]
	Groups []CacheGroup `json:"groups,omitempty"`
	// Infra has the highest ways. It overlaps all pools except os, reserved and groups.
	//
	//	infra: {ways: 19, cpus: 0-1}
	Infra *InfraPool `json:"infra,omitempty"`
	// Guaranteed is for claims with the number of ways that they ask for, which they have to
	// themselves.
	//
	//	guaranteed: {ways: 10, defaultWays: 4}
	Guaranteed *GuaranteedPool `json:"guaranteed,omitempty"`
	// BestEffort is for claims with a minimum and a maximum of ways, which they have to
	// themselves.
	//
	//	besteffort: {ways: 7, defaultMinWays: 1, defaultMaxWays: 3}
	BestEffort *BestEffortPool `json:"besteffort,omitempty"`
	// Shared is for claims that all have the same ways.
	//
	//	shared: {ways: 2, members: 10}
	Shared *SharedPool `json:"shared,omitempty"`
	// Monitor says whether the kernel counts for each claim with CPUs how much of the caches
	// it occupies, and how many bytes it moves. The default is true. With true and no pools,
	// caches are measured and not divided.
	//
	//	monitor: false
	Monitor *bool `json:"monitor,omitempty"`
	// Restore gives everything back: no caches are published, and as soon as no claim has
	// ways any more, all ways belong to the default group of the kernel again, without a
	// limit of bandwidth. Set it before you remove the pools; helm uninstall does the same by
	// itself.
	//
	//	restore: true
	Restore bool `json:"restore,omitempty"`
}

// CacheWays is a pool that no claim asks for.
type CacheWays struct {
	// Ways is the number of ways of the pool.
	//
	//	ways: 1
	Ways int `json:"ways"`
	// BandwidthPercent limits the memory bandwidth of each core. It counts on nodes where
	// bandwidth is a percentage. The default is 100, no limit. In the pool os, the default
	// leaves the limit as it is.
	//
	//	bandwidthPercent: 50
	BandwidthPercent int `json:"bandwidthPercent,omitempty"`
	// BandwidthMBps is the same for nodes that count megabytes per second.
	//
	//	bandwidthMBps: 20000
	BandwidthMBps int `json:"bandwidthMBps,omitempty"`
}

// InfraPool is the pool infra.
type InfraPool struct {
	CacheWays `json:",inline"`

	// CPUs is the list of CPUs whose tasks use the pool. They must be reserved CPUs of the
	// node, which no claim gets. Tasks that administrators write to the file tasks of the
	// pool's group, dra-numa.0, use it on any CPU.
	//
	//	cpus: 0-1
	CPUs string `json:"cpus,omitempty"`
}

// ExclusivePool has the fields of pools whose claims have ways to themselves.
type ExclusivePool struct {
	// Ways is the number of ways of the pool.
	//
	//	ways: 10
	Ways int `json:"ways"`
	// Classes is how many claims the pool can have in one cache: each needs a class of the
	// kernel (CLOSID). The default is a part of the classes that no pool names, in
	// proportion to the ways.
	//
	//	classes: 8
	Classes int `json:"classes,omitempty"`
	// DefaultBandwidthPercent limits the memory bandwidth of each core of a claim that asks
	// for no bandwidth. It counts on nodes where bandwidth is a percentage. The default is
	// 100, no limit.
	//
	//	defaultBandwidthPercent: 50
	DefaultBandwidthPercent int `json:"defaultBandwidthPercent,omitempty"`
	// DefaultBandwidthMBps is the same for nodes that count megabytes per second. The
	// default is no limit.
	//
	//	defaultBandwidthMBps: 20000
	DefaultBandwidthMBps int `json:"defaultBandwidthMBps,omitempty"`
}

// GuaranteedPool is the pool guaranteed.
type GuaranteedPool struct {
	ExclusivePool `json:",inline"`

	// DefaultWays is what a claim gets that asks for no number of ways. The default is the
	// smallest number that the claim may ask for.
	//
	//	defaultWays: 4
	DefaultWays int `json:"defaultWays,omitempty"`
	// ValidWays are the numbers of ways that a claim can have, in ascending order. The
	// scheduler rounds up to the next one. Without it, a claim can have any number that the
	// kernel takes.
	//
	//	validWays: [1, 2, 4]
	ValidWays []int `json:"validWays,omitempty"`
}

// BestEffortPool is the pool besteffort.
type BestEffortPool struct {
	ExclusivePool `json:",inline"`

	// DefaultMinWays is what a claim always has if it asks for no number of ways. It needs
	// defaultMaxWays. The default is the smallest number that the kernel takes.
	//
	//	defaultMinWays: 1
	DefaultMinWays int `json:"defaultMinWays,omitempty"`
	// DefaultMaxWays is the number up to which a claim grows that has no maxWays. It needs
	// defaultMinWays. The default is all ways of the pool.
	//
	//	defaultMaxWays: 3
	DefaultMaxWays int `json:"defaultMaxWays,omitempty"`
	// Growing says whether claims have more than their minimum while ways are free. They
	// shrink again when another claim comes. The default is true.
	//
	//	growing: false
	Growing *bool `json:"growing,omitempty"`
}

// SharedPool is the pool shared.
type SharedPool struct {
	// Ways is the number of ways of the pool.
	//
	//	ways: 2
	Ways int `json:"ways"`
	// Members is how many claims can use the pool in one cache.
	//
	//	members: 10
	Members int `json:"members"`
}

// IsGrowing reports whether claims of the pool have more ways than their minimum while
// some are free.
func (p BestEffortPool) IsGrowing() bool { return p.Growing == nil || *p.Growing }

// IsMonitoring reports whether the kernel counts what claims use.
func (c CachePools) IsMonitoring() bool { return c.Monitor == nil || *c.Monitor }

// Divides reports whether there is a pool.
func (c CachePools) Divides() bool {
	return c.OS != nil || c.Reserved != nil || len(c.Groups) > 0 || c.Infra != nil || c.Guaranteed != nil || c.BestEffort != nil || c.Shared != nil
}

// Validate checks what needs no machine. Errors name the fields as in a NodeConfig.
func (c CachePools) Validate() error {
	if c.Monitor != nil && *c.Monitor && !c.Divides() {
		return nil
	}
	if c.OS == nil {
		return fmt.Errorf("cache.os: it is missing, want {ways: <number>} with 1 to %d ways", MaxWays)
	}
	if c.Reserved == nil && len(c.Groups) == 0 && c.Infra == nil && c.Guaranteed == nil && c.BestEffort == nil && c.Shared == nil {
		return errors.New("cache: os is the only pool, want one or more of reserved, groups, infra, guaranteed, besteffort, shared")
	}
	checks, most := []error{under("os", c.OS.validate(MaxWays))}, MaxWays-c.OS.Ways
	if c.Reserved != nil {
		checks = append(checks, under("reserved", c.Reserved.validate(most)))
		most -= c.Reserved.Ways
	}
	if len(c.Groups) > MaxCacheGroups {
		checks = append(checks, fmt.Errorf("groups: %d groups, allowed are %d or fewer", len(c.Groups), MaxCacheGroups))
	}
	for i := range c.Groups {
		checks = append(checks, under(fmt.Sprintf("groups[%d]", i), c.validateGroup(i, most)))
		most -= c.Groups[i].Ways
	}
	if c.Infra != nil {
		checks = append(checks, under("infra", c.Infra.validate(most)))
	}
	if c.Guaranteed != nil {
		checks = append(checks, under("guaranteed", c.Guaranteed.validate()))
	}
	if c.BestEffort != nil {
		checks = append(checks, under("besteffort", c.BestEffort.validate()))
	}
	if c.Shared != nil {
		checks = append(checks, checkRange("shared.ways", c.Shared.Ways, 1, MaxWays), checkRange("shared.members", c.Shared.Members, 1, maxMembers))
	}
	if err := cmp.Or(checks...); err != nil {
		return under("cache", err)
	}
	return c.checkSum()
}

// checkSum refuses pools that no cache has room for.
func (c CachePools) checkSum() error {
	sum, terms := c.OS.Ways, []string{fmt.Sprintf("os %d", c.OS.Ways)}
	add := func(pool string, ways int) {
		sum, terms = sum+ways, append(terms, fmt.Sprintf("%s %d", pool, ways))
	}
	if c.Reserved != nil {
		add("reserved", c.Reserved.Ways)
	}
	for i := range c.Groups {
		add(fmt.Sprintf("groups[%d]", i), c.Groups[i].Ways)
	}
	if c.Guaranteed != nil {
		add("guaranteed", c.Guaranteed.Ways)
	}
	if c.BestEffort != nil {
		add("besteffort", c.BestEffort.Ways)
	}
	if c.Shared != nil {
		add("shared", c.Shared.Ways)
	}
	if sum > MaxWays {
		return fmt.Errorf("cache: %s are %d ways, allowed are %d or fewer", strings.Join(terms, " + "), sum, MaxWays)
	}
	return nil
}

func (p CacheWays) validate(most int) error {
	return cmp.Or(
		checkRange("ways", p.Ways, 1, most),
		checkOptional("bandwidthPercent", p.BandwidthPercent, 1, MaxBandwidthPercent),
		checkOptional("bandwidthMBps", p.BandwidthMBps, 1, MaxBandwidthMBps),
	)
}

func (p InfraPool) validate(most int) error {
	if _, err := cpuset.Parse(p.CPUs); err != nil {
		return fmt.Errorf("cpus: %w", err)
	}
	return p.CacheWays.validate(most)
}

func (p ExclusivePool) validate() error {
	return cmp.Or(
		checkRange("ways", p.Ways, 1, MaxWays),
		checkOptional("classes", p.Classes, 1, maxClasses),
		checkOptional("defaultBandwidthPercent", p.DefaultBandwidthPercent, 1, MaxBandwidthPercent),
		checkOptional("defaultBandwidthMBps", p.DefaultBandwidthMBps, 1, MaxBandwidthMBps),
	)
}

func (p GuaranteedPool) validate() error {
	if err := cmp.Or(p.ExclusivePool.validate(), checkOptional("defaultWays", p.DefaultWays, 1, p.Ways)); err != nil {
		return err
	}
	if len(p.ValidWays) > maxValidValues {
		return fmt.Errorf("validWays: %d values, allowed are %d or fewer", len(p.ValidWays), maxValidValues)
	}
	least := 1
	for i, ways := range p.ValidWays {
		if err := checkRange(fmt.Sprintf("validWays[%d]", i), ways, least, p.Ways); err != nil {
			return fmt.Errorf("%w, in ascending order", err)
		}
		least = ways + 1
	}
	if p.DefaultWays != 0 && len(p.ValidWays) > 0 && !slices.Contains(p.ValidWays, p.DefaultWays) {
		return fmt.Errorf("defaultWays: %d, allowed are those of validWays, %s", p.DefaultWays, numbers(p.ValidWays))
	}
	return nil
}

func (p BestEffortPool) validate() error {
	if err := p.ExclusivePool.validate(); err != nil {
		return err
	}
	switch {
	case p.DefaultMinWays != 0 && p.DefaultMaxWays == 0:
		return fmt.Errorf("defaultMinWays: %d without defaultMaxWays, allowed are both or neither", p.DefaultMinWays)
	case p.DefaultMinWays == 0 && p.DefaultMaxWays != 0:
		return fmt.Errorf("defaultMaxWays: %d without defaultMinWays, allowed are both or neither", p.DefaultMaxWays)
	}
	return cmp.Or(
		checkOptional("defaultMaxWays", p.DefaultMaxWays, 1, p.Ways),
		checkOptional("defaultMinWays", p.DefaultMinWays, 1, p.DefaultMaxWays),
	)
}

// maxValidValues is how many values the policy of a capacity can have:
// CapacityRequestPolicyDiscreteMaxOptions in pkg/apis/resource of Kubernetes.
const maxValidValues = 10

// Limits against typing errors. No machine has as many classes.
const (
	maxClasses = 1 << 16
	maxMembers = 1 << 16
)

// checkRange refuses a number outside of a range.
func checkRange(field string, value, least, most int) error {
	if value >= least && value <= most {
		return nil
	}
	if most < least {
		return fmt.Errorf("%s: %d, allowed is none", field, value)
	}
	return fmt.Errorf("%s: %d, allowed are %d to %d", field, value, least, most)
}

// checkOptional is checkRange for a field that may be absent.
func checkOptional(field string, value, least, most int) error {
	if value == 0 {
		return nil
	}
	return checkRange(field, value, least, most)
}

// under adds the field that has the one of the error.
func under(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s.%w", field, err)
}

// numbers returns "1, 2, 4".
func numbers(list []int) string {
	var parts []string
	for _, n := range list {
		parts = append(parts, fmt.Sprint(n))
	}
	return strings.Join(parts, ", ")
}
