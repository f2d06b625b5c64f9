package pin

import (
	"fmt"
	"io/fs"
	"math/bits"
	"path"
	"strconv"
	"strings"
)

const (
	// quotaFile has the CPU time in microseconds that a cgroup may use in each period, and the
	// period; see "cpu.max" in Documentation/admin-guide/cgroup-v2.rst.
	quotaFile = "cpu.max"
	noQuota   = "max"

	// innerCgroup is the child of a container's cgroup in which crun starts the container
	// where systemd makes cgroups. crun gives it the container's quota, too.
	innerCgroup = "container"
)

// quota is what a cgroup may use.
type quota struct {
	file         string // "" if the cgroup has ended, or has no cpu controller
	line         string // as the kernel shows it
	time, period uint64 // time is 0 without a limit
}

func (q quota) isLimit() bool { return q.time > 0 }

// fits reports whether so many CPUs have no more time than the quota.
func (q quota) fits(cpus int) bool { return q.time >= uint64(cpus)*q.period }

// isSum reports whether it is no less than limits that add up to so many thousandths of a CPU.
func (q quota) isSum(limits int64) bool {
	high, thousandths := bits.Mul64(uint64(limits), q.period)
	return limits > 0 && high == 0 && q.time >= thousandths/1000
}

// lifted returns the write that lifts it.
func (q quota) lifted() Write { return Write{q.file, fmt.Sprintf("%s %d", noQuota, q.period)} }

func readQuota(cgroups fs.FS, cgroup string) (quota, error) {
	file := path.Join(cgroup, quotaFile)
	line, err := readLine(cgroups, file)
	if isGone(err) {
		return quota{}, nil
	}
	if err != nil {
		return quota{}, err
	}
	q, err := parseQuota(line)
	if err != nil {
		return quota{}, fmt.Errorf("read %s: %w", file, err)
	}
	q.file = file
	return q, nil
}

func parseQuota(line string) (quota, error) {
	const bits = 48 // the kernel's largest time is less, and the time of all CPUs fits in 64
	text, rest, _ := strings.Cut(line, " ")
	period, err := strconv.ParseUint(rest, 10, bits)
	time := uint64(0)
	if text != noQuota && err == nil {
		time, err = strconv.ParseUint(text, 10, bits)
	}
	if err != nil || period == 0 || text != noQuota && time == 0 {
		return quota{}, fmt.Errorf("%q: want a time or %s, and a period", line, noQuota)
	}
	return quota{line: line, time: time, period: period}, nil
}

// lifts reports whether the quota of the record's container may be lifted.
func (r record) lifts() bool {
	if r.Scope != ScopeContainer || r.wish().CPUs.IsEmpty() {
		return false
	}
	for _, claim := range r.Claims {
		if !claim.CPUs.IsEmpty() && !claim.LiftQuota {
			return false
		}
	}
	return true
}

// podLimit returns the largest PodLimit of the claims with CPUs, which were prepared at
// different times; 0 if one of them has none.
func (r record) podLimit() (limit int64) {
	for _, claim := range r.Claims {
		if claim.CPUs.IsEmpty() {
			continue
		}
		if claim.PodLimit == 0 {
			return 0
		}
		limit = max(limit, claim.PodLimit)
	}
	return limit
}

// quotaCgroups returns the cgroups in which the quota of the record's container may be. The
// last one is the pod's.
func (r record) quotaCgroups() []string {
	if r.Inner {
		return []string{path.Join(r.Cgroup, innerCgroup), r.Cgroup, r.pod()}
	}
	return []string{r.Cgroup, r.pod()}
}

// readQuotas returns the quotas of the container and of its pod.
func (r record) readQuotas(cgroups fs.FS) (container []quota, pod quota, err error) {
	for _, cgroup := range r.quotaCgroups() {
		q, err := readQuota(cgroups, cgroup)
		if err != nil {
			return nil, quota{}, err
		}
		container = append(container, q)
	}
	last := len(container) - 1
	return container[:last], container[last], nil
}

// quotaFiles returns the files of records whose quotas may be lifted.
func quotaFiles(mount string, records []record) (files []string) {
	for _, r := range records {
		if !r.lifts() {
			continue
		}
		for _, cgroup := range r.quotaCgroups() {
			files = append(files, path.Join(mount, cgroup, quotaFile))
		}
	}
	return files
}

