package pin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// WorkqueuesDir is the directory of [Host.Workqueues] below the mount of sysfs.
const WorkqueuesDir = "devices/virtual/workqueue"

const (
	workqueuesFile = "cpumask"           // what is written here is read in requestedFile
	requestedFile  = "cpumask_requested" // the CPUs of kernel work without a CPU of its own, before those of isolated partitions are taken
	takenFile      = "workqueues"        // next to the records
)

// taken says which CPUs were taken from the kernel's workqueues for isolated partitions.
type taken struct {
	Boot string     `json:"boot"` // the kernel forgets its mask at a reboot
	CPUs cpuset.Set `json:"cpus"`
}

// settleWorkqueues takes the CPUs of isolated partitions from the kernel's workqueues, and
// gives back those of partitions that are gone. It must come before the partition begins and
// after it has ended, because the kernel must find nothing to do at both: since Linux 6.8, it
// takes these CPUs from its workqueues itself, for which it makes threads while it holds the
// lock of all cpusets (workqueue_unbound_exclude_cpumask in kernel/workqueue.c, called by
// kernel/cgroup/cpuset.c). A task that joins a cgroup holds up all new threads and waits for
// that lock. If both meet, no process of the host starts or ends any more. Linux 6.12 does so,
// and 7.2 does not. With the CPUs taken from the mask that an administrator sets, the kernel's
// own mask does not change at either time.
//
// What was taken is on record before it is taken, and until it is given back. What another
// program wrote to the mask stays, except for CPUs of isolated partitions. Older kernels have
// no such file, and nothing to do. Callers hold the host's lock.
func (h Host) settleWorkqueues(live []record) error {
	w, err := h.readWorkqueues(live)
	if err != nil {
		return err
	}
	if !w.settled() {
		if err := h.changeWorkqueues(w); err != nil {
			return err
		}
	}
	if w.want.IsEmpty() {
		return nil
	}
	return h.awaitReleaser()
}

// changeWorkqueues writes the record and the mask.
func (h Host) changeWorkqueues(w workqueues) error {
	if err := h.saveTaken(w.known, w.all()); err != nil {
		return err
	}
	if w.next() != w.requested {
		if err := h.writeWorkqueues(w.next()); err != nil {
			return fmt.Errorf("set the kernel's workqueues to cpus %s, without those of isolated partitions: %w", w.next(), err)
		}
		pauseForReleaser()
	}
	return h.saveTaken(w.all(), w.all().Intersection(w.want))
}

// workqueues says what the kernel's mask has, and should not have.
type workqueues struct {
	requested cpuset.Set // the mask
	known     cpuset.Set // taken, as is on record
	want      cpuset.Set // to be taken
}

// readWorkqueues returns the zero value if this host has no mask, or no CPU was taken and none
// is to be.
func (h Host) readWorkqueues(live []record) (w workqueues, err error) {
	if h.Workqueues == nil {
		return w, nil
	}
	w.want, w.known = isolatedCPUs(live), h.loadTaken()
	if w.want.IsEmpty() && w.known.IsEmpty() {
		return w, nil
	}
	line, err := readLine(h.Workqueues.FS(), requestedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return workqueues{}, nil
	}
	if err == nil {
		w.requested, err = cpuset.ParseMask(line)
	}
	if err != nil {
		err = fmt.Errorf("read the mask of the kernel's workqueues, %s: %w", requestedFile, err)
	}
	return w, err
}

// all are the CPUs to have on record before the write.
func (w workqueues) all() cpuset.Set { return w.known.Union(w.want.Intersection(w.requested)) }

// next is the mask to write. The kernel refuses an empty one, and if isolated partitions have
// all CPUs of its mask, it does not change it.
func (w workqueues) next() cpuset.Set {
	next := w.requested.Union(w.known).Difference(w.want)
	if next.IsEmpty() {
		return w.requested
	}
	return next
}

// settled reports whether there is nothing to write and nothing to record.
func (w workqueues) settled() bool {
	return w.next() == w.requested && w.all().Intersection(w.want) == w.known
}

// isolatedCPUs are the CPUs for which records ask for an isolated partition.
func isolatedCPUs(records []record) (cpus cpuset.Set) {
	for _, r := range records {
		if wish := r.wish(); wish.Partition == PartitionIsolated {
			cpus = cpus.Union(wish.CPUs)
		}
	}
	return cpus
}

// writeWorkqueues writes the mask and reads back whether the kernel has it.
func (h Host) writeWorkqueues(cpus cpuset.Set) error {
	return h.step(workqueuesFile, cpus.Mask(), func() error {
		if err := writeKernelFile(h.Workqueues, workqueuesFile, cpus.Mask()); err != nil {
			return err
		}
		line, err := readLine(h.Workqueues.FS(), requestedFile)
		if err != nil {
			return err
		}
		if got, err := cpuset.ParseMask(line); err != nil || got != cpus {
			return differs(requestedFile, "reads %q, want %q", line, cpus.Mask())
		}
		return nil
	})
}

// loadTaken returns what was taken in this boot. A power failure may have left an empty file.
func (h Host) loadTaken() cpuset.Set {
	var t taken
	data, err := h.Records.ReadFile(takenFile)
	if err != nil || json.Unmarshal(data, &t) != nil || t.Boot != h.Boot {
		return cpuset.Set{}
	}
	return t.CPUs
}

// saveTaken records what was taken, unless it is recorded already.
func (h Host) saveTaken(known, cpus cpuset.Set) error {
	if cpus == known {
		return nil
	}
	text, effect := "", func() error { return h.Records.Remove(takenFile) }
	if !cpus.IsEmpty() {
		data, err := json.Marshal(taken{h.Boot, cpus})
		if err != nil {
			return err
		}
		text, effect = string(data), func() error { return Replace(h.Records, takenFile, append(data, '\n')) }
	}
	if err := h.step(takenFile, text, effect); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record cpus %q as taken from the kernel's workqueues: %w", cpus, err)
	}
	return nil
}

// OpenWorkqueues opens the directory for [Host.Workqueues]. It returns nil if there is none.
func OpenWorkqueues(name string) (*os.Root, error) {
	dir, err := os.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}
