package pin

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// modes are those of linux/mempolicy.h that a claim can ask for, with the kernel's text for
// NUMA node 0.
var modes = []struct {
	mode uintptr
	text MemoryPolicy
}{
	{0, DefaultMemoryPolicy},
	{1, "prefer:0"},
	{2, "bind:0"},
	{3, "interleave:0"},
	{5, "prefer (many):0"},       // Linux 5.15
	{6, "weighted interleave:0"}, // Linux 6.9
	{2 | 1<<15, "bind=static:0"}, // with a flag, which a program may set
}

// A task that another task starts has its policy, also after execve: so a container has what
// its runtime has set.
func TestKernelPrintsTheMemoryPolicyOfATask(t *testing.T) {
	if _, err := os.Stat("/proc/self/numa_maps"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the kernel is built without NUMA: no task has a memory policy")
	}
	for _, mode := range modes {
		text, err := numaMapsUnder(mode.mode)
		if err != nil {
			t.Errorf("%s: %v", mode.text, err)
			continue
		}
		if got := TaskMemoryPolicy(text); got != mode.text {
			t.Errorf("policy %q, want %q, of:\n%s", got, mode.text, text)
		}
	}
}

// numaMapsUnder returns the numa_maps of a program that is started with a policy of node 0.
func numaMapsUnder(mode uintptr) (text string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its policy
		nodes := uint64(1)
		if mode != 0 {
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SET_MEMPOLICY, mode, uintptr(unsafe.Pointer(&nodes)), 64); errno != 0 {
				err = os.NewSyscallError("set_mempolicy", errno)
				return
			}
		}
		var out []byte
		out, err = exec.Command("cat", "/proc/self/numa_maps").Output()
		text = string(out)
	}()
	<-done
	return text, err
}

func TestTheMemoryPolicyIsThatOfTheStack(t *testing.T) {
	for text, want := range map[string]MemoryPolicy{
		"": "",
		"7f00 default file=/bin/sh mapped=2 N0=2 kernelpagesize_kB=4\n":                                       "",
		"7f00 bind:1 file=/x stack y mapped=2 N0=2 kernelpagesize_kB=4\n7ff0 default stack anon=2\n":          DefaultMemoryPolicy,
		"7f00 default heap anon=2\n7ff0 weighted interleave:0,2-3 stack anon=3 dirty=3 kernelpagesize_kB=4\n": "weighted interleave:0,2-3",
		"7ff0 prefer (many):0-1 stack":     "prefer (many):0-1",
		"7ff0 default stack\n7ff1 bind:0 ": DefaultMemoryPolicy,
	} {
		if got := TaskMemoryPolicy(text); got != want {
			t.Errorf("policy %q, want %q, of:\n%s", got, want, text)
		}
	}
}

func TestPolicyIsIgnored(t *testing.T) {
	for _, row := range []struct {
		want, seen MemoryPolicy
		ignored    bool
	}{
		{"bind:0-1", "default", true},
		{"bind:0-1", "bind:0-1", false},
		{"bind:0-1", "bind=static:0-1", false},
		{"bind:0-1", "bind:0-3", false}, // with the nodes of another claim
		{"interleave:0,2", "interleave:0", true},
		{"prefer:1", "prefer:0", true},
		{"prefer:1", "prefer (many):0-1", false},
		{"prefer (many):0-1", "prefer:0", true},
		{"weighted interleave:1", "weighted interleave:0", true},
		{"weighted interleave:1", "interleave:0", false}, // that of the program, or of another claim
		{"interleave:0,3", "interleave:0", false},        // node 3 is not allowed, or has no memory
		{"prefer:3", "default", false},                   // for which the runtime sets no policy
		{"bind:0", "local", false},
		{"bind:0", "", false},
		{"bind:0", "bind:x", false},
		{"bind:x", "default", false},
	} {
		if got := row.want.IsIgnored(row.seen, cpuset.New(0, 1, 2)); got != row.ignored {
			t.Errorf("want %s, seen %s: ignored %t", row.want, row.seen, got)
		}
	}
	for _, text := range []string{"", "default", "bind", "bind:", ":0", "bind:x", "bind:0-", "bind:9999"} {
		if got, err := ParseMemoryPolicy(text); err == nil || got != "" {
			t.Errorf("%q: %q, no error", text, got)
		}
	}
	if got, err := ParseMemoryPolicy("weighted interleave:0,2"); err != nil || got != "weighted interleave:0,2" {
		t.Errorf("parsed %q, %v", got, err)
	}
}

