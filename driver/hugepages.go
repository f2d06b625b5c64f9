package driver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// The scheduler counts hugepages, but nothing keeps those that a claim has not used yet:
// a pod without a claim, or a program of the host, may take them from the pool.

// Hugepages is what the kernel says of hugepages now, in bytes, by NUMA node and by size
// as in "2Mi".
type Hugepages struct {
	Total, Free map[int]map[string]uint64 // Free ≤ Total
	Pods        []PodHugepages            // of running pods with claims
}

// checkHugepages returns an error if the NUMA nodes lack hugepages that the grant is to
// have: the NodeConfig excludes them, or too few are free, less those that other claims have
// not used yet, and less those that are reserved and that no program without a claim has used
// yet. It is for new grants only, because the containers of an older one may have its pages.
func (p *planner) checkHugepages(grant ledger.Grant) error {
	var all cpuset.Set
	for _, share := range grant.Shares {
		zone := share.Zone()
		if zone == nil || len(zone.HugepageBytes) == 0 {
			continue
		}
		all = all.Union(zone.Mems())
		for _, size := range slices.Sorted(maps.Keys(zone.HugepageBytes)) {
			if p.excludesHugepages(zone.Mems(), size) {
				return fmt.Errorf("request %s: hugepages %s of NUMA node %s are for no claim: the NodeConfig excludes them", share.Request, size, zone.Mems())
			}
		}
	}
	if all.IsEmpty() || p.config.Hugepages == nil {
		return nil
	}
	others := slices.DeleteFunc(p.grants.Grants(), func(other ledger.Grant) bool { return other.UID == grant.UID })
	pods := make(map[string][]string)
	for _, other := range others {
		for _, pod := range other.Pods {
			pods[string(pod)] = append(pods[string(pod)], string(other.UID))
		}
	}
	now, err := p.config.Hugepages(all, pods)
	if err != nil {
		return fmt.Errorf("read free hugepages: %w", err)
	}
	for i, share := range grant.Shares {
		zone := share.Zone()
		if zone == nil {
			continue
		}
		earlier := grant
		earlier.Shares = grant.Shares[:i]
		for _, size := range slices.Sorted(maps.Keys(zone.HugepageBytes)) {
			nodes, want := zone.Mems(), zone.HugepageBytes[size]
			free := bytesOn(nodes, now.Free, size)
			promised, reserved, who := p.keptHugepages(now, append(slices.Clone(others), earlier), nodes, size)
			if free >= promised+reserved+want {
				continue
			}
			err := fmt.Errorf("request %s: NUMA node %s has %s of hugepages %s free, the claim needs %s: pods without a claim, or programs of the host, use others",
				share.Request, nodes, binary(free), size, binary(want))
			if reserved > 0 {
				err = fmt.Errorf("%w; reserved and not used yet: %s", err, binary(reserved))
			}
			if len(who) > 0 {
				err = fmt.Errorf("%w; claims that have not used theirs yet: %s", err, strings.Join(who, ", "))
			}
			return err
		}
	}
	return nil
}

// excludesHugepages reports whether no claim gets pages of the size on any of the NUMA nodes.
func (p *planner) excludesHugepages(nodes cpuset.Set, size string) bool {
	for node := range nodes.All() {
		if p.config.ReservedMemory.Bytes(node, size) < zones.Everything {
			return false
		}
	}
	return true
}

// keptHugepages returns how many bytes of free hugepages are not for a new claim: what the
// grants promise and their containers have not used yet, with the names of these claims,
// and what is reserved and not yet used by programs without a claim.
func (p *planner) keptHugepages(now Hugepages, grants []ledger.Grant, nodes cpuset.Set, size string) (promised, reserved uint64, who []string) {
	inUse := bytesOn(nodes, now.Total, size) - min(bytesOn(nodes, now.Free, size), bytesOn(nodes, now.Total, size))
	for _, set := range claimSets(grants, now.Pods, size) {
		held, holders := set.heldOn(nodes, size)
		used := min(held, set.usedOn(nodes, size, held))
		inUse -= min(inUse, used)
		if used < held {
			promised += held - used
			who = append(who, fmt.Sprintf("%s %s", strings.Join(holders, " and "), binary(held-used)))
		}
	}
	for node := range nodes.All() {
		reserved += min(p.config.ReservedMemory.Bytes(node, size), now.Total[node][size])
	}
	return promised, reserved - min(reserved, inUse), who
}

func bytesOn(nodes cpuset.Set, amounts map[int]map[string]uint64, size string) (bytes uint64) {
	for node := range nodes.All() {
		bytes += amounts[node][size]
	}
	return bytes
}

// missingHugepages returns what is wrong, by device, where the pools of NUMA nodes have
// become smaller than what claims hold of them.
func missingHugepages(machine *numa.Machine, grants []ledger.Grant) map[string]string {
	held, nodes := make(map[string]map[string]uint64), make(map[string]cpuset.Set) // by device; held also by size
	for _, grant := range grants {
		for _, share := range grant.Shares {
			zone := share.Zone()
			if zone == nil {
				continue
			}
			if held[share.Device] == nil {
				held[share.Device], nodes[share.Device] = make(map[string]uint64), zone.Mems()
			}
			for size, bytes := range zone.HugepageBytes {
				held[share.Device][size] += bytes
			}
		}
	}
	missing := make(map[string]string)
	for device, amounts := range held {
		var faults []string
		for _, size := range slices.Sorted(maps.Keys(amounts)) {
			var there uint64
			for node := range nodes[device].All() {
				zone, _ := machine.Zone(node)
				there += poolBytes(&zone, size)
			}
			if there < amounts[size] {
				faults = append(faults, fmt.Sprintf("NUMA node %s has %s of hugepages %s, but claims hold %s", nodes[device], binary(there), size, binary(amounts[size])))
			}
		}
		if len(faults) > 0 {
			missing[device] = strings.Join(faults, "; ")
		}
	}
	return missing
}

func binary(bytes uint64) string {
	return resource.NewQuantity(int64(bytes), resource.BinarySI).String()
}
