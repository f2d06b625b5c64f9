package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The lines of numa_maps are as the kernel prints them: see
// TestKernelPrintsTheMemoryPolicyOfATask.
const mapsOf = "55e7 POLICY file=/bin/sh mapped=2 N0=2 kernelpagesize_kB=4\n7ffd POLICY stack anon=2 dirty=2 N0=2 kernelpagesize_kB=4\n"

func TestMempolicyRecordsWhatTheRuntimeIgnored(t *testing.T) {
	for policy, want := range map[string]string{
		"default":  `"uid":"u1","name":"team/job","cpus":"","mems":"","partition":"none","policy":{"want":"bind:0-1","seen":"default"}`,
		"bind:0":   `"policy":{"want":"bind:0-1","seen":"bind:0"}`, // the cpuset has NUMA node 1
		"bind:1":   "",                                             // and no other
		"bind:0-1": "",
		"local":    "", // the program has set it
		"":         "", // the process has ended, or the kernel has no NUMA
	} {
		host, records := fakeHost(t), filepath.Join(t.TempDir(), "pins")
		if policy != "" {
			files.Write(t, host.proc+"/42/numa_maps", strings.ReplaceAll(mapsOf, "POLICY", policy))
		}
		args := []string{"mempolicy", "--uid=u1", "--claim=team/job", "--want=bind:0-1", "--lock=" + records + "/../lock", "--records=" + records}
		for range 2 {
			if _, err := runWith(t.Context(), host, ociState, args...); err != nil {
				t.Errorf("%s: %v", policy, err)
			}
		}
		left, err := filepath.Glob(records + "/*")
		if err != nil || (len(left) == 1) != (want != "") {
			t.Errorf("%s: records %q, %v", policy, left, err)
		}
		if want != "" && !strings.Contains(files.Read(t, records+"/abc.json"), want) {
			t.Errorf("%s: record %s, want %s", policy, files.Read(t, records+"/abc.json"), want)
		}
	}
}

// The hook of a claim that pins the container has run before, and its record stays.
func TestMempolicyAddsToTheRecordOfThePin(t *testing.T) {
	host := fakeHost(t)
	args := pinArgs(t, "--cpus=4-7", "--mems=1")
	if _, err := runWith(t.Context(), host, ociState, args...); err != nil {
		t.Fatal(err)
	}
	var common []string
	records := ""
	for _, arg := range args[1:] {
		if dir, is := strings.CutPrefix(arg, "--records="); is {
			records = dir
		}
		if strings.HasPrefix(arg, "--uid=") || strings.HasPrefix(arg, "--claim=") || strings.HasPrefix(arg, "--records=") || strings.HasPrefix(arg, "--lock=") {
			common = append(common, arg)
		}
	}
	files.Write(t, host.proc+"/42/numa_maps", strings.ReplaceAll(mapsOf, "POLICY", "default"))
	if _, err := runWith(t.Context(), host, ociState, append([]string{"mempolicy", "--want=bind:1"}, common...)...); err != nil {
		t.Fatal(err)
	}
	text := files.Read(t, records+"/abc.json")
	if want := `"cpus":"4-7","mems":"1","partition":"root","policy":{"want":"bind:1","seen":"default"}`; !strings.Contains(text, want) || strings.Count(text, `"uid"`) != 1 {
		t.Errorf("record %s, want %s", text, want)
	}
}

// A runtime ends a container whose poststart hook fails, so this one does not.
func TestMempolicyStopsNoContainer(t *testing.T) {
	const args = "mempolicy --uid=u1 --claim=team/job --want=bind:0"
	virtual := fakeHost(t)
	files.Write(t, virtual.proc+"/42/cgroup", "0::/kubepods/pod1/kata_overhead\n")
	files.Write(t, virtual.proc+"/42/numa_maps", strings.ReplaceAll(mapsOf, "POLICY", "default"))
	unwritable := fakeHost(t)
	files.Write(t, unwritable.proc+"/42/numa_maps", strings.ReplaceAll(mapsOf, "POLICY", "default"))
	for what, row := range map[string]struct {
		host  host
		state string
	}{
		"a hypervisor":               {virtual, ociState},
		"a container that is gone":   {host{proc: t.TempDir()}, ociState},
		"no state":                   {fakeHost(t), "{"},
		"a folder that is no folder": {unwritable, ociState},
	} {
		file := filepath.Join(t.TempDir(), "file")
		files.Write(t, file, "")
		if _, err := runWith(t.Context(), row.host, row.state, append(strings.Fields(args), "--records="+file+"/pins", "--lock="+file+"/lock")...); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestNonsenseOfMempolicyIsOneLine(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"mempolicy", "--uid is missing"},
		{"mempolicy --uid=u", "--claim is missing"},
		{"mempolicy --uid=u --claim=a/b", "--want is missing"},
		{"mempolicy --uid=u --claim=a/b --want=bind:0 more", `unexpected argument "more", numa-pin mempolicy takes only flags`},
		{"mempolicy --uid=u --claim=a/b --want=bind", `--want: memory policy "bind": want a mode and NUMA nodes, such as bind:0-1`},
	} {
		if _, err := runWith(t.Context(), host{}, "", strings.Fields(row.args)...); err == nil || err.Error() != row.want {
			t.Errorf("%s: error %v, want %s", row.args, err, row.want)
		}
	}
}
