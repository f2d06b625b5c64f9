package drift

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// checkpoint is the Where of findings about records.
const checkpoint = "checkpoint"

// compareClaims reports claims that running containers use and that have no record.
func (c *comparison) compareClaims() {
	for _, claim := range c.objects.onNode[c.node] {
		if _, recorded := c.grants[claim.UID]; recorded || len(c.held(claim)) == 0 {
			continue
		}
		if pod := c.running(claim, nil); pod != "" {
			c.add(Finding{
				Check: ClaimWithoutRecord, Claim: name(claim), Where: checkpoint,
				Expected: "a record, because containers of pod " + pod + " use the claim", Detected: "none",
			})
		}
	}
}

// held returns the claim's allocation results on this node as text, without admin access.
func (c *comparison) held(claim *resourceapi.ResourceClaim) (results []string) {
	if claim.Status.Allocation == nil {
		return nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		admin := result.AdminAccess != nil && *result.AdminAccess
		if result.Driver != driver.Name || result.Pool != c.node || admin {
			continue
		}
		share := ""
		if result.ShareID != nil {
			share = string(*result.ShareID)
		}
		results = append(results, result.Request+" "+result.Device+" "+share)
	}
	return results
}

// compareGrants compares the checkpoint with the claims.
func (c *comparison) compareGrants() {
	for _, grant := range c.state.Checkpoint.Grants {
		finding := Finding{Check: RecordWithoutClaim, Claim: grant.Namespace + "/" + grant.Name, CPUs: cpus(grant), Where: checkpoint}
		claim := c.objects.claims[grant.UID]
		switch {
		case claim == nil:
			finding.Expected, finding.Detected = "a claim with uid "+string(grant.UID), "no such claim"
			if other := c.objects.claim(grant.Namespace, grant.Name); other != nil {
				finding.Detected = "the claim of this name has uid " + string(other.UID)
			}
		case len(c.held(claim)) == 0:
			finding.Expected, finding.Detected = "allocated on the node", "not allocated on the node"
		case !slices.Equal(c.held(claim), results(grant)):
			finding.Check = RecordDiffers
			finding.Expected = "as allocated: " + strings.Join(c.held(claim), ", ")
			finding.Detected = strings.Join(results(grant), ", ")
		default:
			continue
		}
		if grant.Unprepared {
			finding.Detected += "; the kubelet has unprepared it, and containers of it may still run"
		}
		c.add(finding)
	}
}

// results returns the allocation results for which the grant was made, in the form of
// held.
func results(grant ledger.Grant) (results []string) {
	for _, share := range grant.Shares {
		results = append(results, share.Request+" "+share.Device+" "+string(share.ShareID))
	}
	return results
}

// compareSpecs compares the CDI specs with the checkpoint.
func (c *comparison) compareSpecs() {
	written := make(map[string]bool)
	for _, spec := range c.state.Specs {
		written[spec.ClaimUID] = true
		finding := Finding{Check: SpecWithoutRecord, Claim: spec.ClaimUID, CPUs: spec.CPUs, Where: "CDI spec " + spec.File, Expected: "a record", Detected: "none"}
		if grant, recorded := c.grants[types.UID(spec.ClaimUID)]; recorded {
			finding.Check, finding.Claim, finding.CPUs = SpecDiffers, grant.Namespace+"/"+grant.Name, cpus(grant)
			finding.Expected, finding.Detected = difference(grant, spec)
		}
		if finding.Expected != "" {
			c.add(finding)
		}
	}
	for _, grant := range c.state.Checkpoint.Grants {
		if !written[string(grant.UID)] {
			c.add(Finding{
				Check: RecordWithoutSpec, Claim: grant.Namespace + "/" + grant.Name, CPUs: cpus(grant), Where: "CDI specs",
				Expected: "a CDI spec: without it, the claim's containers do not start", Detected: "none",
			})
		}
	}
}

// difference returns the first difference between the record and the spec. It returns
// empty texts if there is none. It does not compare whether there is a partition,
// because that depends on the node.
func difference(grant ledger.Grant, spec cdi.Written) (expected, detected string) {
	if spec.Problem != "" {
		return "readable", spec.Problem
	}
	if all := cpus(grant); spec.CPUs != all {
		return lists(all, cpuset.Set{}), lists(spec.CPUs, cpuset.Set{})
	}
	if len(spec.Devices) != len(grant.Shares) {
		return fmt.Sprintf("%d devices", len(grant.Shares)), fmt.Sprint(len(spec.Devices))
	}
	for i, share := range grant.Shares {
		device := spec.Devices[i]
		want := grant.Spec(share, true)
		if id := want.DeviceID(string(grant.UID)); device.ID != id {
			return id, device.ID
		}
		if expected, detected := deviceDifference(want.Kind, share.Pinned(), device); expected != "" {
			return share.Request + ": " + expected, detected
		}
	}
	return "", ""
}

// deviceDifference returns the first difference between a share and its device.
func deviceDifference(want cdi.ShareKind, pinned bool, device cdi.WrittenDevice) (expected, detected string) {
	if device.Function == pinned {
		return pinnedOrNot(pinned), pinnedOrNot(!device.Function)
	}
	switch want := want.(type) {
	case *cdi.Zone:
		want.Partition = device.Partition
		if cpus := want.HookCPUs(); device.CPUs != cpus || device.Mems != want.Mems {
			return lists(cpus, want.Mems), lists(device.CPUs, device.Mems)
		}
	case *cdi.Cache:
		if device.Group != want.Group {
			return groupText(want.Group), groupText(device.Group)
		}
	case *cdi.Function:
		var paths []string
		for _, node := range want.Nodes {
			paths = append(paths, node.Path)
		}
		if !slices.Equal(paths, device.Nodes) {
			return fmt.Sprintf("device nodes %q", paths), fmt.Sprintf("%q", device.Nodes)
		}
	}
	return "", ""
}

// groupText names a group of resctrl that containers join.
func groupText(group string) string {
	if group == "" {
		return "no group to join"
	}
	return "group " + group + " to join"
}

func pinnedOrNot(pinned bool) string {
	if pinned {
		return "a hook that pins"
	}
	return "no hook"
}

// lists returns the CPUs and, if there are any, the NUMA nodes as text.
func lists(cpus, mems cpuset.Set) string {
	text := "no CPUs"
	if !cpus.IsEmpty() {
		text = "CPUs " + cpus.String()
	}
	if !mems.IsEmpty() {
		text += ", mems " + mems.String()
	}
	return text
}

// cpus returns all CPUs of the grant.
func cpus(grant ledger.Grant) (all cpuset.Set) {
	for i := range grant.Shares {
		all = all.Union(grant.Shares[i].CPUs())
	}
	return all
}
