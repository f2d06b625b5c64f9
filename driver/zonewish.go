package driver

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// zoneWish is the part of a zone that was allocated to a claim.
type zoneWish struct {
	zone          zones.Zone
	cpus          int // 0 <= cpus <= cpuset.MaxCPUs
	memoryBytes   uint64
	hugepageBytes map[string]uint64 // each > 0, by size as in "2Mi"; nil if there are none
	config        deviceclasses.ZoneConfig
	performance   deviceclasses.PerformanceSettings
	tuned         deviceclasses.PerformanceSettings // that are on record for the claim
}

func (w zoneWish) configured(p *planner, ofClass, config deviceclasses.RequestConfig) (wanted, error) {
	w.config, w.performance = config.Zone, config.Performance.PerformanceSettings
	return w, p.tuning.May(ofClass.Performance.PerformanceSettings, w.performance, w.tuned)
}

func (w zoneWish) fulfilledBy(kind ledger.Kind) bool {
	share, same := kind.(*ledger.ZoneShare)
	return same && share.NUMANodes[0] == w.zone.Nodes[0] && share.CPUs.Size() == w.cpus &&
		share.MemoryBytes == w.memoryBytes && maps.Equal(share.HugepageBytes, w.hugepageBytes)
}

// refreshed plans again what the CPUs should have after a boot, because what they had in
// another boot is forgotten.
func (w zoneWish) refreshed(p *planner, _ types.UID, wish wish, kind ledger.Kind) (ledger.Kind, error) {
	z := kind.(*ledger.ZoneShare)
	if z.Performance == nil || z.Performance.Applied || !z.Performance.Changes.IsZero() || len(z.Performance.Uncore) > 0 {
		return z, nil
	}
	next := *z
	var err error
	if next.Performance, err = p.tuning.Plan(z.CPUs, z.Performance.Asked); err != nil {
		return nil, fmt.Errorf("request %s: %w", wish.request, err)
	}
	return &next, nil
}

// use sets how the share is used, from the configuration of the claim and its class. The
// kernel puts isolated CPUs only into isolated partitions.
func (w zoneWish) use(share *ledger.ZoneShare) {
	share.MemoryPolicy = w.config.MemoryPolicy
	if share.CPUs.IsEmpty() {
		return
	}
	share.Partition, share.Mixed = cmp.Or(w.config.Partition, deviceclasses.PartitionRoot), w.config.Mixed
	if w.zone.Isolated && share.Partition == deviceclasses.PartitionRoot {
		share.Partition = deviceclasses.PartitionIsolated
	}
}

// noteSharedPool notes in the mixed shares of a new grant what the shared pool is once
// the grant exists.
func (p *planner) noteSharedPool(grant ledger.Grant) {
	var pool cpuset.Set
	for i := range grant.Shares {
		if zone := grant.Shares[i].Zone(); zone != nil && zone.Mixed {
			if pool.IsEmpty() {
				pool = ledger.Untaken(p.machine.Online, p.grants.With(grant))
			}
			zone.SharedCPUs = pool
		}
	}
}

// plan chooses the CPUs of the share from the free ones.
func (w zoneWish) plan(p *planner, _ types.UID, _ wish, free cpuset.Set) (ledger.Kind, error) {
	share := ledger.ZoneShare{NUMANodes: w.zone.Nodes, MemoryBytes: w.memoryBytes, HugepageBytes: w.hugepageBytes}
	if err := p.choose(&share, w, free); err != nil {
		return nil, err
	}
	w.use(&share)
	if share.CPUs.IsEmpty() || w.performance.IsZero() {
		return &share, nil
	}
	var err error
	share.Performance, err = p.tuning.Plan(share.CPUs, w.performance)
	return &share, err
}
