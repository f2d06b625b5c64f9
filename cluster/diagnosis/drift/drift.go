// Package drift compares what one node records about claims: in the claims of the API
// server, the checkpoint, the CDI specs and the cgroups. All of them must agree. The
// package reads nothing and changes nothing.
package drift

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Finding is one difference.
type Finding struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Check is the name of the check; it does not change between versions.
	Check Check `json:"check"`
	// Claim is namespace/name, or else a UID. It is empty if no record names the claim.
	Claim string `json:"claim"`
	// CPUs are the CPUs that the finding is about. There may be none.
	CPUs cpuset.Set `json:"cpus"`
	// Where is the place of the difference: the checkpoint, a CDI spec or a cgroup.
	Where string `json:"where"`
	// Expected and Detected are for people.
	Expected string `json:"expected"`
	Detected string `json:"detected"`
}

// Check is the name of a comparison.
type Check string

// The checks, in the order of their findings. docs/drift.md explains each.
const (
	Unreadable         Check = "unreadable"
	ClaimWithoutRecord Check = "claim-without-record"
	RecordWithoutClaim Check = "record-without-claim"
	RecordDiffers      Check = "record-differs"
	RecordWithoutSpec  Check = "record-without-spec"
	SpecWithoutRecord  Check = "spec-without-record"
	SpecDiffers        Check = "spec-differs"
	ContainerNotPinned Check = "container-not-pinned"
	PartitionDiffers   Check = "partition-differs"
	PartitionOfNobody  Check = "partition-of-nobody"
	PartitionInvalid   Check = "partition-invalid"
	TaskInOtherGroup   Check = "task-in-other-group"
	PolicyIgnored      Check = "policy-ignored"
)

// Checks returns all checks, in their order.
func Checks() []Check {
	return []Check{
		Unreadable, ClaimWithoutRecord, RecordWithoutClaim, RecordDiffers, RecordWithoutSpec, SpecWithoutRecord,
		SpecDiffers, ContainerNotPinned, PartitionDiffers, PartitionOfNobody, PartitionInvalid,
		TaskInOtherGroup, PolicyIgnored,
	}
}

// comparison is the comparison of one node.
type comparison struct {
	node    string
	state   *nodestate.State
	objects *Objects

	grants   map[types.UID]ledger.Grant
	findings []Finding
}

// Compare finds the differences on a node. If a part of the node could not be read,
// that is the only finding about this part. The list is in the order of the checks,
// then by claim. It is never nil. A change in progress can look like a finding: use
// [Lasting] to remove such findings.
func Compare(node string, state *nodestate.State, objects *Objects) []Finding {
	c := comparison{
		node: node, state: state, objects: objects, findings: []Finding{}, grants: make(map[types.UID]ledger.Grant),
	}
	for _, grant := range state.Checkpoint.Grants {
		c.grants[grant.UID] = grant
	}
	for _, problem := range state.Problems {
		c.add(Finding{Check: Unreadable, Where: string(problem.Part), Expected: "readable", Detected: problem.Why})
	}
	if c.read(nodestate.CheckpointPart) {
		c.compareClaims()
		c.compareGrants()
	}
	if c.read(nodestate.CheckpointPart, nodestate.SpecsPart) {
		c.compareSpecs()
	}
	c.comparePins()
	c.comparePolicies()
	if c.read(nodestate.PinsPart, nodestate.PartitionsPart) {
		c.comparePartitions()
	}
	if c.read(nodestate.CheckpointPart, nodestate.TasksPart) {
		c.compareTasks()
	}
	rank := func(f Finding) int { return slices.Index(Checks(), f.Check) }
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Claim, b.Claim)) })
	return c.findings
}

func (c *comparison) add(f Finding) {
	f.Node = c.node
	c.findings = append(c.findings, f)
}

// read reports whether all these parts could be read.
func (c *comparison) read(parts ...nodestate.Part) bool {
	return !slices.ContainsFunc(parts, func(part nodestate.Part) bool { return c.state.Unread(part) != "" })
}

// Lasting returns the findings of now that were also found earlier. The other findings
// came from changes in progress.
func Lasting(earlier, now []Finding) []Finding {
	lasting := []Finding{}
	for _, finding := range now {
		if slices.ContainsFunc(earlier, func(f Finding) bool {
			return f.Node == finding.Node && f.Check == finding.Check && f.Claim == finding.Claim && f.Where == finding.Where
		}) {
			lasting = append(lasting, finding)
		}
	}
	return lasting
}
