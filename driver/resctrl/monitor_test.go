package resctrl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

// monitoring returns what the kernel has.
func monitoring(t *testing.T, f Files) Monitoring {
	t.Helper()
	return MonitoringOf(stateOf(t, f))
}

func stateOf(t *testing.T, f Files) numa.ResctrlState {
	t.Helper()
	state, err := numa.ReadResctrl(f, numa.ResctrlView{})
	if err != nil {
		t.Fatal(err)
	}
	return *state
}

// monitors returns a text such as "a 0-1, b 4".
func monitors(m Monitoring) string {
	var list []string
	for _, group := range m.Groups {
		list = append(list, strings.TrimSpace(group.Name+" "+group.CPUs.String()))
	}
	return strings.Join(list, ", ")
}

func monitor(claim string, cpus ...int) Monitor {
	return Monitor{MonitorName(claim), cpuset.New(cpus...)}
}

// changes counts what is written.
func changes(f *resctrlfs.FS) *int {
	n := new(int)
	f.Around(func(_ resctrlfs.Change, effect func() error) error {
		*n++
		return effect()
	})
	return n
}

func TestMonitorsGetTheCPUsThatOthersLeave(t *testing.T) {
	f := newFiles()
	mustRepair(t, f, wanted(group(0, l3(2, 2), 7)))
	if err := errors.Join(f.Mkdir("mon_groups/pqos"), f.Write("mon_groups/pqos/cpus_list", "3\n")); err != nil {
		t.Fatal(err)
	}
	f.SetOnline(6, false)
	host, want := New(f, numa.ResctrlView{}), []Monitor{monitor("b", 2, 3), monitor("a", 0, 1, 6, 7), monitor("none", 6)}
	for _, row := range []struct {
		what string
		want string
		do   func() error
	}{
		{"new", "dra-numa.a 0-1, dra-numa.b 2, pqos 3", func() error { return nil }},
		{"CPUs of the default group written", "dra-numa.a 0-1, dra-numa.b 2, pqos 3", func() error {
			return errors.Join(f.Write("cpus_list", "0-5\n"), f.Write("mon_groups/pqos/cpus_list", "3\n"))
		}},
		{"a CPU is back", "dra-numa.a 0-1, dra-numa.b 2, dra-numa.none 6, pqos 3", func() error {
			want[1].CPUs = cpuset.New(0, 1, 7)
			f.SetOnline(6, true)
			return nil
		}},
		{"removed by another tool", "dra-numa.a 0-1, dra-numa.b 2-3, dra-numa.none 6", func() error { return errors.Join(f.Rmdir("mon_groups/pqos"), f.Rmdir("mon_groups/dra-numa.b")) }},
		{"a CPU of another one", "dra-numa.a 0, dra-numa.b 2-3, dra-numa.none 1,6", func() error {
			want[1].CPUs, want[2].CPUs = cpuset.New(0), cpuset.New(1, 6)
			return nil
		}},
	} {
		if err := row.do(); err != nil {
			t.Fatal(err)
		}
		got, err := host.Monitor(monitoring(t, f), want...)
		if err != nil || monitors(got) != row.want || monitors(monitoring(t, f)) != row.want {
			t.Errorf("%s: Monitor = %q, %v, the kernel has %q, want %q", row.what, monitors(got), err, monitors(monitoring(t, f)), row.want)
		}
		wrote := changes(f)
		if _, err := host.Monitor(got, want...); err != nil || *wrote > 0 {
			t.Errorf("%s: again: %d changes, %v", row.what, *wrote, err)
		}
		f.Around(nil)
	}
	if left, err := host.Unmonitor(monitoring(t, f), "dra-numa.a", "dra-numa.none", "dra-numa.absent"); err != nil || monitors(left) != "dra-numa.b 2-3" {
		t.Errorf("Unmonitor = %q, %v", monitors(left), err)
	}
}

func TestGroupsOfOthersAreNotRemoved(t *testing.T) {
	f := newFiles()
	if err := f.Mkdir("mon_groups/pqos"); err != nil {
		t.Fatal(err)
	}
	if left, err := New(f, numa.ResctrlView{}).Unmonitor(monitoring(t, f), "pqos"); err != nil || monitors(left) != "pqos" || monitors(monitoring(t, f)) != "pqos" {
		t.Errorf("Unmonitor = %q, %v", monitors(left), err)
	}
}

