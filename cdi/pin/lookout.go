package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
)

// Lookout looks at the partitions of the host and at the recorded cgroups. A look reads
// files of every cgroup; between looks, Changed says whether another one would find
// something else. It sees at once what happens to a recorded cgroup, to a partition, and
// to their siblings and to cgroups above them, and each partition that takes CPUs from the
// root cgroup. It does not see that a cgroup without CPUs of its own becomes an invalid
// partition.
type Lookout struct {
	cgroups, records string
	others           []string // directories whose entries count, too
	events           watch
	states           kernelfs.FirstLines
	again            bool // the last look missed what happened before it followed it
}

// Sight is what one look found: the answers of [Holdings], [Inspect], [Refusals] and
// [IgnoredPolicies].
type Sight struct {
	Holdings []Holding
	Live     []Live
	Refusals []Refusal
	Ignored  []Ignored
	// Unread are records and cgroups that could not be read.
	Unread error
}

// NewLookout returns a lookout on the cgroup v2 mount and the directory of the records,
// which may not exist yet. Entries that come and go in one of the other directories are a
// change, too. If the error is not nil, the host has no inotify to spare: Changed always
// answers that something has changed, and each look tries again.
func NewLookout(cgroups, records string, others ...string) (*Lookout, error) {
	events, err := newWatch()
	return &Lookout{cgroups: cgroups, records: records, others: others, events: events}, err
}

// Close ends the watch.
func (l *Lookout) Close() {
	l.events.close()
	l.states.Close()
}

// Changed reports whether something has changed since the last look began.
func (l *Lookout) Changed() bool {
	appeared := l.events.add(l.records, dirMask)
	return l.again || !l.events.complete || appeared || l.events.poll() || l.states.Changed(kernelfs.Dir(l.cgroups))
}

// Look looks. If it cannot, the sight is empty and says nothing.
func (l *Lookout) Look(now time.Time) (sight Sight, err error) {
	cgroups, records := kernelfs.Dir(l.cgroups), os.DirFS(l.records)
	if !l.events.available {
		l.events, _ = newWatch()
	}
	l.events.poll() // what has happened until now is about to be read
	l.again = true
	t, err := readPartitions(cgroups)
	if err != nil {
		return sight, err
	}
	list, faults, err := loadRecords(records)
	if err != nil {
		return sight, err
	}
	added := l.events.follow(l.watched(t, list))
	l.states.Follow(cgroups, append(stateFiles(list), rootCPUsFile))
	sight.Holdings = t.holdings()
	sight.Live = inspect(cgroups, list, &faults)
	sight.Ignored = ignoredPolicies(cgroups, list, &faults)
	sight.Refusals, err = Refusals(records, now)
	sight.Unread = errors.Join(append(faults, t.unread(), err)...)
	l.again = added
	return sight, nil
}

// watched returns the directories and files in which something may happen.
func (l *Lookout) watched(t tree, list []record) (dirs, files []string) {
	dirs = append([]string{l.records, l.cgroups}, l.others...)
	for _, g := range t {
		if g.fault != nil {
			continue // it cannot be followed
		}
		dir := path.Join(l.cgroups, g.path)
		dirs = append(dirs, dir)
		files = append(files, path.Join(dir, partitionFile), path.Join(dir, exclusiveFile), path.Join(dir, cpusFile))
	}
	return dirs, append(files, recordedFiles(l.cgroups, list)...)
}

// recordedFiles returns the files below the mount that say what records' cgroups have.
func recordedFiles(mount string, list []record) (files []string) {
	for _, r := range list {
		if !r.pins() {
			files = append(files, path.Join(mount, r.Cgroup, "cgroup.events"))
			continue
		}
		for _, file := range []string{partitionFile, exclusiveFile, cpusFile, memsFile, "cgroup.events"} {
			files = append(files, path.Join(mount, r.Cgroup, file))
		}
		for dir := path.Dir(r.Cgroup); dir != "."; dir = path.Dir(dir) {
			files = append(files, path.Join(mount, dir, exclusiveFile))
		}
	}
	return files
}

// readPartitions returns the cgroups that have exclusive CPUs or a partition. There are
// none on a host without cgroup v2.
func readPartitions(cgroups fs.FS) (t tree, err error) {
	_, err = fs.Stat(cgroups, "cgroup.controllers")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = t.walk(cgroups, "")
	}
	if err != nil {
		return nil, fmt.Errorf("list cpuset partitions: %w", err)
	}
	return t, nil
}
