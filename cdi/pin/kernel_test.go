package pin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// kernel is the mount under test; its pintest cgroups are removed after the test.
type kernel struct {
	*testing.T
	root    *os.Root
	records *os.Root
	work    *os.Root // of the kernel's workqueues
	all     cpuset.Set
	tasks   map[int]*exec.Cmd
}

// needKernel opens the mount under test and creates the cgroups of containers. Without a
// mount, it skips the test.
func needKernel(t *testing.T, containers ...string) kernel {
	t.Helper()
	mount := os.Getenv("NUMA_PIN_CGROUP")
	if mount == "" {
		t.Skip("NUMA_PIN_CGROUP names no writable root of cgroup v2 with cpuset")
	}
	k := kernel{T: t, root: files.Open(t, mount), records: files.OpenTemp(t), tasks: map[int]*exec.Cmd{}}
	k.all = k.set(cpusFile + ".effective")
	k.work = openWorkqueues(t)
	if k.all.Size() < 8 {
		t.Fatalf("cpus %s: want 8 or more", k.all)
	}
	tops := []string{"pintest-pods", "pintest-system", "pintest.slice"}
	if _, err := k.root.Stat(reclaimDir); err != nil {
		tops = append(tops, reclaimDir) // it is not of a driver on this node
	}
	t.Cleanup(func() {
		for _, top := range tops {
			k.remove(top)
		}
		if err := k.host().settleWorkqueues(nil); err != nil { // no keeper may have seen the end
			t.Error(err)
		}
		if left := k.set(cpusFile + ".effective"); left != k.all {
			t.Errorf("after the test the root cgroup has cpus %s, want %s", left, k.all)
		}
	})
	for _, container := range containers {
		k.create(container)
	}
	return k
}

// openWorkqueues opens the mask of the kernel's workqueues, which is there.
func openWorkqueues(t *testing.T) *os.Root {
	t.Helper()
	dir, err := OpenWorkqueues("/sys/" + WorkqueuesDir)
	if err != nil || dir == nil {
		t.Fatalf("open /sys/%s: %v", WorkqueuesDir, err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func (k kernel) host() Host {
	return Host{
		Cgroups: k.root, Records: k.records, Boot: "this boot",
		Workqueues: k.work, Releaser: FindReleaser(os.DirFS("/proc")), System: os.DirFS("/sys/devices/system"),
	}
}

func (k kernel) allCPUs() cpuset.Set { return k.all }
func (k kernel) allMems() cpuset.Set { k.Helper(); return k.set(memsFile + ".effective") }

func (k kernel) line(file string) string {
	k.Helper()
	line, err := readLine(k.root.FS(), file)
	if err != nil {
		k.Fatal(err)
	}
	return line
}

func (k kernel) set(file string) cpuset.Set {
	k.Helper()
	set, err := readSet(k.root.FS(), file)
	if err != nil {
		k.Fatal(err)
	}
	return set
}

func (k kernel) write(file, value string) {
	k.Helper()
	if err := writeKernelFile(k.root, file, value); err != nil {
		k.Fatal(err)
	}
}

// create makes a cgroup with cpuset, and its parents, as a kubelet does.
func (k kernel) create(dir string) string {
	k.Helper()
	parent := "."
	for name := range strings.SplitSeq(dir, "/") {
		if parent != "." {
			k.write(parent+"/cgroup.subtree_control", "+cpuset")
			_ = k.try(parent+"/cgroup.subtree_control", "+cpu") // not on every host
		}
		parent = path.Join(parent, name)
		if err := k.root.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			k.Fatal(err)
		}
	}
	return dir
}

// remove removes a cgroup and what is below it, after their tasks have ended;
// absent is fine.
func (k kernel) remove(dir string) {
	k.Helper()
	if _, err := k.root.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	k.end(dir)
	k.removeEmpty(dir)
}

func (k kernel) renew(dir string) { k.Helper(); k.remove(dir) }

func (k kernel) removeEmpty(dir string) {
	k.Helper()
	entries, err := fs.ReadDir(k.root.FS(), dir)
	if err != nil {
		k.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			k.removeEmpty(path.Join(dir, entry.Name()))
		}
	}
	if err := k.root.Remove(dir); err != nil {
		k.Error(err)
	}
}

// pin pins a container as if the pinning were of a claim of its own.
func (k kernel) pin(dir string, want Pinning) {
	k.Helper()
	if err := k.tryPin(dir, want); err != nil {
		k.Fatalf("pin %s to %s: %v", dir, want, err)
	}
}

func (k kernel) tryPin(dir string, want Pinning) error {
	k.Helper()
	k.populate(dir)
	uid := fmt.Sprint(dir, want)
	return Pin(k.host(), dir, ScopeContainer, Claim{ClaimRef: ClaimRef{uid, "team/" + uid}, Pinning: want})
}

// populate sees to a task in a cgroup.
func (k kernel) populate(dir string) {
	k.Helper()
	populated, err := isPopulated(k.root.FS(), dir)
	if err != nil {
		k.Fatal(err)
	}
	if !populated {
		k.start(dir)
	}
}

func (k kernel) expect(file, want string) {
	k.Helper()
	checkLine(k, file, want)
}

// start runs a task in a cgroup and returns its pid.
func (k kernel) start(dir string) int {
	k.Helper()
	task := exec.Command("sleep", "1000")
	if err := task.Start(); err != nil {
		k.Fatal(err)
	}
	k.tasks[task.Process.Pid] = task
	k.write(dir+"/cgroup.procs", strconv.Itoa(task.Process.Pid))
	return task.Process.Pid
}

// end kills all tasks in and below a cgroup, and waits until it is empty.
func (k kernel) end(dir string) {
	k.Helper()
	k.write(dir+"/cgroup.kill", "1")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		populated, err := isPopulated(k.root.FS(), dir)
		if err != nil {
			k.Fatal(err)
		}
		if !populated {
			break
		}
		if time.Now().After(deadline) {
			k.Fatalf("%s still has tasks", dir)
		}
	}
	for pid, task := range k.tasks {
		if task.Process.Signal(syscall.Signal(0)) != nil || isZombie(pid) {
			_ = task.Wait()
			delete(k.tasks, pid)
		}
	}
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func (k kernel) try(file, value string) error { return writeKernelFile(k.root, file, value) }

// setOnline switches a CPU by its file below /sys, as CPU hot-plug does.
func (k kernel) setOnline(cpu int, online bool) error {
	value := map[bool]string{false: "0", true: "1"}[online]
	name := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu)
	return os.WriteFile(name, []byte(value), 0)
}

