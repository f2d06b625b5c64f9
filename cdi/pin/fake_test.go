package pin

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// machine is a cgroup v2 mount with cpuset: the real kernel's, or a fake that
// TestKernelAgreesWithFake compares with it.
type machine interface {
	testing.TB
	host() Host
	create(dir string) string             // a cgroup with cpuset, and its parents
	start(dir string) int                 // a task in it
	end(dir string)                       // of all tasks in and below it
	remove(dir string)                    // with what is below; absent is fine
	renew(dir string)                     // the same, or as if it were made again
	write(file, value string)             // as an administrator
	try(file, value string) error         // the same
	line(file string) string              // the first line of a file
	setOnline(cpu int, online bool) error // hot-plug
	allMems() cpuset.Set                  // of the root cgroup
	allCPUs() cpuset.Set                  // of the root cgroup, without partitions
	siblingsInvalidate() bool             // a sibling's cpuset.cpus makes a partition invalid (Linux 6.19 and older)
	killed(step int, job job) bool        // runs the job, killed at its n-th effect; false if it ended before
}

// job is what a killed process was to do: a pin, or one pass of a keeper.
type job struct {
	Keep      bool
	Container string
	Scope     Scope
	Claim     Claim
}

func (j job) run(h Host) error {
	if !j.Keep {
		return Pin(h, j.Container, j.Scope, j.Claim)
	}
	_ = keeper(h, nil).pass(context.Background(), &watch{})
	return nil
}

// keeper is one without lock, which logs to lines.
func keeper(h Host, lines *[]string) *Keeper {
	return &Keeper{
		Host: h,
		Lock: func() (func(), error) { return func() {}, nil },
		Log: func(line string) {
			if lines != nil {
				*lines = append(*lines, line)
			}
		},
	}
}

// keep makes one pass of a keeper and returns what it logged.
func keep(m machine) (lines []string) {
	_ = keeper(m.host(), &lines).pass(context.Background(), &watch{})
	return lines
}

// fake behaves as "Cpuset" of cgroup-v2.rst says, in what this package relies
// on: remote partitions below members, no nested and no local ones.
type fake struct {
	testing.TB
	dir, records string
	all, online  cpuset.Set
	mems         cpuset.Set
	old          bool
	bare         bool              // a kernel before 6.7, without cpuset.cpus.exclusive
	lines        map[string]string // first lines of files, as they are on disk
	tasks        map[string]bool
	invalid      map[string]string // sticky reason by cgroup
	root         Host
	kernelWork   cpuset.Set // the mask of the workqueues without isolated partitions
	isolated     cpuset.Set // the CPUs of isolated partitions
	ending       int        // how many more times the kernel is seen ending threads of its workqueues
	stranger     bool       // another program makes partitions isolated, too
	lost         cpuset.Set // CPUs that the kernel has lost: see reclaim
	isolcpus     cpuset.Set // of the boot parameter
}

func newFake(t testing.TB, old bool) *fake {
	f := &fake{
		TB: t, dir: t.TempDir(), records: t.TempDir(), all: parse("0-15"), online: parse("0-15"), mems: parse("0-3"), old: old,
		lines: map[string]string{}, tasks: map[string]bool{}, invalid: map[string]string{},
	}
	f.put("cgroup.controllers", "cpuset")
	f.put("cgroup.procs", "")
	f.root = Host{Cgroups: files.Open(t, f.dir), Records: files.Open(t, f.records), Boot: "this boot", Workqueues: files.OpenTemp(t), Releaser: threads{f}, System: system{f}, around: f.around}
	f.request(f.all)
	f.settle()
	return f
}

func (f *fake) host() Host               { return f.root }
func (f *fake) allCPUs() cpuset.Set      { return f.all }
func (f *fake) allMems() cpuset.Set      { return f.mems }
func (f *fake) siblingsInvalidate() bool { return f.old }

// around is a write as the kernel answers it.
func (f *fake) around(w Write, effect func() error) error {
	if w.File == workqueuesFile {
		f.request(mask(f, w.Value))
		f.ending = 3
	}
	if path.Base(w.File) == quotaFile {
		f.put(w.File, w.Value)
	}
	if !strings.HasPrefix(path.Base(w.File), "cpuset.") {
		return effect()
	}
	dir := path.Dir(w.File)
	if err := f.refuse(dir, path.Base(w.File), w.Value); err != nil {
		return &fs.PathError{Op: "write", Path: w.File, Err: err}
	}
	if err := effect(); err != nil {
		return err
	}
	f.lines[w.File] = w.Value
	if path.Base(w.File) == partitionFile {
		delete(f.invalid, dir)
	}
	f.settle()
	return nil
}