// withQuotas returns the records of a container that has not started with the quotas that it
// had before the first one was lifted.
func withQuotas(cgroups fs.FS, admitted []record) []record {
	for i, r := range admitted {
		if !r.lifts() {
			continue
		}
		if info, err := fs.Stat(cgroups, path.Join(r.Cgroup, innerCgroup)); err == nil {
			admitted[i].Inner = info.IsDir()
		}
		if r.Quota != "" {
			continue
		}
		if q, err := readQuota(cgroups, r.Cgroup); err == nil && q.isLimit() { // one that cannot be read is not lifted
			admitted[i].Quota = q.line
		}
	}
	return admitted
}

// planQuota decides which quotas of a container with so many CPUs are lifted. One that these
// CPUs fit in limits nothing: the container cannot use more. It throttles all the same,
// because the kernel gives it to CPUs in slices. A smaller one is meant, and stays.
//
// That of the pod limits nothing if it is no less than the sum of those of its containers, each
// of which has its own, or CPUs of its own. It is lifted for the first container that has
// no quota left, as the kubelet does for exclusive CPUs. A smaller one is the pod's own limit,
// which a resize may have added.
func planQuota(container []quota, pod quota, cpus int, podLimit int64) (writes []Write) {
	limited := false
	for _, q := range container {
		switch {
		case !q.isLimit():
		case q.fits(cpus):
			writes = append(writes, q.lifted())
		default:
			limited = true
		}
	}
	if pod.isLimit() && !limited && pod.isSum(podLimit) {
		writes = append(writes, pod.lifted())
	}
	return writes
}

// planQuotaBack decides which quotas of a container are given back: an earlier hook of it has
// lifted them, but with the CPUs of this one they limit again.
func planQuotaBack(container []quota, r record) (writes []Write) {
	before, err := parseQuota(r.Quota)
	if err != nil || !before.isLimit() || r.lifts() && before.fits(r.wish().CPUs.Size()) {
		return nil
	}
	for _, q := range container {
		if q.file != "" && !q.isLimit() {
			writes = append(writes, Write{q.file, r.Quota})
		}
	}
	return writes
}

// quotaWrites returns the writes that lift the quotas of the record's container.
func quotaWrites(cgroups fs.FS, r record) ([]Write, error) {
	if !r.lifts() {
		return nil, nil
	}
	container, pod, err := r.readQuotas(cgroups)
	if err != nil {
		return nil, err
	}
	return planQuota(container, pod, r.wish().CPUs.Size(), r.podLimit()), nil
}

// firstQuotaWrites returns the same for a hook, before the container starts: it may have lifted
// too much when it did not know all of the container's CPUs.
func firstQuotaWrites(cgroups fs.FS, r record) ([]Write, error) {
	if r.Quota == "" {
		return quotaWrites(cgroups, r)
	}
	container, _, err := r.readQuotas(cgroups)
	if err != nil {
		return nil, err
	}
	if back := planQuotaBack(container, r); len(back) > 0 {
		return back, nil
	}
	return quotaWrites(cgroups, r)
}

// settleQuotas makes the writes for the containers of these records, and reads back. It returns
// those that were made, and what is wrong with others.
func (h Host) settleQuotas(records []record, plan func(fs.FS, record) ([]Write, error)) (done []Write, err error) {
	var errs []error
	for _, r := range records {
		writes, err := plan(h.Cgroups.FS(), r)
		errs = append(errs, err)
		for _, w := range writes {
			switch err := h.writeQuota(w); {
			case err == nil:
				done = append(done, w)
			case !isGone(err):
				errs = append(errs, fmt.Errorf("change the CPU quota of claim %s: %w", r.names(), err))
			}
		}
	}
	return done, joinErrors(errs...)
}

func (h Host) writeQuota(w Write) error {
	if err := h.write(w); err != nil {
		return err
	}
	q, err := readQuota(h.Cgroups.FS(), path.Dir(w.File))
	if err == nil && q.line != w.Value {
		err = differs(w.File, "is %q, want %q", q.line, w.Value)
	}
	return err
}
