package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// fakeHost has one container whose effective files already say what the kernel
// would answer to cpus 4-7 and mems 1; cdi/pin's tests ask the real kernel.
func fakeHost(t *testing.T) host {
	t.Helper()
	dir := t.TempDir()
	texts := map[string]string{
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
		texts[group+"cpuset.cpus"], texts[group+"cpuset.mems"] = "\n", "\n"
		texts[group+"cpuset.cpus.exclusive"], texts[group+"cpuset.cpus.partition"] = "\n", "member\n"
	}
	for name, text := range texts {
		files.Write(t, filepath.Join(dir, name), text)
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
func runWith(ctx context.Context, host host, state string, args ...string) (stdout string, err error) {
	var out bytes.Buffer
	err = run(ctx, args, host, streams{strings.NewReader(state), &out, io.Discard})
	return out.String(), err
}

func TestPinWritesWhatTheClaimHas(t *testing.T) {
	host := fakeHost(t)
	args := pinArgs(t, "--cpus=4-7", "--mems=1", "--partition=root")
	if _, err := runWith(t.Context(), host, ociState, args...); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"k/cpuset.cpus.exclusive": "4-7", "k/pod/cpuset.cpus.exclusive": "4-7",
		"k/pod/abc/cpuset.cpus.exclusive": "4-7", "k/pod/abc/cpuset.cpus": "4-7",
		"k/pod/abc/cpuset.mems": "1", "k/pod/abc/cpuset.cpus.partition": "root",
		"k/cpuset.cpus.partition": "member", "k/cpuset.cpus": "",
	} {
		if line, _, _ := strings.Cut(files.Read(t, host.cgroups+"/"+file), "\n"); line != want {
			t.Errorf("%s is %q, want %q", file, line, want)
		}
	}
}

// Until the daemon has rewritten the CDI specs, a hook runs with the arguments of another
// build: after an upgrade with fewer, and after a rollback with more. A container that could
// get less than its claim has does not start.
func TestHookRunsWithTheArgumentsOfAnotherBuild(t *testing.T) {
	for _, row := range []struct{ args, want, cpus string }{
		{"--cpus=4-7", "", "4-7"},
		{"--cpus=4-7 --mems=1 --new=x", "flag provided but not defined: -new", ""},
	} {
		host, records := fakeHost(t), t.TempDir()
		_, err := runWith(t.Context(), host, ociState, pinArgs(t, append(strings.Fields(row.args), "--records="+records)...)...)
		if (err == nil) != (row.want == "") || err != nil && !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", row.args, err, row.want)
		}
		if cpus := strings.TrimSpace(files.Read(t, host.cgroups+"/k/pod/abc/cpuset.cpus")); cpus != row.cpus {
			t.Errorf("%s: cpuset.cpus is %q, want %q", row.args, cpus, row.cpus)
		}
		if left, err := os.ReadDir(records); err != nil || (len(left) > 0) != (row.want == "") {
			t.Errorf("%s: records %v, %v", row.args, left, err)
		}
	}
}

func TestNothingIsPinnedWhileTheFileExists(t *testing.T) {
	host := fakeHost(t)
	dir := t.TempDir()
	stop := filepath.Join(dir, "stop-pinning")
	args := pinArgs(t, "--cpus=4-7", "--mems=1", "--records="+dir+"/pins")
	line := func() string {
		return strings.TrimSpace(files.Read(t, filepath.Join(host.cgroups, "k/pod/abc/cpuset.cpus")))
	}
	files.Write(t, stop, "")
	if _, err := runWith(t.Context(), host, ociState, args...); err != nil || line() != "" {
		t.Errorf("%v, cpuset.cpus is %q, want that nothing happens", err, line())
	}
	if err := os.Remove(stop); err != nil {
		t.Fatal(err)
	}
	if _, err := runWith(t.Context(), host, ociState, args...); err != nil || line() != "4-7" {
		t.Errorf("%v, cpuset.cpus is %q, want 4-7", err, line())
	}
}

