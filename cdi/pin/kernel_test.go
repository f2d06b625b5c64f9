package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// kernel is the mount under test; its pintest-pods is removed after the test.
type kernel struct {
	*testing.T
	root  *os.Root
	all   cpuset.Set
	tasks *[]*exec.Cmd
}

func needKernel(t *testing.T) kernel {
	t.Helper()
	mount := os.Getenv("NUMA_PIN_CGROUP")
	if mount == "" {
		t.Skip("NUMA_PIN_CGROUP names no writable root of cgroup v2 with cpuset")
	}
	root, err := os.OpenRoot(mount)
	if err != nil {
		t.Fatal(err)
	}
	k := kernel{T: t, root: root, tasks: new([]*exec.Cmd)}
	k.all = k.set(cpusFile + ".effective")
	if k.all.Size() < 8 {
		t.Fatalf("cpus %s: want 8 or more", k.all)
	}
	t.Cleanup(func() {
		k.stop()
		k.remove("pintest-pods")
		k.remove("pintest-system")
		if left := k.set(cpusFile + ".effective"); left != k.all {
			t.Errorf("after the test the root cgroup has cpus %s, want %s", left, k.all)
		}
		root.Close()
	})
	return k
}

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
		}
		parent = path.Join(parent, name)
		if err := k.root.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			k.Fatal(err)
		}
	}
	return dir
}

// remove removes a cgroup and what is below it; absent is fine.
func (k kernel) remove(dir string) {
	k.Helper()
	entries, err := fs.ReadDir(k.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() {
			k.remove(path.Join(dir, entry.Name()))
		}
	}
	if err := k.root.Remove(dir); err != nil {
		k.Error(err)
	}
}

func (k kernel) pin(dir string, want Pinning) {
	k.Helper()
	if err := Pin(k.root, dir, want); err != nil {
		k.Fatalf("pin %s to %s: %v", dir, want, err)
	}
}

func (k kernel) expect(file, want string) {
	k.Helper()
	if got := k.line(file); got != want {
		k.Errorf("%s is %q, want %q", file, got, want)
	}
}

// start runs a task in a cgroup and returns its pid.
func (k kernel) start(dir string) int {
	k.Helper()
	task := exec.Command("sleep", "1000")
	if err := task.Start(); err != nil {
		k.Fatal(err)
	}
	*k.tasks = append(*k.tasks, task)
	k.write(dir+"/cgroup.procs", strconv.Itoa(task.Process.Pid))
	return task.Process.Pid
}

// stop ends all tasks that start has started.
func (k kernel) stop() {
	for _, task := range *k.tasks {
		_ = task.Process.Kill()
		_ = task.Wait()
	}
	*k.tasks = nil
}

// expectAllowed compares Cpus_allowed_list or Mems_allowed_list of a task.
func (k kernel) expectAllowed(pid int, what, want string) {
	k.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		k.Fatal(err)
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

func exclusive(cpus, mems string) Pinning {
	return Pinning{CPUs: parse(cpus), Mems: parse(mems), Partition: PartitionRoot}
}
