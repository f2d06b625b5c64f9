package pin

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// denied is a cgroup mount in which what is in some directories cannot be read.
type denied struct {
	all  fstest.MapFS
	dirs map[string]error
}

func (d denied) Open(name string) (fs.File, error) {
	for dir, err := range d.dirs {
		if isWithin(name, dir) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
	return d.all.Open(name)
}

func (d denied) Stat(name string) (fs.FileInfo, error) {
	for dir, err := range d.dirs {
		if name != dir && isWithin(name, dir) {
			return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
	}
	return d.all.Stat(name)
}

// hide makes files of a fake's cgroup unreadable, also for root.
func hide(f *fake, cgroup string, names ...string) {
	f.Helper()
	for _, name := range names {
		file := f.dir + "/" + cgroup + "/" + name
		if err := os.Remove(file); err != nil {
			f.Fatal(err)
		}
		if err := os.Mkdir(file, 0o755); err != nil {
			f.Fatal(err)
		}
	}
}

// A tenant with a writable cgroup forbids to read it. Then the keeper and the daemon did
// nothing any more for any claim of the node.
func TestUnreadableCgroupIsOnlyItsOwnFault(t *testing.T) {
	eachFake(t, func(m machine) {
		f := m.(*fake)
		running(m, ctrA, sidecarA, ctrB, ctrC)
		mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
		mustPin(m, ctrB, ScopeContainer, claimed("hidden", "6-7", "0", PartitionRoot))
		hide(f, sidecarA, partitionFile)
		hide(f, ctrB, partitionFile, "cgroup.events")
		if err := os.Mkdir(f.dir+"/"+podA+"/\xff", 0o755); err != nil {
			t.Fatal(err)
		}
		m.end(ctrA)
		said := strings.Join(keep(m), "\n")
		for _, want := range []string{"released cgroup " + ctrA, ctrB + "/cgroup.events: ", "cgroup " + ctrB + " should have cpus 6-7 for claim team/hidden: "} {
			if !strings.Contains(said, want) {
				t.Errorf("the keeper says\n%s\nwant %s", said, want)
			}
		}
		if left := strings.Join(recordFiles(m), " "); left != "b.json" {
			t.Errorf("records %s, want b.json", left)
		}
		for file, want := range map[string]string{
			ctrB + "/" + exclusiveFile: "6-7", podB + "/" + exclusiveFile: "6-7", cpusFile + ".effective": "0-5,8-15",
		} {
			if got := m.line(file); got != want {
				t.Errorf("%s is %q, want %q", file, got, want)
			}
		}
		mustPin(m, ctrC, ScopeContainer, claimed("late", "4-5", "0", PartitionRoot))

		lookout, err := NewLookout(f.dir, f.records)
		if err != nil {
			t.Fatal(err)
		}
		defer lookout.Close()
		sight, err := lookout.Look(time.Now())
		if name := podA + "/?"; !slices.Contains(sight.Holdings, Holding{name, parse("2-3"), unread}) {
			t.Errorf("holdings %q, want %s", sight.Holdings, name)
		}
		if err != nil || sight.Unread == nil || !strings.Contains(sight.Unread.Error(), ctrB) || len(sight.Live) != 2 || sight.Live[0].Fault == "" || sight.Live[1].Fault != "" {
			t.Errorf("sight %+v, %v, want two cgroups, one of them with a fault", sight, err)
		}
	})
}

// If a cgroup above cannot be read, the record stays until the cgroup can be released.
func TestReleaseBelowAnUnreadableCgroupWaits(t *testing.T) {
	eachFake(t, func(m machine) {
		f := m.(*fake)
		running(m, ctrA)
		mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
		hide(f, "pintest-pods", partitionFile)
		m.end(ctrA)
		if said := strings.Join(keep(m), "\n"); !strings.Contains(said, "release cgroup "+ctrA+": ") || len(recordFiles(m)) != 1 {
			t.Errorf("the keeper says %q, with records %q", said, recordFiles(m))
		}
		if err := os.Remove(f.dir + "/pintest-pods/" + partitionFile); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.dir+"/pintest-pods/"+partitionFile, []byte(member+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		mustRepair(m, "released cgroup "+ctrA)
		checkEmptied(m)
	})
}

// What an unreadable cgroup has is at most what the cgroups above it have, whatever a tenant
// writes to its own.
func TestUnreadableCgroupHoldsWhatItMayHave(t *testing.T) {
	cgroups := cgroupFS(t, `
k 2-7
k/pod 2-5
k/pod/a 2-3 root 2-3
k/pod/b 0-15
k/pod/b/x 0-15 root_invalid_(x) 0-15
k/pod/other 4 root 4
k/idle
k/idle/c 0-15 root 0-15
lxc`)
	cgroups[cpusFile+".effective"] = &fstest.MapFile{Data: []byte("0-1,8-15\n")}
	mount := denied{cgroups, map[string]error{"k/pod/a": syscall.EACCES, "k/pod/b/x": syscall.ENAMETOOLONG}}
	holdings, fault, err := ReadHoldings(mount)
	if err != nil || len(holdings) != 3 {
		t.Fatalf("holdings %v, %v, want three", holdings, err)
	}
	if fault == nil || !strings.Contains(fault.Error(), `read cgroup "k/pod/a": open k/pod/a/`) || !strings.HasSuffix(fault.Error(), ", and 1 more cgroups") {
		t.Errorf("unread: %v", fault)
	}
	for i, want := range []Holding{{"k/pod/a", parse("2-5"), unread}, {"k/pod/b/x", parse("2-5"), unread}, {"k/pod/other", parse("4"), "root"}} {
		if holdings[i] != want {
			t.Errorf("holding %v, want %v", holdings[i], want)
		}
	}
	if held, err := HoldingsOf(mount, parse("3")); err != nil || len(held) != 3 {
		t.Errorf("of CPU 3: %v, %v", held, err)
	}
	var all tree
	if err := all.walk(mount, ""); err != nil {
		t.Fatal(err)
	}
	if err := all.checkFree("k/new/c", parse("5")); err != nil {
		t.Errorf("an unreadable cgroup keeps others from their CPUs: %v", err)
	}
	release := []Write{{"k/pod/other/" + partitionFile, member}, {"k/pod/other/" + exclusiveFile, ""}, {"k/pod/b/" + exclusiveFile, "2-5"}, {"k/" + exclusiveFile, "2-5"}}
	if got := planRelease(all, "k/pod/other").Writes; !slices.Equal(got, release) {
		t.Errorf("a release beside an unreadable cgroup writes %v, want %v", got, release)
	}
	mount.dirs = map[string]error{"k/pod": syscall.EACCES}
	if holdings, err = Holdings(mount); err != nil || len(holdings) != 1 || holdings[0] != (Holding{"k/pod", parse("2-7"), unread}) {
		t.Errorf("holdings %v, %v, want those of the pod", holdings, err)
	}
	if _, err := readTree(mount, "k/pod/a"); err == nil {
		t.Error("a target that cannot be read: no error")
	}
	// Of one directly below the mount, nothing is known.
	mount.dirs = map[string]error{"lxc": syscall.EACCES}
	if _, err := Holdings(mount); err != nil {
		t.Error(err)
	}
	if _, err := HoldingsOf(mount, parse("3")); err == nil || !strings.Contains(err.Error(), "cgroup lxc may hold some of cpus 3: ") {
		t.Errorf("HoldingsOf: error %v", err)
	}
	if _, err := HoldingsOf(mount, parse("1")); err != nil {
		t.Error(err)
	}
}

// The files of the cgroup above show whether a partition has the CPUs. A tenant must not be
// able to taint the zone with chmod.
func TestUnreadablePartitionIsSeenFromAbove(t *testing.T) {
	records := pinned(t, record{Boot: "boot", Cgroup: "k/pod/a", Scope: ScopeContainer, Claims: []Claim{claimed("job", "2-3", "", PartitionRoot)}})
	for above, sound := range map[string]bool{"0-1,4-15": true, "0-15": false} {
		cgroups := tenantTree("2-3", member, "", "")
		cgroups["k/pod/"+cpusFile+".effective"] = &fstest.MapFile{Data: []byte(above + "\n")}
		live, err := Inspect(denied{cgroups, map[string]error{"k/pod/a": syscall.EACCES}}, records)
		if len(live) != 1 || (live[0].Fault == "") != sound || err == nil {
			t.Errorf("the pod has cpus %s: %+v, %v, want a sound one: %t", above, live, err, sound)
		}
	}
}

func TestUnreadableCgroupsThatMayHavePods(t *testing.T) {
	const uid, user = "0e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60", "1e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60"
	dir := func(owner uint32) *fstest.MapFile {
		return &fstest.MapFile{Mode: fs.ModeDir | 0o700, Sys: &syscall.Stat_t{Uid: owner}}
	}
	cgroups := fstest.MapFS{
		"cgroup.controllers":                    {},
		"kubepods/pod" + uid + "/cgroup.events": {Data: []byte("populated 1\n")},
		"system.slice":                          dir(0),
		"system.slice/a.service":                dir(0),
		"system.slice/user.service":             dir(1000),
		"system.slice/user.service/x":           dir(0),
		// A user makes what looks like a pod.
		"system.slice/user.service/pod" + user + "/cgroup.events": {Data: []byte("populated 1\n")},
	}
	for hidden, row := range map[string]struct {
		why   error
		known bool
	}{
		"system.slice/user.service":   {syscall.EACCES, true},
		"system.slice/user.service/x": {syscall.EACCES, true},
		"system.slice/a.service":      {syscall.EACCES, false},
		"system.slice":                {syscall.EIO, false},
		"kubepods":                    {syscall.EACCES, false},
	} {
		pods, unread, err := Pods(denied{cgroups, map[string]error{hidden: row.why}})
		if err != nil || (unread == nil) != row.known || pods[uid] != (hidden != "kubepods") || pods[user] {
			t.Errorf("%s: pods %v, unread %v, %v, want that all are known: %t", hidden, pods, unread, err, row.known)
		}
	}
	for _, why := range []error{syscall.ENAMETOOLONG, fs.ErrInvalid} { // the kubelet makes no such names
		if pods, unread, err := Pods(denied{cgroups, map[string]error{"system.slice/a.service": why}}); err != nil || unread != nil || !pods[uid] {
			t.Errorf("%v: pods %v, unread %v, %v", why, pods, unread, err)
		}
	}
	mount := t.TempDir()
	for _, name := range []string{"/cgroup.controllers", "/b\xff", "/kubepods/pod" + uid} {
		if err := os.MkdirAll(mount+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if pods, unread, err := Pods(os.DirFS(mount)); err != nil || unread != nil || len(pods) != 1 {
		t.Errorf("a name that is not UTF-8: pods %v, unread %v, %v", pods, unread, err)
	}
}
