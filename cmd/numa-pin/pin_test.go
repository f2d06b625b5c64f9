package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeHost has one container whose effective files already say what the kernel
// would answer to cpus 4-7 and mems 1; cdi/pin's tests ask the real kernel.
func fakeHost(t *testing.T) host {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"proc/42/cgroup":                               "0::/k/pod/abc\n",
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
	return append([]string{"pin", "--claim=team/job", "--lock=" + t.TempDir() + "/new/lock"}, args...)
}

func TestPinWritesWhatTheClaimHas(t *testing.T) {
	host := fakeHost(t)
	err := run(pinArgs(t, "--cpus=4-7", "--mems=1", "--partition=root"), host, strings.NewReader(ociState))
	if err != nil {
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
		{"nothing to do", ociState, `neither --cpus nor --mems; want numa-pin pin --claim=`, nil, 2},
		{"unknown flag", ociState, `-x; want numa-pin pin`, []string{"-x"}, 2},
		{"help", ociState, `want numa-pin pin`, []string{"-h"}, 2},
		{"argument", ociState, `argument "x"`, []string{"--cpus=1", "x"}, 2},
		{"no claim", ociState, `no --claim`, []string{"--cpus=1", "--claim="}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stderr bytes.Buffer
			status := exit(run(pinArgs(t, test.args...), fakeHost(t), strings.NewReader(test.state)), &stderr)
			if got := stderr.String(); status != test.status || !strings.Contains(got, test.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("exit %d, want %d, stderr:\n%swant:\n%s", status, test.status, got, test.want)
			}
		})
	}
	var stderr bytes.Buffer
	if status := exit(run(nil, host{}, strings.NewReader("")), &stderr); status != 2 {
		t.Errorf("no command: exit %d, stderr %s", status, &stderr)
	}
	if status := exit(nil, &stderr); status != 0 {
		t.Errorf("done: exit %d", status)
	}
}