// In pod scope the pod's cgroup is the partition, and the record says so.
func TestPinRecords(t *testing.T) {
	const pod = "pod5c6f9a0b-26d5-4a41-9a3f-4f5d8c1b7e01"
	host := fakeHost(t)
	records := t.TempDir() + "/new/pins"
	args := pinArgs(t, "--cpus=4-7", "--mems=1", "--partition=isolated", "--scope=pod", "--records="+records)
	if _, err := runWith(t.Context(), host, ociState, args...); !errors.Is(err, pin.ErrNotSupported) || !strings.Contains(err.Error(), "k/pod is not a pod's") {
		t.Errorf("the parent is not a pod's: error %v", err)
	}
	if cpus := strings.TrimSpace(files.Read(t, host.cgroups+"/k/pod/cpuset.cpus")); cpus != "" {
		t.Errorf("the parent is not a pod's, and gets cpus %q", cpus)
	}
	if err := os.Rename(host.cgroups+"/k/pod", host.cgroups+"/k/"+pod); err != nil {
		t.Fatal(err)
	}
	files.Write(t, host.proc+"/42/cgroup", "0::/k/"+pod+"/abc\n")
	for name, text := range map[string]string{
		"cpuset.cpus.effective": "4-7", "cpuset.cpus.exclusive.effective": "4-7", "cgroup.events": "populated 1",
	} {
		files.Write(t, host.cgroups+"/k/"+pod+"/"+name, text+"\n")
	}
	if _, err := runWith(t.Context(), host, ociState, args...); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		pod + ".json": `{"format":"dra.numa/pins","version":1,"boot":"this-boot","cgroup":"k/` + pod + `","scope":"pod","claims":[` +
			`{"uid":"u1","name":"team/job","cpus":"4-7","mems":"","partition":"isolated"}]}` + "\n",
		"abc.json": `{"format":"dra.numa/pins","version":1,"boot":"this-boot","cgroup":"k/` + pod + `/abc","scope":"container","claims":[` +
			`{"uid":"u1","name":"team/job","cpus":"4-7","mems":"1","partition":"none"}]}` + "\n",
	} {
		if got := files.Read(t, records+"/"+file); got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
	if info, err := os.Stat(records); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("folder of records: %v, %v", info.Mode(), err)
	}
}

// The scope was decided for two pods. The cgroup of a third one is no partition.
func TestPinOfAPodThatComesLater(t *testing.T) {
	const known, other, later = "5c6f9a0b-26d5-4a41-9a3f-4f5d8c1b7e01", "5c6f9a0b-26d5-4a41-9a3f-4f5d8c1b7e02", "5c6f9a0b-26d5-4a41-9a3f-4f5d8c1b7e03"
	for _, pod := range []string{known, later} {
		host := fakeHost(t)
		if err := os.Rename(host.cgroups+"/k/pod", host.cgroups+"/k/pod"+pod); err != nil {
			t.Fatal(err)
		}
		files.Write(t, host.proc+"/42/cgroup", "0::/k/pod"+pod+"/abc\n")
		for name, text := range map[string]string{
			"cpuset.cpus.effective": "4-7", "cpuset.cpus.exclusive.effective": "4-7", "cgroup.events": "populated 1",
		} {
			files.Write(t, host.cgroups+"/k/pod"+pod+"/"+name, text+"\n")
		}
		if _, err := runWith(t.Context(), host, ociState, pinArgs(t, "--cpus=4-7", "--scope=pod", "--pods="+other+","+known)...); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{known: "root", later: "member"}[pod]
		if got, _, _ := strings.Cut(files.Read(t, host.cgroups+"/k/pod"+pod+"/cpuset.cpus.partition"), "\n"); got != want {
			t.Errorf("pod %s: cpuset.cpus.partition is %q, want %q", pod, got, want)
		}
		if cpus := strings.TrimSpace(files.Read(t, host.cgroups+"/k/pod"+pod+"/abc/cpuset.cpus")); cpus != "4-7" {
			t.Errorf("pod %s: the container has cpus %q, want 4-7", pod, cpus)
		}
	}
}

// Quotas of other pods stay: they may have a limit of their own, or have come later.
func TestPinLiftsQuotasOfItsPods(t *testing.T) {
	const known, other = "5c6f9a0b-26d5-4a41-9a3f-4f5d8c1b7e01", "5c6f9a0b-26d5-4a41-9a3f-4f5d8c1b7e02"
	for _, pod := range []string{known, other} {
		host := fakeHost(t)
		if err := os.Rename(host.cgroups+"/k/pod", host.cgroups+"/k/pod"+pod); err != nil {
			t.Fatal(err)
		}
		files.Write(t, host.proc+"/42/cgroup", "0::/k/pod"+pod+"/abc\n")
		cgroups := []string{host.cgroups + "/k/pod" + pod, host.cgroups + "/k/pod" + pod + "/abc"}
		for _, cgroup := range cgroups {
			files.Write(t, cgroup+"/cpu.max", "400000 100000\n")
		}
		args := pinArgs(t, "--cpus=4-7", "--partition=none", "--lift-quota="+known+"=4000")
		if _, err := runWith(t.Context(), host, ociState, args...); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{known: "max 100000", other: "400000 100000"}[pod]
		for _, cgroup := range cgroups {
			if got, _, _ := strings.Cut(files.Read(t, cgroup+"/cpu.max"), "\n"); got != want {
				t.Errorf("pod %s: cpu.max of %s is %q, want %q", pod, filepath.Base(cgroup), got, want)
			}
		}
	}
}

