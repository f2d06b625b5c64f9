// Package drift compares what one node has of claims with each other and with the
// API server's claims: checkpoint, CDI specs and cgroups. All of them are to say
// the same. It reads nothing and changes nothing.
package drift

import (
	"cmp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Finding is one thing that says something else than another.
type Finding struct {
	// Node is where.
	Node string `json:"node"`
	// Check is what was found; it does not change between versions.
	Check Check `json:"check"`
	// Claim is namespace/name, else a UID; empty if nobody knows whose it is.
	Claim string `json:"claim"`
	// CPUs are those that it is about; there may be none.
	CPUs cpuset.Set `json:"cpus"`
	// Where is what says something else: the checkpoint, a CDI spec, a cgroup.
	Where string `json:"where"`
	// Expected and Detected are for people.
	Expected string `json:"expected"`
	Detected string `json:"detected"`
}

// Check is something that is compared.
type Check string

// The checks, in the order of their findings. docs/drift.md explains them.
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
)

// Checks are all of them, in their order.
func Checks() []Check {
	return []Check{
		Unreadable, ClaimWithoutRecord, RecordWithoutClaim, RecordDiffers, RecordWithoutSpec, SpecWithoutRecord,
		SpecDiffers, ContainerNotPinned, PartitionDiffers, PartitionOfNobody, PartitionInvalid,
	}
}

// comparison is one node with what is known of it.
type comparison struct {
	node    string
	state   *nodestate.State
	objects *snapshot.Snapshot

	claims   map[types.UID]*resourceapi.ResourceClaim
	grants   map[types.UID]driver.Grant
	findings []Finding
}

// Compare finds what does not agree on a node. Of a part that could not be read
// only that is a finding. The list is in the order of the checks, then by claim;
// it is never nil. What is happening just now can look like a finding: [Lasting]
// tells it from one.
func Compare(node string, state *nodestate.State, objects *snapshot.Snapshot) []Finding {
	c := comparison{
		node: node, state: state, objects: objects, findings: []Finding{},
		claims: make(map[types.UID]*resourceapi.ResourceClaim), grants: make(map[types.UID]driver.Grant),
	}
	for _, claim := range objects.Claims {
		c.claims[claim.UID] = claim
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
	if c.read(nodestate.PinsPart, nodestate.PartitionsPart) {
		c.comparePartitions()
	}
	rank := func(f Finding) int { return slices.Index(Checks(), f.Check) }
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Claim, b.Claim)) })
	return c.findings
}

func (c *comparison) add(f Finding) {
	f.Node = c.node
	c.findings = append(c.findings, f)
}

// read reports whether all of the parts are there.
func (c *comparison) read(parts ...nodestate.Part) bool {
	return !slices.ContainsFunc(parts, func(part nodestate.Part) bool { return c.state.Unread(part) != "" })
}

// Lasting are the findings that an earlier look had too: the others came of
// something that was happening.
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
