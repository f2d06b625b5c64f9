package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// driveHost is a fakeHost with a drive that has the devices c240:0 and b259:0.
func driveHost(t *testing.T) (host host, machine fake.Machine) {
	t.Helper()
	host = fakeHost(t)
	machine = fake.Presets()[0].Machine
	machine.PCI = []fake.Function{fake.NVMe("0001:21:00.0", 0, 0)}
	host.machine = t.TempDir()
	if err := machine.Write(host.machine); err != nil {
		t.Fatal(err)
	}
	return host, machine
}

func useArgs(t *testing.T, args ...string) (records string, all []string) {
	dir := t.TempDir()
	return dir + "/new/pins/abc.json", append([]string{"use", "--uid=u1", "--claim=team/job", "--lock=" + dir + "/new/lock", "--records=" + dir + "/new/pins"}, args...)
}

func TestUseLeavesARecord(t *testing.T) {
	host, _ := driveHost(t)
	for name, more := range map[string][]string{
		"nothing":  nil,
		"function": {"--function=0001:21:00.0", "--nodes=c240:0,b259:0"},
		"no nodes": {"--function=0001:21:00.0"},
	} {
		record, args := useArgs(t, more...)
		for range 2 { // it may be repeated
			if _, err := runWith(t.Context(), host, ociState, args...); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if text := files.Read(t, record); !strings.Contains(text, `"cgroup":"k/pod/abc"`) || strings.Count(text, `"uid":"u1"`) != 1 {
			t.Errorf("%s: record %s", name, text)
		}
		// Another claim pins the same container, and one that gives nothing joins it.
		dir := filepath.Dir(filepath.Dir(record))
		common := []string{"--claim=team/other", "--lock=" + dir + "/lock", "--records=" + dir + "/pins"}
		if _, err := runWith(t.Context(), host, ociState, append([]string{"pin", "--uid=u0", "--cpus=4-7", "--mems=1"}, common...)...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := runWith(t.Context(), host, ociState, append([]string{"use", "--uid=u2"}, common...)...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text := files.Read(t, record); strings.Count(text, `"uid"`) != 3 || strings.Count(text, `"cpus":"4-7"`) != 1 {
			t.Errorf("%s: record %s, want one with three claims, of which one pins", name, text)
		}
	}
}

// A drive was pulled out, and another one has its name and number.
func TestUseStopsAContainerWithTheDeviceOfAnother(t *testing.T) {
	host, machine := driveHost(t)
	for name, row := range map[string]struct {
		pci  []fake.Function
		want string
	}{
		"another has the number": {[]fake.Function{fake.NVMe("0001:21:00.0", 0, 1), fake.NVMe("0001:23:00.0", 1, 0)}, "PCI function 0001:21:00.0 no longer has the device c240:0"},
		"gone":                   {[]fake.Function{fake.NVMe("0001:23:00.0", 1, 0)}, "PCI function 0001:21:00.0: the machine no longer has it"},
	} {
		machine.PCI, host.machine = row.pci, t.TempDir()
		if err := machine.Write(host.machine); err != nil {
			t.Fatal(err)
		}
		record, args := useArgs(t, "--function=0001:21:00.0", "--nodes=c240:0,b259:0")
		if _, err := runWith(t.Context(), host, ociState, args...); err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "team/job") {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
		if _, err := os.Stat(record); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a container that does not start has a record: %v", name, err)
		}
		// The daemon tells the pod.
		if left, err := filepath.Glob(filepath.Dir(record) + "/*refus*"); err != nil || len(left) != 1 {
			t.Errorf("%s: reasons left are %s, %v, want one", name, left, err)
		}
		// The process of a hypervisor says nothing about a container.
		files.Write(t, host.proc+"/42/cgroup", "0::/kubepods/pod1/kata_overhead\n")
		if _, err := runWith(t.Context(), host, ociState, args...); err != nil {
			t.Errorf("%s, a virtual machine: error %v", name, err)
		}
		files.Write(t, host.proc+"/42/cgroup", "0::/k/pod/abc\n")
	}
}

func TestUseOfWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"--claim=a/b":                          "--uid is missing",
		"--uid=u":                              "--claim is missing",
		"--uid=u --claim=a/b --nodes=c240:0":   "--function is missing",
		"--uid=u --claim=a/b --function=nvme0": "not a PCI address",
		"--uid=u --claim=a/b --function=0001:21:00.0 --nodes=240:0":   `device node type "2"`,
		"--uid=u --claim=a/b --function=0001:21:00.0 --nodes=c240":    `device number "c240"`,
		"--uid=u --claim=a/b --function=0001:21:00.0 --nodes=c240:0,": `device number ""`,
		"--uid=u --claim=a/b --function=0001:21:00.0 --nodes=p240:0":  `device node type "p"`,
		"--uid=u --claim=a/b --function=0001:21:00.0 --nodes=c0:0":    "device node number 0:0",
		"--uid=u --claim=a/b --function=0001:21:00.0 --nodes=c4096:0": "device node number 4096:0",
	} {
		_, err := runWith(t.Context(), fakeHost(t), ociState, append([]string{"use"}, strings.Fields(args)...)...)
		if usage := (*cli.UsageError)(nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
}

// While an administrator has stopped pinning, a container starts unpinned, and what its claim
// holds stays its own.
func TestStoppedHookRecordsTheUse(t *testing.T) {
	host := fakeHost(t)
	args := pinArgs(t, "--cpus=4-7")
	var records string
	for _, arg := range args {
		if dir, ok := strings.CutPrefix(arg, "--records="); ok {
			records = dir
		}
	}
	files.Write(t, filepath.Join(filepath.Dir(records), stopFile), "")
	if _, err := runWith(t.Context(), host, ociState, args...); err != nil {
		t.Fatal(err)
	}
	if text := files.Read(t, records+"/abc.json"); !strings.Contains(text, `"uid":"u1"`) || strings.Contains(text, "4-7") {
		t.Errorf("record %s, want one that pins nothing", text)
	}
}