func TestMonitorsOfAKernelThatHasNoMoreCounters(t *testing.T) {
	m := resctrlfs.Rig(resctrlfs.Linux612, 2)
	m.RMIDs = 5
	f := resctrlfs.New(m)
	mustRepair(t, f, wanted(group(0, l3(1, 1))))
	host := New(f, numa.ResctrlView{})
	var want []Monitor
	for i := range 5 {
		want = append(want, monitor(fmt.Sprint(i), i))
	}
	const three = "dra-numa.0 0, dra-numa.1 1, dra-numa.2 2"
	got, err := host.Monitor(monitoring(t, f), want...)
	if !errors.Is(err, ErrNoCounter) || !errors.Is(err, syscall.ENOSPC) || strings.Count(err.Error(), "\n") > 0 || monitors(got) != three {
		t.Errorf("Monitor = %q, %v", monitors(got), err)
	}
	if got, err = host.Unmonitor(got, "dra-numa.0"); err != nil {
		t.Fatal(err)
	}
	if got, err = host.Monitor(got, want[1:]...); !errors.Is(err, ErrNoCounter) || !errors.Is(err, syscall.EBUSY) || monitors(got) != "dra-numa.1 1, dra-numa.2 2" {
		t.Errorf("while the RMID is in limbo: Monitor = %q, %v", monitors(got), err)
	}
	f.Settle()
	if got, err = host.Monitor(got, want[1:4]...); err != nil || monitors(got) != "dra-numa.1 1, dra-numa.2 2, dra-numa.3 3" {
		t.Errorf("after limbo: Monitor = %q, %v", monitors(got), err)
	}
}

func TestRoomForMonitors(t *testing.T) {
	m := resctrlfs.Rig(resctrlfs.Linux612, 2)
	m.RMIDs = 8
	f := resctrlfs.New(m)
	two := []Group{group(0, l3(1, 1)), group(1, l3(1, 1))}
	for _, row := range []struct {
		makes string
		want  int
	}{
		{"", 5},                           // the default group, and two that are wanted
		{"dra-numa.0", 5},                 // is one of these
		{"COS1", 4},                       // another tool's
		{"COS1/mon_groups/m", 3},          // and its
		{"mon_groups/dra-numa.a", 3},      // is one that there is room for
		{"mon_groups/pqos", 2},            // is not
		{"dra-numa.0/mon_groups/pqos", 1}, // nor this
	} {
		if err := f.Mkdir(row.makes); row.makes != "" && err != nil {
			t.Fatal(err)
		}
		if got := MonitorRoom(stateOf(t, f), two); got != row.want {
			t.Errorf("after %q: room for %d, want %d", row.makes, got, row.want)
		}
	}
	if got := MonitorRoom(numa.ResctrlState{}, two); got != 0 {
		t.Errorf("a machine that counts nothing has room for %d", got)
	}
}

// Whatever change the process is killed at, the next one ends as if it were the first.
func TestMonitorsAfterACrash(t *testing.T) {
	const want = "dra-numa.a 0-1, dra-numa.b 2"
	resctrlfs.KilledAtEach(t, 5, func(n int) bool {
		f := newFiles()
		if err := errors.Join(f.Mkdir("mon_groups/dra-numa.old"), f.Write("mon_groups/dra-numa.old/cpus_list", "1-2\n")); err != nil {
			t.Fatal(err)
		}
		job := func() error {
			host, now := New(f, numa.ResctrlView{}), monitoring(t, f)
			now, err := host.Unmonitor(now, "dra-numa.old")
			if err == nil {
				_, err = host.Monitor(now, monitor("a", 0, 1), monitor("b", 2))
			}
			return err
		}
		killed, err := f.Killed(n, job)
		if killed || err == nil {
			err = job()
		}
		if got := monitors(monitoring(t, f)); err != nil || got != want {
			t.Errorf("killed after %d changes: %q, %v", n, got, err)
		}
		return killed
	})
}

func TestRefusedMonitorIsAnError(t *testing.T) {
	for call, want := range map[string]string{
		"mkdir": "monitoring group dra-numa.a: mkdir mon_groups/dra-numa.a: input/output error",
		"write": `write "0" to mon_groups/dra-numa.a/cpus_list: write mon_groups/dra-numa.a/cpus_list: input/output error`,
	} {
		f := newFiles()
		f.Around(func(c resctrlfs.Change, effect func() error) error {
			if c.Call == call && strings.HasPrefix(c.Name, "mon_groups/dra-numa.a") {
				return syscall.EIO
			}
			return effect()
		})
		got, err := New(f, numa.ResctrlView{}).Monitor(monitoring(t, f), monitor("a", 0), monitor("b", 1))
		if err == nil || err.Error() != want || !slices.ContainsFunc(got.Groups, func(g numa.MonitorGroup) bool { return g.Name == "dra-numa.b" && g.CPUs.String() == "1" }) {
			t.Errorf("%s: %q, %v", call, monitors(got), err)
		}
		f.Around(nil)
		if got, err = New(f, numa.ResctrlView{}).Monitor(got, monitor("a", 0), monitor("b", 1)); err != nil || monitors(got) != "dra-numa.a 0, dra-numa.b 1" {
			t.Errorf("%s: then: %q, %v", call, monitors(got), err)
		}
	}
}
