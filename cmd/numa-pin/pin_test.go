package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
)

// fakeHost has one container whose effective files already say what the kernel
// would answer to cpus 4-7 and mems 1; cdi/pin's tests ask the real kernel.
func fakeHost(t *testing.T) host {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"proc/42/cgroup":                               "0::/k/pod/abc\n",
		"proc/sys/kernel/random/boot_id":               "this-boot\n",
		"proc/stat":                                    "cpu 1 2 3\nbtime 1700000000\n",
		"cg/k/pod/abc/cgroup.events":                   "populated 1\nfrozen 0\n",
		"cg/cgroup.controllers":                        "cpuset\n",
		"cg/k/pod/abc/cpuset.cpus.effective":           "4-7\n",
		"cg/k/pod/abc/cpuset.cpus.exclusive.effective": "4-7\n",
		"cg/k/pod/abc/cpuset.mems.effective":           "1\n",
	}
	for _, group := range []string{"cg/k/", "cg/k/pod/", "cg/k/pod/abc/"} {
		files[group+"cpuset.cpus"], files[group+"cpuset.mems"] = "\n", "\n"
		files[group+"cpuset.cpus.exclusive"], files[group+"cpuset.cpus.partition"] = "\n", "member\n"
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return host{proc: dir + "/proc", cgroups: dir + "/cg"}
}

const ociState = `{"ociVersion":"1.2.0","id":"abc","status":"creating","pid":42,"bundle":"/b"}`

func pinArgs(t *testing.T, args ...string) []string {
	dir := t.TempDir()
	return append([]string{
		"pin", "--uid=u1", "--claim=team/job", "--lock=" + dir + "/new/lock", "--records=" + dir + "/new/pins",
	}, args...)
}

// runWith runs a command with this standard input.
func runWith(host host, state string, args ...string) (stdout string, err error) {
	var out bytes.Buffer
	err = run(context.Background(), args, host, streams{strings.NewReader(state), &out, io.Discard})
	return out.String(), err
}

func TestPinWritesWhatTheClaimHas(t *testing.T) {
	host := fakeHost(t)
	args := pinArgs(t, "--cpus=4-7", "--mems=1", "--partition=root")
	if _, err := runWith(host, ociState, args...); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"k/cpuset.cpus.exclusive": "4-7", "k/pod/cpuset.cpus.exclusive": "4-7",
		"k/pod/abc/cpuset.cpus.exclusive": "4-7", "k/pod/abc/cpuset.cpus": "4-7",
		"k/pod/abc/cpuset.mems": "1", "k/pod/abc/cpuset.cpus.partition": "root",
		"k/cpuset.cpus.partition": "member", "k/cpuset.cpus": "",
	} {
		data, err := fs.ReadFile(os.DirFS(host.cgroups), file)
		if line, _, _ := strings.Cut(string(data), "\n"); err != nil || line != want {
			t.Errorf("%s is %q (%v), want %q", file, line, err, want)
		}
	}
}