func TestQuotaPodsThatMakeNoSense(t *testing.T) {
	for _, list := range []string{"", "p1", "p1=", "p1=x", "p1=-1", "=2000", "p1=2000,", "p1=1e3", "p1=9223372036854775808"} {
		if _, err := runWith(t.Context(), fakeHost(t), ociState, pinArgs(t, "--cpus=4-7", "--lift-quota="+list)...); err == nil || !strings.Contains(err.Error(), "want UID=LIMIT") {
			t.Errorf("--lift-quota=%s: error %v", list, err)
		}
	}
}

func TestHelp(t *testing.T) {
	for args, want := range map[string]string{
		"--help": "Usage: numa-pin pin --uid=UID --claim=NAMESPACE/NAME [--cpus=LIST] ",
		"pin -h": "Usage: numa-pin pin --uid=UID --claim=NAMESPACE/NAME [--cpus=LIST] ",
		// as the daemon tries its arguments
		"pin --uid=u --claim=c --cpus=2 --mems= --partition=root --scope=container --lock=/l --records=/r --help": "Usage: numa-pin pin ",
		"use --help":       "Usage: numa-pin use --uid=UID --claim=NAMESPACE/NAME [--function=ADDRESS ",
		"joined --help":    "Usage: numa-pin joined --uid=UID --claim=NAMESPACE/NAME --group=GROUP ",
		"mempolicy --help": "Usage: numa-pin mempolicy --uid=UID --claim=NAMESPACE/NAME --want=POLICY ",
		"keep --help":      "Usage: numa-pin keep [--cgroups=DIR] ",
	} {
		got, err := runWith(t.Context(), host{}, "", strings.Fields(args)...)
		if !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(got, want) {
			t.Errorf("%q prints %q (%v), want %q", args, got, err, want)
		}
		usage, _, _ := strings.Cut(got, "\n\n")
		for line := range strings.Lines(usage) {
			if len(line) > 101 {
				t.Errorf("%q: a line has %d columns: %s", args, len(line)-1, line)
			}
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
}

func TestKeepLogsJSON(t *testing.T) {
	host := fakeHost(t)
	records := t.TempDir()
	old := filepath.Join(records, "old.json")
	files.Write(t, old, "{")
	if err := os.Chtimes(old, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var stderr bytes.Buffer
	args := []string{"keep", "--lock=" + t.TempDir() + "/lock", "--records=" + records, "--logging-format=json"}
	if err := run(ctx, args, host, streams{strings.NewReader(""), io.Discard, &stderr}); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(stderr.String(), "\n")
	var entry map[string]any
	err := json.Unmarshal([]byte(first), &entry)
	if message, _ := entry["msg"].(string); err != nil || entry["ts"] == nil || !strings.HasPrefix(message, `removed record "old.json" of another boot`) {
		t.Errorf("%v: the first of the lines is no JSON that names the record:\n%s", err, &stderr)
	}
}

func TestKeepSaysInOneLineWhyNot(t *testing.T) {
	const together = "error: --kubelet and --policies belong together"
	for _, test := range []struct {
		args, want string
		status     int
	}{
		{"--cgroups=/nonexistent", "error: keep claims pinned: open /nonexistent", 1},
		{"x", `unexpected argument "x", numa-pin keep takes only flags`, 2},
		{"--cpus=1", "not defined: -cpus", 2},
		{"--kubelet=/k", together, 2},
		{"--policies=/s", together, 2},
		{"--kubelet=/no/such --policies=/s", "error: copy policies of the kubelet's managers: open /no/such: no such file or directory", 1},
		{"--kubelet=/tmp --policies=/no/pol", "error: copy policies of the kubelet's managers: open /no/pol: no such file or directory", 1},
	} {
		dir := t.TempDir()
		_, err := runWith(t.Context(), fakeHost(t), "", append([]string{"keep", "--lock=" + dir + "/lock", "--records=" + dir + "/pins"}, strings.Fields(test.args)...)...)
		var stderr bytes.Buffer
		status := cli.Exit("numa-pin", err, &stderr)
		if got := stderr.String(); status != test.status || !strings.Contains(got, test.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%q: exit %d, stderr %s, want %d and %s", test.args, status, got, test.status, test.want)
		}
	}
}

func TestReasonIsLeftForTheDaemon(t *testing.T) {
	host, records := fakeHost(t), t.TempDir()
	_, err := runWith(t.Context(), host, ociState, pinArgs(t, "--cpus=4-6", "--records="+records)...)
	if err == nil {
		t.Fatal("pinned to what the kernel does not grant")
	}
	list, unread := pin.Refusals(os.DirFS(records), time.Now())
	if unread != nil || len(list) != 1 || list[0].Why != err.Error() || list[0].Claim.UID != "u1" || list[0].Container != "abc" {
		t.Errorf("refusals %+v, %v, want %v", list, unread, err)
	}
}

const planOfTheClaim = `k/cpuset.cpus.exclusive <- 4-6
k/pod/cpuset.cpus.exclusive <- 4-6
k/pod/abc/cpuset.cpus.exclusive <- 4-6
k/pod/abc/cpuset.cpus <- 4-6
k/pod/abc/cpuset.cpus.partition <- root
`

// The kernel grants other CPUs. The refusal says what the hook wanted to write.
func TestRefusalHasThePlan(t *testing.T) {
	_, err := runWith(t.Context(), fakeHost(t), ociState, pinArgs(t, "--cpus=4-6")...)
	var stderr strings.Builder
	want := "  the plan was:\n  " + strings.ReplaceAll(strings.TrimSpace(planOfTheClaim), "\n", "\n  ") + "\n"
	if cli.Exit("numa-pin", err, &stderr); !strings.HasSuffix(stderr.String(), "\n"+want) {
		t.Errorf("it says\n%swant at the end\n%s", &stderr, want)
	}
}

func TestDryRunPrintsThePlanAndChangesNothing(t *testing.T) {
	host, dir := fakeHost(t), t.TempDir()
	before := files.Read(t, host.cgroups+"/k/pod/abc/cpuset.cpus")
	args := pinArgs(t, "--cpus=4-6", "--idle=6", "--dry-run", "--records="+dir+"/pins", "--lock="+dir+"/lock")
	want := "pin container k/pod/abc to cpus 4-6 for claim team/job:\n" + planOfTheClaim + "threads of process 42 <- without cpus 6\n"
	if got, err := runWith(t.Context(), host, ociState, args...); err != nil || got != want {
		t.Errorf("%v, it prints\n%swant\n%s", err, got, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || files.Read(t, host.cgroups+"/k/pod/abc/cpuset.cpus") != before {
		t.Errorf("it has left %v (%v)", left, err)
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
		{"nothing to do", ociState, `--cpus and --mems are missing: want one of them`, nil, 2},
		{"no uid", ociState, `--uid is missing`, []string{"--cpus=1", "--uid="}, 2},
		{"idle ones of others", ociState, `--idle=3 is not a proper subset of --cpus`, []string{"--cpus=1,2", "--idle=3"}, 2},
		{"all idle", ociState, `--idle=1-2 is not a proper subset of --cpus`, []string{"--cpus=1,2", "--idle=1-2"}, 2},
		{"unknown flag", ociState, `not defined: -x`, []string{"-x"}, 2},
		{"unknown flag before --help", ociState, `not defined: -x`, []string{"-x", "--help"}, 2},
		{"argument", ociState, `unexpected argument "x"`, []string{"--cpus=1", "x"}, 2},
		{"no claim", ociState, `--claim is missing`, []string{"--cpus=1", "--claim="}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stderr bytes.Buffer
			_, err := runWith(t.Context(), fakeHost(t), test.state, pinArgs(t, test.args...)...)
			status := cli.Exit("numa-pin", err, &stderr)
			got, plan, _ := strings.Cut(stderr.String(), "\n")
			if status != test.status || !strings.Contains(got, test.want) || plan != "" != strings.Contains(test.name, "not granted") {
				t.Errorf("exit %d, want %d, stderr:\n%swant:\n%s", status, test.status, stderr.String(), test.want)
			}
		})
	}
	var stderr bytes.Buffer
	_, err := runWith(t.Context(), host{}, "")
	if status := cli.Exit("numa-pin", err, &stderr); status != 2 {
		t.Errorf("no command: exit %d, stderr %s", status, &stderr)
	}
	if status := cli.Exit("numa-pin", nil, &stderr); status != 0 {
		t.Errorf("done: exit %d", status)
	}
}