// siblingsInvalidate asks the kernel.
func (k kernel) siblingsInvalidate() bool {
	k.Helper()
	const top = "pintest-system/sibling"
	defer k.remove("pintest-system")
	k.create(top + "/a")
	k.create(top + "/b")
	for _, write := range []Write{
		{"pintest-system/" + exclusiveFile, "6-7"},
		{top + "/" + exclusiveFile, "6-7"},
		{top + "/a/" + exclusiveFile, "6-7"},
		{top + "/a/" + cpusFile, "6-7"},
		{top + "/a/" + partitionFile, "root"},
		{top + "/b/" + cpusFile, "5-6"},
	} {
		k.write(write.File, write.Value)
	}
	state := k.line(top + "/a/" + partitionFile)
	k.write(top+"/a/"+partitionFile, member)
	return state != "root"
}

const childVariable = "NUMA_PIN_CHILD"

// child is what a process to be killed needs to know.
type child struct {
	Cgroups, Records, Boot string
	Step                   int
	Job                    job
}

// killed runs the job in another process, which dies by SIGKILL.
func (k kernel) killed(step int, job job) bool {
	k.Helper()
	h := k.host()
	data, err := json.Marshal(child{h.Cgroups.Name(), h.Records.Name(), h.Boot, step, job})
	if err != nil {
		k.Fatal(err)
	}
	process := exec.Command(os.Args[0], "-test.run=^TestKernelChild$")
	process.Env = append(os.Environ(), childVariable+"="+string(data))
	output, err := process.CombinedOutput()
	if err == nil {
		return false
	}
	if status, ok := process.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		k.Fatalf("%+v: %v\n%s", job, err, output)
	}
	return true
}

// TestKernelChild is the other process, no test.
func TestKernelChild(t *testing.T) {
	text := os.Getenv(childVariable)
	if text == "" {
		t.Skip("it is part of other tests")
	}
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	n := 0
	around := func(_ Write, effect func() error) error {
		if n++; n > c.Step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return effect()
	}
	host := Host{Cgroups: files.Open(t, c.Cgroups), Records: files.Open(t, c.Records), Boot: c.Boot, Workqueues: openWorkqueues(t), Releaser: FindReleaser(os.DirFS("/proc")), around: around}
	if err := c.Job.run(host); err != nil {
		t.Fatal(err)
	}
}

// expectAllowed compares Cpus_allowed_list or Mems_allowed_list of a task.
func (k kernel) expectAllowed(pid int, what, want string) {
	k.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		k.Fatal(err)
	}
	if what == "Mems" {
		want = mems(want).String()
	}
	if !strings.Contains(string(status), what+"_allowed_list:\t"+want+"\n") {
		k.Errorf("task %d may use other %s than %s:\n%s", pid, what, want, status)
	}
}

// parse is a set literal of the tests.
func parse(list string) cpuset.Set {
	set, err := cpuset.Parse(list)
	if err != nil {
		panic(err)
	}
	return set
}

// mems is parse for NUMA nodes. The tests use nodes 0 and 1. On a real machine with one
// node, both are node 0: so almost everything can be tested there, too.
func mems(list string) cpuset.Set {
	set := parse(list)
	if hasOneNode() && set.IsSubsetOf(parse("0-1")) && !set.IsEmpty() {
		return parse("0")
	}
	return set
}

var hasOneNode = sync.OnceValue(func() bool {
	nodes, err := os.ReadFile(filepath.Join(os.Getenv("NUMA_PIN_CGROUP"), memsFile+".effective"))
	return err == nil && string(nodes) == "0\n"
})

func exclusive(cpus, nodes string) Pinning {
	return Pinning{CPUs: parse(cpus), Mems: mems(nodes), Partition: PartitionRoot}
}
