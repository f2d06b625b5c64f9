// Package doctor tests the script of make doctor. The programs that it runs are stubs.
package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const script = "../../deployments/doctor/doctor.sh"

// doctor runs the script next to stubs, as a user with this number. It returns the files of
// the archive by name, nil if there is none.
func doctor(t *testing.T, user string, env ...string) (packed map[string]string, output string, exitCode int) {
	t.Helper()
	folder, bin := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		files.Write(t, path, text)
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(folder, "doctor.sh"), files.Read(t, script))
	write(filepath.Join(bin, "id"), "#!/bin/sh\necho "+user+"\n")
	for _, program := range []string{"pin.test", "e2e.test"} {
		write(filepath.Join(folder, program), "#!/bin/sh\necho "+program+` "$@" "[$NUMA_PIN_CGROUP]"`+"\n[ \"$BROKEN\" != "+program+" ]\n")
	}
	write(filepath.Join(folder, "kubectl-numa"), "#!/bin/sh\necho kubectl-numa \"$@\"\nif [ \"$1\" = gather ]; then echo bundle >\"$3\"; fi\n")
	out := filepath.Join(folder, "out.tar.gz")
	command := exec.CommandContext(t.Context(), filepath.Join(folder, "doctor.sh"), out)
	command.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "TMPDIR=" + folder}, env...)
	text, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	if archive, err := os.ReadFile(out); err == nil {
		packed = map[string]string{}
		for _, file := range files.Unpack(t, archive) {
			if name := strings.TrimPrefix(file.Name, "dra-numa-doctor/"); name != "" {
				packed[name] = file.Text
			}
		}
	}
	return packed, string(text), command.ProcessState.ExitCode()
}

// kubeconfig returns the setting with a file that exists.
func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	files.Write(t, path, "")
	return "KUBECONFIG=" + path
}

func TestDoctorPacksWhatAllStepsSay(t *testing.T) {
	packed, output, exitCode := doctor(t, "0", kubeconfig(t), "FOCUS=restarts", "OBSERVER=registry.example/busybox:1")
	if exitCode != 0 {
		t.Fatalf("exit code %d:\n%s", exitCode, output)
	}
	for name, want := range map[string]string{
		"topology.json": "kubectl-numa topology -o json\n",
		"kernel.txt":    "pin.test -test.run ^TestKernel -test.v [/sys/fs/cgroup]\n",
		"validate.txt":  "kubectl-numa validate\n",
		"bundle.tar.gz": "bundle\n",
	} {
		if packed[name] != want {
			t.Errorf("%s is %q, want %q", name, packed[name], want)
		}
	}
	if specs := packed["specs.txt"]; !strings.Contains(specs, "-observer-image registry.example/busybox:1") || !strings.Contains(specs, "-ginkgo.focus restarts") || !strings.HasSuffix(specs, "[]\n") {
		t.Errorf("specs: %s", specs)
	}
	if !strings.Contains(packed["software.txt"], "cgroup controllers: ") {
		t.Errorf("software: %s", packed["software.txt"])
	}
	var done []string
	for line := range strings.Lines(packed["summary.txt"]) {
		done = append(done, strings.TrimPrefix(strings.TrimSpace(line), "done     "))
	}
	if want := []string{"software.txt", "topology.txt", "topology.json", "kernel.txt", "version.txt", "features.txt", "validate.txt", "specs.txt", "gather.txt"}; !slices.Equal(done, want) {
		t.Errorf("summary %q, want %q", done, want)
	}
}

// A step that fails is in the file, and the steps after it run.
func TestDoctorGoesOnAfterAFailure(t *testing.T) {
	packed, output, exitCode := doctor(t, "0", kubeconfig(t), "BROKEN=pin.test")
	if exitCode != 1 || !strings.Contains(output, "Wrote ") {
		t.Errorf("exit code %d:\n%s", exitCode, output)
	}
	if summary := packed["summary.txt"]; !strings.Contains(summary, "failed   kernel.txt (exit status 1)\n") || !strings.Contains(summary, "done     specs.txt\n") {
		t.Errorf("summary:\n%s", summary)
	}
}

func TestDoctorSaysWhatItSkips(t *testing.T) {
	packed, output, exitCode := doctor(t, "1000", "STEPS=kernel cluster")
	if exitCode != 0 {
		t.Errorf("exit code %d:\n%s", exitCode, output)
	}
	if want := "skipped  kernel.txt: you are not root\nskipped  cluster: KUBECONFIG names no file\n"; packed["summary.txt"] != want || len(packed) != 1 {
		t.Errorf("packed %q, want the summary %q", packed, want)
	}
}

func TestDoctorRefusesUnknownSteps(t *testing.T) {
	packed, output, exitCode := doctor(t, "0", "STEPS=machine kernels")
	if want := "doctor.sh: error: STEPS has \"kernels\": want machine, kernel, cluster\n"; exitCode != 2 || output != want || packed != nil {
		t.Errorf("exit code %d, %q, want %q", exitCode, output, want)
	}
}