// refuse is EINVAL for an exclusive set that meets a sibling's, or that leaves a sibling
// with CPUs of its own none, and for memory nodes that cannot be there; ENOSPC for clearing
// the memory nodes of a cgroup with tasks, or the CPUs on an old kernel.
func (f *fake) refuse(dir, file, value string) error {
	if file == memsFile && !parse(value).IsSubsetOf(parse("0-3")) {
		return syscall.EINVAL
	}
	populated := strings.HasPrefix(f.lines[dir+"/cgroup.events"], "populated 1")
	if (file == memsFile || file == cpusFile && f.old) && value == "" && populated && f.line(dir+"/"+file) != "" {
		return syscall.ENOSPC
	}
	if file != exclusiveFile {
		return nil
	}
	set, err := cpuset.Parse(value)
	if err != nil || set.IsEmpty() && f.old && f.besidePartition(dir) {
		return syscall.EINVAL
	}
	for _, sibling := range f.children(path.Dir(dir)) {
		cpus := f.set(path.Join(sibling, cpusFile))
		if sibling != dir && (f.set(path.Join(sibling, exclusiveFile)).Overlaps(set) || !cpus.IsEmpty() && cpus.IsSubsetOf(set)) {
			return syscall.EINVAL
		}
	}
	return nil
}

// besidePartition says whether a sibling is a valid partition with CPUs of dir's cpuset.cpus,
// which are meant to be exclusive where cpuset.cpus.exclusive is empty.
func (f *fake) besidePartition(dir string) bool {
	for _, sibling := range f.children(path.Dir(dir)) {
		isPartition := f.line(path.Join(sibling, partitionFile)) != member && f.invalid[sibling] == ""
		if sibling != dir && isPartition && f.wanted(sibling).Overlaps(f.set(path.Join(dir, cpusFile))) {
			return true
		}
	}
	return false
}

// wanted returns the CPUs that would be a cgroup's own.
func (f *fake) wanted(dir string) cpuset.Set {
	if own := f.set(path.Join(dir, exclusiveFile)); !own.IsEmpty() {
		return own
	}
	return f.set(path.Join(dir, cpusFile))
}

// settle computes what the kernel does: first which partitions are valid, then
// what everybody has.
func (f *fake) settle() {
	owner := map[string]cpuset.Set{}
	var taken cpuset.Set
	f.eachBelow(".", f.online, func(dir string, above cpuset.Set) cpuset.Set {
		own := f.set(path.Join(dir, exclusiveFile)).Intersection(above)
		kind, _, _ := strings.Cut(f.line(path.Join(dir, partitionFile)), " ")
		if kind != member && f.invalid[dir] == "" {
			f.invalid[dir] = f.fault(dir, kind, own)
		}
		if kind != member && f.invalid[dir] == "" {
			owner[dir] = own
			taken = taken.Union(own)
			f.lost = f.lost.Difference(own)
		}
		f.put(path.Join(dir, exclusiveFile+".effective"), own.String())
		state := kind
		if why := f.invalid[dir]; kind != member && why != "" {
			state = fmt.Sprintf("%s invalid (%s)", kind, why)
		}
		f.put(path.Join(dir, partitionFile), state)
		return own
	})
	f.effective(".", f.online.Difference(taken).Difference(f.lost), f.mems, owner)
	var isolated cpuset.Set
	for dir, cpus := range owner {
		if f.line(path.Join(dir, partitionFile)) == PartitionIsolated.String() {
			isolated = isolated.Union(cpus)
		}
	}
	if now := f.requested().Difference(isolated); now != f.kernelWork && !f.stranger {
		f.Errorf("with the isolated cpus %q, the kernel's workqueues change from cpus %q to %q", isolated, f.kernelWork, now)
	}
	f.kernelWork = f.requested().Difference(isolated)
	if isolated != f.isolated && f.ending > 0 && !f.stranger {
		f.Errorf("the isolated cpus change from %q to %q while the kernel ends threads of its workqueues", f.isolated, isolated)
	}
	f.isolated = isolated
}

