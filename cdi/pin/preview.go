package pin

import (
	"io/fs"
	"path"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// RefusedError is why the kernel did not let a container have what its claim has.
type RefusedError struct {
	Err  error
	Plan Plan // all that Pin wanted to write, until it gave up
}

// Error returns the text of Err.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// Preview returns what [Pin] would write to the kernel now, and changes nothing. It does not
// know what the kernel refuses, so it lacks the writes with which Pin then tries again. It
// needs no lock: a hook that runs at the same time may change the answer. Records may be missing. An
// error is one that Pin would return before it writes.
func Preview(cgroups, records fs.FS, boot, container string, scope Scope, claim Claim) (Plan, error) {
	p := Plan{Target: container, Want: claim.Pinning}
	if err := checkController(cgroups, container); err != nil {
		return p, err
	}
	if err := checkExclusive(cgroups, container, claim.Pinning); err != nil {
		return p, err
	}
	list, _, err := loadRecords(records)
	if err != nil {
		return p, err
	}
	live, dead, _ := split(cgroups, boot, list)
	for _, r := range dead {
		if r.wish().CPUs.IsEmpty() {
			continue
		}
		var t tree
		if err := t.walk(cgroups, ""); err != nil {
			return p, err
		}
		p.Writes = append(p.Writes, planRelease(t.after(p), r.Cgroup).Writes...)
	}
	admitted, work, err := admitAndDecide(live, boot, container, scope, claim)
	if err != nil {
		return p, err
	}
	for _, partition := range []bool{false, true} { // as enforce does
		for _, d := range work {
			if (d.want.Partition != PartitionNone) != partition {
				continue
			}
			t, err := readTree(cgroups, d.Cgroup)
			if err != nil {
				return p, err
			}
			next, err := planPin(t.after(p), d.Cgroup, d.want)
			if err != nil {
				return p, err
			}
			p.Writes = append(p.Writes, next.Writes...)
		}
	}
	for _, r := range withQuotas(cgroups, admitted) {
		writes, err := firstQuotaWrites(cgroups, r)
		if err != nil {
			return p, err
		}
		p.Writes = append(p.Writes, writes...)
	}
	return p, nil
}

// after returns the tree as it would be after the writes of a plan.
func (t tree) after(p Plan) tree {
	t = slices.Clone(t)
	for _, w := range p.Writes {
		i := slices.IndexFunc(t, func(g group) bool { return g.path == path.Dir(w.File) })
		if i < 0 {
			continue
		}
		set, _ := cpuset.Parse(w.Value) // that of a partition is no set
		switch path.Base(w.File) {
		case partitionFile:
			t[i].state = w.Value
		case exclusiveFile:
			t[i].exclusive = set
		case cpusFile:
			t[i].cpus = set
		case memsFile:
			t[i].mems = set
		}
	}
	return t
}
