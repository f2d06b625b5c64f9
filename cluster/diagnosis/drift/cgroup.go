package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// comparePins compares each cgroup that the hook has pinned with the checkpoint and with
// what the kernel grants.
func (c *comparison) comparePins() {
	pinned := make(map[string][]nodestate.Pin) // by claim UID
	for _, pin := range c.state.Pins {
		for _, claim := range pin.Claims {
			pinned[claim.UID] = append(pinned[claim.UID], pin)
		}
		if c.read(nodestate.CheckpointPart) {
			c.comparePin(pin)
		}
		if i := c.partition(pin); i >= 0 && c.state.Partitions[i].CPUs != pin.CPUs {
			c.add(Finding{
				Check: PartitionDiffers, Claim: names(pin), CPUs: pin.CPUs, Where: "cgroup " + pin.Cgroup,
				Expected: lists(pin.CPUs, cpuset.Set{}), Detected: lists(c.state.Partitions[i].CPUs, cpuset.Set{}),
			})
		} else if pin.Fault != "" {
			c.add(Finding{
				Check: PartitionInvalid, Claim: names(pin), CPUs: pin.CPUs, Where: "cgroup " + pin.Cgroup,
				Expected: fmt.Sprintf("%s, partition %s", lists(pin.CPUs, pin.Mems), pin.Partition), Detected: pin.Fault,
			})
		}
	}
	if c.read(nodestate.PinsPart, nodestate.CheckpointPart) {
		c.compareContainers(pinned)
	}
}

// partition returns the index of the cgroup's own partition. It returns -1 if there is
// none, or if there should be none.
func (c *comparison) partition(pin nodestate.Pin) int {
	if pin.CPUs.IsEmpty() || pin.Partition == "none" {
		return -1
	}
	return slices.IndexFunc(c.state.Partitions, func(p nodestate.Partition) bool { return p.Cgroup == pin.Cgroup })
}

// comparePin compares a cgroup with the checkpoint. The cgroup may have fewer CPUs than
// its claims, because a container may use only some requests of a claim.
func (c *comparison) comparePin(pin nodestate.Pin) {
	var recorded cpuset.Set
	for _, claim := range pin.Claims {
		grant, known := c.grants[types.UID(claim.UID)]
		if !known {
			c.add(Finding{
				Check: PartitionOfNobody, Claim: claim.Name, CPUs: pin.CPUs, Where: "cgroup " + pin.Cgroup,
				Expected: "a record of the claim for which it is pinned", Detected: "no record of uid " + claim.UID,
			})
			return
		}
		recorded = recorded.Union(cpus(grant))
	}
	if !pin.CPUs.IsSubsetOf(recorded) {
		c.add(Finding{
			Check: PartitionDiffers, Claim: names(pin), CPUs: recorded, Where: "cgroup " + pin.Cgroup,
			Expected: "only " + lists(recorded, cpuset.Set{}) + ", as in the checkpoint", Detected: lists(pin.CPUs, cpuset.Set{}),
		})
	}
}

// compareContainers reports claims with a request that a running container uses outside
// the cgroups that are pinned for that request.
func (c *comparison) compareContainers(pinned map[string][]nodestate.Pin) {
	for _, grant := range c.state.Checkpoint.Grants {
		claim := c.objects.claims[grant.UID]
		if claim == nil {
			continue
		}
		requests := []string{}
		for _, share := range grant.Shares {
			// A claim with only PCI functions has no cgroup.
			if share.Pinned() && !slices.ContainsFunc(pinned[string(grant.UID)], func(pin nodestate.Pin) bool { return isOf(pin, share) }) {
				requests = append(requests, resourceclaim.BaseRequestRef(share.Request))
			}
		}
		if len(requests) == 0 {
			continue
		}
		if pod := c.running(claim, requests); pod != "" {
			c.add(Finding{
				Check: ContainerNotPinned, Claim: name(claim), CPUs: cpus(grant), Where: "cgroups of pod " + pod,
				Expected: "a cgroup that is pinned for the claim", Detected: "none",
			})
		}
	}
}

// isOf reports whether a cgroup of the claim can be pinned for the share. Containers may
// use different requests of a claim.
func isOf(pin nodestate.Pin, share ledger.Share) bool {
	if pin.CPUs.IsEmpty() || share.CPUs().IsEmpty() {
		return pin.Mems.Overlaps(share.Binds())
	}
	return pin.CPUs.Overlaps(share.CPUs())
}

// comparePartitions reports partitions that the hook has not recorded. It ignores
// partitions that a container creates below its own cgroup.
func (c *comparison) comparePartitions() {
	for _, partition := range c.state.Partitions {
		if slices.ContainsFunc(c.state.Pins, func(pin nodestate.Pin) bool {
			return partition.Cgroup == pin.Cgroup || strings.HasPrefix(partition.Cgroup, pin.Cgroup+"/")
		}) {
			continue
		}
		finding := Finding{
			Check: PartitionOfNobody, CPUs: partition.CPUs, Where: "cgroup " + partition.Cgroup,
			Expected: "a container of a claim", Detected: "no record of the hook, partition " + partition.State,
		}
		i := slices.IndexFunc(c.state.Checkpoint.Grants, func(g ledger.Grant) bool { return cpus(g).Overlaps(partition.CPUs) })
		if i >= 0 {
			grant := c.state.Checkpoint.Grants[i]
			finding.Claim = grant.Namespace + "/" + grant.Name
			finding.Expected = "a container of the claim that has CPUs " + cpus(grant).String()
		}
		c.add(finding)
	}
}

// comparePolicies reports containers that run without the memory policy of a claim.
func (c *comparison) comparePolicies() {
	for _, ignored := range c.state.IgnoredPolicies {
		c.add(Finding{
			Check: PolicyIgnored, Claim: cmp.Or(ignored.Claim.Name, ignored.Claim.UID), CPUs: cpus(c.grants[types.UID(ignored.Claim.UID)]), Where: "cgroup " + ignored.Cgroup,
			Expected: "memory policy " + ignored.Want, Detected: ignored.Seen,
		})
	}
}

// names returns the claims of a cgroup.
func names(pin nodestate.Pin) string {
	var names []string
	for _, claim := range pin.Claims {
		names = append(names, cmp.Or(claim.Name, claim.UID))
	}
	return strings.Join(names, ", ")
}