// threads is [Host.Releaser].
type threads struct{ *fake }

func (t threads) Open(name string) (fs.File, error) {
	state := "S"
	if t.ending > 0 {
		t.ending--
		state = "D"
	}
	return threadIn(state).Open(name)
}

// system is [Host.System].
type system struct{ *fake }

func (s system) Open(name string) (fs.File, error) {
	return fstest.MapFS{
		"cpu/online":      {Data: []byte(s.online.String() + "\n")},
		"cpu/isolated":    {Data: []byte(s.isolcpus.String() + "\n")},
		"node/has_memory": {Data: []byte(s.mems.String() + "\n")},
	}.Open(name)
}

// threadIn is the thread's directory, as Linux 6.12 shows it.
func threadIn(state string) fstest.MapFS {
	return fstest.MapFS{"stat": {Data: []byte("3 (" + releaser + ") " + state + " 2 0 0 0 -1 2129984 0 0 0 0\n")}}
}

// request writes the mask of the kernel's workqueues.
func (f *fake) request(cpus cpuset.Set) {
	f.Helper()
	for _, name := range []string{workqueuesFile, requestedFile} {
		if err := f.root.Workqueues.WriteFile(name, []byte(cpus.Mask()+"\n"), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	f.kernelWork = cpus // also CPUs of isolated partitions: the kernel allows that
}

func (f *fake) requested() cpuset.Set {
	f.Helper()
	line, err := readLine(f.root.Workqueues.FS(), requestedFile)
	if err != nil {
		f.Fatal(err)
	}
	return mask(f, line)
}

func mask(t testing.TB, text string) cpuset.Set {
	t.Helper()
	cpus, err := cpuset.ParseMask(text)
	if err != nil {
		t.Fatal(err)
	}
	return cpus
}

// fault is why a partition with these exclusive CPUs becomes invalid.
func (f *fake) fault(dir, kind string, own cpuset.Set) string {
	switch {
	case own.IsEmpty():
		return "no cpus"
	case kind != PartitionIsolated.String() && own.Overlaps(f.isolcpus):
		return "partition config conflicts with housekeeping setup"
	case own.Overlaps(f.lost) && path.Dir(dir) != ".":
		return "lost"
	}
	for _, sibling := range f.children(path.Dir(dir)) {
		if f.old && sibling != dir && f.wanted(sibling).Overlaps(own) {
			return "not exclusive"
		}
	}
	return ""
}

// effective hands down what is left of cpus and mems.
func (f *fake) effective(dir string, cpus, mems cpuset.Set, owner map[string]cpuset.Set) {
	f.put(path.Join(dir, cpusFile+".effective"), cpus.String())
	f.put(path.Join(dir, memsFile+".effective"), mems.String())
	for _, child := range f.children(dir) {
		has := narrowed(cpus, f.set(path.Join(child, cpusFile)))
		if own, ok := owner[child]; ok {
			has = own
		}
		f.effective(child, has, narrowed(mems, f.set(path.Join(child, memsFile))), owner)
	}
}

// narrowed is what a cgroup has of its parent's: all of it where it asks for
// nothing, or for nothing that is there.
func narrowed(above, own cpuset.Set) cpuset.Set {
	if both := above.Intersection(own); !both.IsEmpty() {
		return both
	}
	return above
}

func (f *fake) eachBelow(dir string, above cpuset.Set, visit func(string, cpuset.Set) cpuset.Set) {
	for _, child := range f.children(dir) {
		f.eachBelow(child, visit(child, above), visit)
	}
}

func (f *fake) children(dir string) (list []string) {
	for file := range f.lines {
		if path.Base(file) == cpusFile && path.Dir(path.Dir(file)) == dir {
			list = append(list, path.Dir(file))
		}
	}
	slices.Sort(list)
	return list
}

func (f *fake) put(file, line string) {
	if old, ok := f.lines[file]; ok && old == line {
		return
	}
	f.lines[file] = line
	if f.bare && strings.HasPrefix(path.Base(file), exclusiveFile) {
		return
	}
	if err := os.WriteFile(filepath.Join(f.dir, file), []byte(line+"\n"), 0o644); err != nil {
		f.Fatal(err)
	}
}

func (f *fake) line(file string) string {
	line, ok := f.lines[file]
	if !ok {
		f.Fatalf("no %s", file)
	}
	return line
}

func (f *fake) set(file string) cpuset.Set { return parse(f.line(file)) }

func (f *fake) create(dir string) string {
	parent, isNew := ".", false
	for name := range strings.SplitSeq(dir, "/") {
		parent = path.Join(parent, name)
		if f.lines[parent+"/"+partitionFile] != "" {
			continue
		}
		if err := os.Mkdir(filepath.Join(f.dir, parent), 0o755); err != nil {
			f.Fatal(err)
		}
		f.fresh(parent)
		isNew = true
	}
	if isNew {
		f.populate()
		f.settle()
	}
	return dir
}

func (f *fake) start(dir string) int {
	f.tasks[dir] = true
	f.populate()
	return 1
}

func (f *fake) end(dir string) {
	for task := range f.tasks {
		if isWithin(task, dir) {
			delete(f.tasks, task)
		}
	}
	f.populate()
}

func (f *fake) populate() {
	f.eachBelow(".", cpuset.Set{}, func(dir string, _ cpuset.Set) (none cpuset.Set) {
		populated := 0
		for task := range f.tasks {
			if isWithin(task, dir) {
				populated = 1
			}
		}
		f.put(path.Join(dir, "cgroup.events"), fmt.Sprintf("populated %d\nfrozen 0", populated))
		return none
	})
}

func (f *fake) remove(dir string) {
	f.end(dir)
	if err := os.RemoveAll(filepath.Join(f.dir, dir)); err != nil {
		f.Fatal(err)
	}
	maps.DeleteFunc(f.lines, func(file, _ string) bool { return isWithin(file, dir) })
	f.settle()
}

func (f *fake) renew(dir string) {
	f.end(dir)
	f.eachBelow(".", cpuset.Set{}, func(child string, _ cpuset.Set) (none cpuset.Set) {
		if isWithin(child, dir) {
			f.fresh(child)
		}
		return none
	})
	f.settle()
}

// fresh gives a cgroup what a new one has.
func (f *fake) fresh(dir string) {
	delete(f.invalid, dir)
	for _, file := range []string{cpusFile, memsFile, exclusiveFile} {
		f.put(path.Join(dir, file), "")
	}
	f.put(path.Join(dir, partitionFile), member)
	f.put(path.Join(dir, quotaFile), "max 100000")
}

func (f *fake) try(file, value string) error {
	return f.around(Write{file, value}, func() error { return writeKernelFile(f.root.Cgroups, file, value) })
}

func (f *fake) write(file, value string) {
	if err := f.try(file, value); err != nil {
		f.Fatal(err)
	}
}

func (f *fake) setOnline(cpu int, online bool) error {
	if online {
		f.online.Insert(cpu)
	} else {
		f.online.Remove(cpu)
	}
	f.settle()
	return nil
}

type killedError struct{}

// killed panics instead of the effect: nothing of the code runs after it.
func (f *fake) killed(step int, job job) (killed bool) {
	defer func() {
		if p := recover(); p != nil && p != any(killedError{}) {
			panic(p)
		} else if p != nil {
			killed = true
		}
	}()
	h, n := f.root, 0
	h.around = func(w Write, effect func() error) error {
		if n++; n > step {
			panic(killedError{})
		}
		return f.around(w, effect)
	}
	if err := job.run(h); err != nil {
		f.Fatalf("%+v: %v", job, err)
	}
	return false
}

// eachFake runs a test on the fake of both kinds of kernel.
func eachFake(t *testing.T, test func(machine)) {
	for _, old := range []bool{false, true} {
		t.Run(map[bool]string{false: "Linux 7", true: "Linux 6"}[old], func(t *testing.T) { test(newFake(t, old)) })
	}
}

// partitions lists who holds what now, with the invalid ones.
func partitions(m machine) (list []Holding) {
	m.Helper()
	list, err := Holdings(m.host().Cgroups.FS())
	if err != nil {
		m.Fatal(err)
	}
	return list
}

// recordFiles lists the records.
func recordFiles(m machine) (names []string) {
	m.Helper()
	entries, err := fs.ReadDir(m.host().Records.FS(), ".")
	if err != nil {
		m.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	slices.Sort(names)
	return names
}
