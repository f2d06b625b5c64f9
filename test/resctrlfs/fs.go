package resctrlfs

import (
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// FS is a mounted resctrl filesystem. It is an [fs.FS]; names are relative to the mount.
// Its methods may be called at the same time.
type FS struct {
	mu        sync.Mutex
	machine   Machine
	maskBits  int // of the text of cpus
	online    cpuset.Set
	present   map[int]bool // caches with an online CPU, by id
	schemas   []*schema    // in the order of the lines of schemata
	root      *group
	groups    []*group // the other control groups, in the order of their creation
	free      []int    // RMIDs that a group can have, in the order in which they are given
	limbo     []int    // RMIDs that no group has, but lines in a cache may still have
	threshold int      // max_threshold_occupancy
	status    string   // last_cmd_status; "" reads as ok
	tasks     []*task
	counters  map[counter]string
	fault     fault
}

// group is a control group, or a monitoring group if it has a parent.
type group struct {
	name      string
	closid    int
	rmid      int
	exclusive bool
	cpus      cpuset.Set
	parent    *group
	children  []*group // monitoring groups
}

// New returns the filesystem as it is after it was mounted, with all CPUs online.
func New(m Machine) *FS {
	f := &FS{machine: m, online: m.cpus(), maskBits: maskBits(m.cpus()), counters: map[counter]string{}, present: map[int]bool{}}
	f.machine.Caches = slices.Clone(m.Caches)
	slices.SortFunc(f.machine.Caches, func(a, b Cache) int { return a.ID - b.ID })
	f.root = &group{cpus: f.online}
	if b := m.Bandwidth; b != nil {
		f.schemas = append(f.schemas, newSchema("MB", b.Classes, false, m.noLimit()))
	}
	for _, name := range m.cacheNames() {
		f.schemas = append(f.schemas, newSchema(name, m.cacheClasses(), true, m.full()))
	}
	for _, cache := range f.machine.Caches {
		f.addDomain(cache.ID)
	}
	for rmid := 1; rmid < m.RMIDs; rmid++ { // 0 is the root group's
		f.free = append(f.free, rmid)
	}
	f.threshold = f.roundedOccupancy(f.largestThreshold() / max(m.RMIDs, 1))
	return f
}

// Mkdir does what mkdir(2) does.
func (f *FS) Mkdir(name string) error {
	return f.change(Change{"mkdir", name, ""}, func() error { return f.mkdir(name) })
}

// Rmdir does what rmdir(2) does. Groups need not be empty: their CPUs and tasks return to
// the parent of a monitoring group, or to the root group.
func (f *FS) Rmdir(name string) error {
	return f.change(Change{"rmdir", name, ""}, func() error { return f.rmdir(name) })
}

// Rename does what rename(2) does. Only monitoring groups can be renamed or moved.
func (f *FS) Rename(from, to string) error {
	return f.change(Change{"rename", from, to}, func() error { return f.rename(from, to) })
}

// Write opens a file for writing, and writes text with one call of write(2). Nothing is
// added to text: schemata and mode want a newline at its end.
func (f *FS) Write(name, text string) error {
	return f.change(Change{"write", name, text}, func() error { return f.write(name, text) })
}

func (f *FS) write(name, text string) error {
	n, err := f.find(name)
	switch {
	case err != nil:
		return err
	case n.isFolder():
		return syscall.EISDIR
	case n.write == nil:
		return syscall.EACCES // also for root, since the file has no method for it
	case len(text) > pageSize:
		return syscall.E2BIG
	}
	return n.write(text)
}

// pageSize is the longest text that a file takes.
const pageSize = 4096

// controlGroups returns all of them.
func (f *FS) controlGroups() []*group {
	return append([]*group{f.root}, f.groups...)
}

// newCommand empties last_cmd_status, if the kernel does so from this one on. Others leave
// there what earlier commands said.
func (f *FS) newCommand(since Kernel) {
	if f.machine.Kernel >= since {
		f.status = ""
	}
}

// say adds a line to last_cmd_status.
func (f *FS) say(format string, args ...any) { f.status += fmt.Sprintf(format, args...) + "\n" }

// refuse returns the error, and says why.
func (f *FS) refuse(err syscall.Errno, format string, args ...any) error {
	f.say(format, args...)
	return err
}

// withoutNewline returns the text without its last byte, which has to be a newline. The
// files that want it leave last_cmd_status as it was if it is missing.
func withoutNewline(text string) (string, bool) {
	if text == "" || text[len(text)-1] != '\n' {
		return "", false
	}
	return text[:len(text)-1], true
}
