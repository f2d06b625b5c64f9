package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// MemoryPolicy is the default memory policy of a task, as set_mempolicy(2) sets it, in the
// form of /proc/<pid>/numa_maps: such as default, bind:0-1, prefer (many):0-1 or weighted
// interleave:0.
type MemoryPolicy string

// DefaultMemoryPolicy is what a task has if nothing has set its policy.
const DefaultMemoryPolicy MemoryPolicy = "default"

// TaskMemoryPolicy returns the policy of a task from the text of its numa_maps, a file that
// Documentation/filesystems/proc.rst describes. It takes it from the line of the stack: a
// program may give its other mappings policies of their own, and a mapping of shared memory
// or hugepages has that of the file. The policy is "" if there is no such line: the task has
// ended.
func TaskMemoryPolicy(numaMaps string) MemoryPolicy {
	for line := range strings.Lines(numaMaps) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n")+" ", " ")
		policy, _, isStack := strings.Cut(rest, " stack ")
		if isStack && !strings.Contains(policy, " file=") {
			return MemoryPolicy(policy)
		}
	}
	return ""
}

// ParseMemoryPolicy reads a policy that has NUMA nodes, such as bind:0-1.
func ParseMemoryPolicy(text string) (MemoryPolicy, error) {
	if mode, nodes, err := MemoryPolicy(text).split(); err != nil || mode == "" || nodes.IsEmpty() {
		return "", fmt.Errorf("memory policy %.80q: want a mode and NUMA nodes, such as bind:0-1", text)
	}
	return MemoryPolicy(text), nil
}

// split returns the mode, without flags, and the NUMA nodes. The kernel prints two words for
// one and for many preferred nodes.
func (p MemoryPolicy) split() (mode string, nodes cpuset.Set, err error) {
	mode, list, _ := strings.Cut(string(p), ":")
	mode, _, _ = strings.Cut(mode, "=")
	if nodes, err = cpuset.Parse(list); err != nil {
		return "", cpuset.Set{}, err
	}
	return strings.TrimSuffix(mode, " (many)"), nodes, nil
}

// IsIgnored reports whether a task that began with the policy seen does not have what a claim
// wants: it has the default policy, or that of the claim without some of its NUMA nodes. Only
// nodes in allowed count, the cpuset.mems.effective of the task: the kernel leaves out others,
// and those without memory. Another policy is no fault: it is that of another claim, or the
// program has set it. The claims of a container may give it more nodes than this one.
func (p MemoryPolicy) IsIgnored(seen MemoryPolicy, allowed cpuset.Set) bool {
	mode, nodes, err := p.split()
	has, on, unknown := seen.split()
	if err != nil || unknown != nil {
		return false
	}
	nodes = nodes.Intersection(allowed)
	return !nodes.IsSubsetOf(on) && (has == mode || has == string(DefaultMemoryPolicy))
}

// PolicyFault says that a container has started without the memory policy of a claim.
type PolicyFault struct {
	Want MemoryPolicy `json:"want"` // that the claim asks for
	Seen MemoryPolicy `json:"seen"` // that the container's first process had
}

// Ignored is a PolicyFault of a container that runs.
type Ignored struct {
	Cgroup string // of the container: its path below the mount
	Claim  ClaimRef
	PolicyFault
}

// IgnorePolicy records that a container runs without the memory policy of a claim, for as
// long as it runs. The container is the path of its cgroup, as in [Pin]. Callers hold the
// host's [Lock].
func IgnorePolicy(h Host, container string, claim ClaimRef, fault PolicyFault) error {
	r, _, err := h.useOf(container, claim)
	if err != nil {
		return err
	}
	r.Claims = slices.Clone(r.Claims)
	i := slices.IndexFunc(r.Claims, func(c Claim) bool { return c.UID == claim.UID })
	r.Claims[i].Policy = fault
	return h.save(r)
}

// IgnoredPolicies returns the containers that run without the memory policy of a claim.
// Records that cannot be read are in the error; the list has the others.
func IgnoredPolicies(cgroups, records fs.FS) ([]Ignored, error) {
	list, faults, err := loadRecords(records)
	if err != nil {
		return nil, err
	}
	found := ignoredPolicies(cgroups, list, &faults)
	return found, errors.Join(faults...)
}

// ignoredPolicies adds records that it cannot compare to faults.
func ignoredPolicies(cgroups fs.FS, list []record, faults *[]error) (found []Ignored) {
	for _, r := range list {
		if !slices.ContainsFunc(r.Claims, func(c Claim) bool { return c.Policy != PolicyFault{} }) {
			continue
		}
		populated, err := isPopulated(cgroups, r.Cgroup)
		if err != nil {
			*faults = append(*faults, fmt.Errorf("inspect %s: %w", r.Cgroup, err))
		}
		for _, claim := range r.Claims {
			if populated && claim.Policy != (PolicyFault{}) {
				found = append(found, Ignored{r.Cgroup, claim.ClaimRef, claim.Policy})
			}
		}
	}
	return found
}
