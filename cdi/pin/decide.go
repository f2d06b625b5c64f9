package pin

import (
	"fmt"
	"path"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// decision is what the cgroup of one live record should have.
type decision struct {
	record
	want       Pinning
	downgraded bool // no partition, although the claims ask for one
}

// decide returns what the cgroup of each live record should have, in the order of the
// records, except for those that give nothing. Each cgroup has what its claims give, with one
// restriction:
//
//	CPUs of a claim are in at most one partition, and in none while a cgroup
//	outside that partition uses them
//
// So if two pods use a claim, neither has a partition. Nor does a pod that came later to a
// claim in pod scope, also if it is the only one left.
func decide(live []record) []decision {
	var list []decision
	for i, r := range live {
		if !r.pins() {
			continue
		}
		d := decision{record: r, want: r.wish()}
		late := func(c Claim) bool { return c.Later }
		d.downgraded = r.Scope == ScopePod && d.want.Partition != PartitionNone && slices.ContainsFunc(r.Claims, late)
		for j, other := range live {
			outside := i != j && !isWithin(other.Cgroup, r.Cgroup)
			if outside && d.want.Partition != PartitionNone && sharesCPUs(r, other) && !contend(r, other) {
				d.downgraded = true
			}
		}
		if d.downgraded {
			d.want.Partition = PartitionNone
		}
		list = append(list, d)
	}
	return list
}

// sharesCPUs reports whether one claim gives the same CPUs to both records. Containers
// may use different requests of one claim, which have different CPUs. Two claims with
// the same CPUs are no conflict: one of the two has ended.
func sharesCPUs(a, b record) bool {
	return slices.ContainsFunc(a.Claims, func(c Claim) bool {
		return slices.ContainsFunc(b.Claims, func(d Claim) bool {
			return d.UID == c.UID && d.CPUs.Overlaps(c.CPUs)
		})
	})
}

// contend reports whether two records with a common claim exclude each other. They do if
// both want a partition in one pod: each hook was told that its cgroup is the only user.
func contend(a, b record) bool {
	return a.pod() == b.pod() && a.wish().Partition != PartitionNone && b.wish().Partition != PartitionNone
}

// admit returns the records that a container's hook has to write: the live records of
// its cgroups, or new ones, with the claim added. It returns an error if a live record
// is in conflict, or if another container of the pod still has CPUs that this container
// must have to itself.
func admit(live []record, boot, container string, scope Scope, claim Claim) ([]record, error) {
	var admitted []record
	for _, fresh := range wishes(boot, container, scope, claim) {
		for _, r := range live {
			if r.Cgroup == fresh.Cgroup && r.Scope == fresh.Scope {
				fresh = r.with(fresh.Claims[0])
			}
		}
		for _, r := range append(admitted, live...) {
			switch {
			case r.Cgroup == fresh.Cgroup && r.Scope != fresh.Scope:
				return nil, fmt.Errorf("cgroup %s has a record with scope %s, want scope %s: %w", r.Cgroup, r.Scope, fresh.Scope, ErrInUse)
			case r.Cgroup == fresh.Cgroup:
			case r.file() == fresh.file():
				return nil, fmt.Errorf("record %s belongs to cgroup %s: %w", r.file(), r.Cgroup, ErrInUse)
			case sharesCPUs(r, fresh) && contend(r, fresh):
				return nil, fmt.Errorf("cgroup %s of the same pod uses the claim: %w", r.Cgroup, ErrInUse)
			}
		}
		admitted = append(admitted, fresh)
	}
	return admitted, nil
}

// wishes returns the records that the arguments of one hook ask for, one per cgroup. In
// pod scope, the pod's cgroup becomes the partition. The container's cgroup gets the same
// CPUs inside that partition, and the memory nodes, because the containers of a pod may
// differ in both.
func wishes(boot, container string, scope Scope, claim Claim) []record {
	if claim.CPUs.IsEmpty() {
		claim.Partition = PartitionNone
	}
	if scope != ScopePod || claim.CPUs.IsEmpty() {
		return []record{{Boot: boot, Cgroup: container, Scope: ScopeContainer, Claims: []Claim{claim}}}
	}
	pod, own := claim, claim
	pod.Mems, pod.LiftQuota, pod.PodLimit, own.Partition, own.Later = cpuset.Set{}, false, 0, PartitionNone, false
	return []record{
		{Boot: boot, Cgroup: path.Dir(container), Scope: ScopePod, Claims: []Claim{pod}},
		{Boot: boot, Cgroup: container, Scope: ScopeContainer, Claims: []Claim{own}},
	}
}

// replaced returns the live records with the admitted ones added. An admitted record
// replaces the live record of the same cgroup.
func replaced(live, admitted []record) []record {
	list := slices.Clone(live)
	for _, r := range admitted {
		i := slices.IndexFunc(list, func(old record) bool { return old.Cgroup == r.Cgroup })
		if i < 0 {
			list = append(list, r)
		} else {
			list[i] = r
		}
	}
	return list
}

// touched returns the decisions about the admitted records, and about records that have
// a claim in common with them. A hook may have been killed after it wrote its record and
// before it took away their partition.
func touched(all []decision, admitted []record) (list []decision) {
	for _, d := range all {
		if slices.ContainsFunc(admitted, func(r record) bool { return r.Cgroup == d.Cgroup || sharesCPUs(r, d.record) }) {
			list = append(list, d)
		}
	}
	return list
}