// A record of a policy is of one claim of one container, changes nothing in the kernel, and
// goes with the container.
func TestIgnoredPolicyLastsAsLongAsTheContainer(t *testing.T) {
	f := newFake(t, false)
	running(f, podA+"/a", podA+"/b")
	mustPin(f, podA+"/a", ScopePod, claimed("a", "2-3", "1", PartitionRoot))
	if err := Use(f.host(), podA+"/a", ClaimRef{"b", "team/b"}); err != nil {
		t.Fatal(err)
	}
	ignored := func() []Ignored {
		t.Helper()
		found, err := IgnoredPolicies(f.host().Cgroups.FS(), f.host().Records.FS())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := ignored(); len(found) > 0 {
		t.Errorf("ignored %+v before a hook has seen that", found)
	}
	fault := PolicyFault{"bind:1", DefaultMemoryPolicy}
	for _, container := range []string{"/a", "/b"} { // the hook of b has left no record before
		for range 2 {
			if err := IgnorePolicy(f.host(), podA+container, ClaimRef{"a", "team/a"}, fault); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []Ignored{{podA + "/a", ClaimRef{"a", "team/a"}, fault}, {podA + "/b", ClaimRef{"a", "team/a"}, fault}}
	if found := ignored(); !slices.Equal(found, want) {
		t.Errorf("ignored %+v, want %+v", found, want)
	}
	mustPin(f, podA+"/a", ScopePod, claimed("a", "2-3", "1", PartitionRoot)) // it stays
	if found := ignored(); !slices.Equal(found, want) {
		t.Errorf("ignored %+v, want %+v", found, want)
	}
	if live, err := Inspect(f.host().Cgroups.FS(), f.host().Records.FS()); err != nil || len(live) != 2 || live[0].Fault+live[1].Fault != "" {
		t.Errorf("inspect: %+v, %v, want the sound cgroups of pod and container", live, err)
	}
	f.end(podA + "/a")
	if found := ignored(); !slices.Equal(found, want[1:]) {
		t.Errorf("ignored %+v, want %+v", found, want[1:])
	}
	if err := IgnorePolicy(f.host(), "../x", ClaimRef{"a", "team/a"}, fault); err == nil {
		t.Error("a path that is none: no error")
	}
}

func TestRecordOfAnIgnoredPolicy(t *testing.T) {
	r := someRecord()
	r.Claims[1].Policy = PolicyFault{"bind:1", DefaultMemoryPolicy}
	want := strings.Replace(someText, `"partition":"none"}`, `"partition":"none","policy":{"want":"bind:1","seen":"default"}}`, 1)
	text, err := r.render()
	if err != nil || string(text) != want {
		t.Errorf("rendered %s (%v), want %s", text, err, want)
	}
	if again, err := parseRecord(text); err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("parsed %+v (%v)", again, err)
	}
}

func FuzzTaskMemoryPolicy(f *testing.F) {
	f.Add("7ff0 prefer (many):0-1 stack anon=2\n")
	f.Add("7f00 bind:1 file=/x stack y\n")
	f.Fuzz(func(t *testing.T, text string) {
		policy := TaskMemoryPolicy(text)
		if strings.Contains(string(policy), "\n") {
			t.Errorf("policy %q of more than a line", policy)
		}
		if want, err := ParseMemoryPolicy(string(policy)); err == nil && want.IsIgnored(policy, cpuset.New(0)) {
			t.Errorf("policy %q is not itself", policy)
		}
	})
}