// In pod scope the pod's cgroup is the partition, and the record says so.
func TestNothingIsPinnedWhileTheFileExists(t *testing.T) {
	host := fakeHost(t)
	dir := t.TempDir()
	stop := filepath.Join(dir, "stop-pinning")
	args := pinArgs(t, "--cpus=4-7", "--mems=1", "--records="+dir+"/pins")
	line := func() string {
		data, err := os.ReadFile(filepath.Join(host.cgroups, "k/pod/abc/cpuset.cpus"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runWith(host, ociState, args...); err != nil || line() != "" {
		t.Errorf("%v, cpuset.cpus is %q, want that nothing happens", err, line())
	}
	if err := os.Remove(stop); err != nil {
		t.Fatal(err)
	}
	if _, err := runWith(host, ociState, args...); err != nil || line() != "4-7" {
		t.Errorf("%v, cpuset.cpus is %q, want 4-7", err, line())
	}
}

func TestPinRecords(t *testing.T) {
	host := fakeHost(t)
	for name, text := range map[string]string{
		"cpuset.cpus.effective": "4-7", "cpuset.cpus.exclusive.effective": "4-7", "cgroup.events": "populated 1",
	} {
		if err := os.WriteFile(host.cgroups+"/k/pod/"+name, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	records := t.TempDir() + "/new/pins"
	args := pinArgs(t, "--cpus=4-7", "--mems=1", "--partition=isolated", "--scope=pod", "--records="+records)
	if _, err := runWith(host, ociState, args...); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"pod.json": `{"boot":"this-boot","cgroup":"k/pod","scope":"pod","claims":[` +
			`{"uid":"u1","name":"team/job","cpus":"4-7","mems":"","partition":"isolated"}]}` + "\n",
		"abc.json": `{"boot":"this-boot","cgroup":"k/pod/abc","scope":"container","claims":[` +
			`{"uid":"u1","name":"team/job","cpus":"4-7","mems":"1","partition":"none"}]}` + "\n",
	} {
		if got, err := os.ReadFile(records + "/" + file); err != nil || string(got) != want {
			t.Errorf("%s is %s (%v), want %s", file, got, err, want)
		}
	}
	if info, err := os.Stat(records); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("folder of records: %v, %v", info.Mode(), err)
	}
}

func TestHelp(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--help"}, "usage: " + pinUsage + "\n       " + keepUsage + "\n"},
		{[]string{"pin", "-h"}, "usage: " + pinUsage + "\n"},
		{[]string{"keep", "--help"}, "usage: " + keepUsage + "\n"},
	} {
		if got, err := runWith(host{}, "", test.args...); err != nil || got != test.want {
			t.Errorf("%q prints %q (%v), want %q", test.args, got, err, test.want)
		}
	}
}

func TestKeepEndsWithItsContext(t *testing.T) {
	host := fakeHost(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var stderr bytes.Buffer
	args := []string{"keep", "--cgroups=" + host.cgroups, "--lock=" + t.TempDir() + "/lock", "--records=" + t.TempDir() + "/new/pins"}
	host.cgroups = "/nonexistent"
	if err := run(ctx, args, host, streams{strings.NewReader(""), io.Discard, &stderr}); err != nil || stderr.Len() > 0 {
		t.Errorf("keep: %v, stderr %s", err, &stderr)
	}
	for _, test := range []struct {
		args   []string
		want   string
		status int
	}{
		{[]string{"keep", "--cgroups=/nonexistent", "--records=" + t.TempDir()}, "keep claims pinned: open /nonexistent", 1},
		{[]string{"keep", "x"}, `unexpected argument "x"; usage: numa-pin keep`, 2},
		{[]string{"keep", "--cpus=1"}, "-cpus; usage: numa-pin keep", 2},
	} {
		stderr.Reset()
		_, err := runWith(host, "", test.args...)
		status := exit(err, &stderr)
		if got := stderr.String(); status != test.status || !strings.Contains(got, test.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%q: exit %d, stderr %s, want %d and %s", test.args, status, got, test.status, test.want)
		}
	}
}

func TestReasonIsLeftForTheDaemon(t *testing.T) {
	host, records := fakeHost(t), t.TempDir()
	_, err := runWith(host, ociState, pinArgs(t, "--cpus=4-6", "--records="+records)...)
	if err == nil {
		t.Fatal("pinned to what the kernel does not grant")
	}
	list, unread := pin.Refusals(os.DirFS(records), time.Now())
	if unread != nil || len(list) != 1 || list[0].Why != err.Error() || list[0].Claim.UID != "u1" || list[0].Container != "abc" {
		t.Errorf("refusals %+v, %v, want %v", list, unread, err)
	}
}

func TestPinSaysInOneLineWhyNot(t *testing.T) {
	for _, test := range []struct {
		name, state, want string
		args              []string
		status            int
	}{
		{
			"not granted", ociState,
			`numa-pin: error: pin container k/pod/abc to cpus 4-6 for claim team/job: cpuset.cpus.exclusive.effective is "4-7", want "4-6"`,
			[]string{"--cpus=4-6"},
			1,
		},
		{
			"memory not granted", ociState,
			`numa-pin: error: pin container k/pod/abc to mems 0 for claim team/job: cpuset.mems.effective is "1", want "0"`,
			[]string{"--mems=0", "--cpus="},
			1,
		},
		{"no process", `{"id":"abc"}`, `OCI state of container "abc" has pid 0`, []string{"--cpus=4-7"}, 1},
		{"dead process", `{"id":"abc","pid":43}`, `pin container abc to cpus 4-7 for claim team/job: open `, []string{"--cpus=4-7"}, 1},
		{"no state", ``, `read OCI state from standard input: `, []string{"--cpus=4-7"}, 1},
		{"bad list", ociState, `"7-4"`, []string{"--cpus=7-4"}, 2},
		{"bad partition", ociState, `partition "member": want one of none, root, isolated`, []string{"--cpus=1", "--partition=member"}, 2},
		{"bad scope", ociState, `scope "shared": want one of container, pod`, []string{"--cpus=1", "--scope=shared"}, 2},
		{"nothing to do", ociState, `--cpus or --mems is required; usage: numa-pin pin --uid=`, nil, 2},
		{"no uid", ociState, `--uid is required`, []string{"--cpus=1", "--uid="}, 2},
		{"idle ones of others", ociState, `--idle=3 is not a proper subset of --cpus`, []string{"--cpus=1,2", "--idle=3"}, 2},
		{"all idle", ociState, `--idle=1-2 is not a proper subset of --cpus`, []string{"--cpus=1,2", "--idle=1-2"}, 2},
		{"unknown flag", ociState, `-x; usage: numa-pin pin`, []string{"-x"}, 2},
		{"argument", ociState, `unexpected argument "x"`, []string{"--cpus=1", "x"}, 2},
		{"no claim", ociState, `--claim is required`, []string{"--cpus=1", "--claim="}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stderr bytes.Buffer
			_, err := runWith(fakeHost(t), test.state, pinArgs(t, test.args...)...)
			status := exit(err, &stderr)
			if got := stderr.String(); status != test.status || !strings.Contains(got, test.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("exit %d, want %d, stderr:\n%swant:\n%s", status, test.status, got, test.want)
			}
		})
	}
	var stderr bytes.Buffer
	_, err := runWith(host{}, "")
	if status := exit(err, &stderr); status != 2 {
		t.Errorf("no command: exit %d, stderr %s", status, &stderr)
	}
	if status := exit(nil, &stderr); status != 0 {
		t.Errorf("done: exit %d", status)
	}
}
