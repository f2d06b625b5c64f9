package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const testBoot = "8a6d0a4e-3f57-4d6c-9a50-5b3d5ad5a9f1"

func noEnv(string) string { return "" }

// fakeMachine is one zone with two CPUs, a hook to install, and one that is installed.
func fakeMachine(t *testing.T) (flags []string, pluginDir string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sys/devices/system/cpu/online":                                              "0-1\n",
		"sys/devices/system/cpu/isolated":                                            "1\n",
		"sys/devices/system/node/online":                                             "0\n",
		"sys/devices/system/node/node0/cpulist":                                      "0-1\n",
		"sys/devices/system/node/node0/meminfo":                                      "Node 0 MemTotal:  1048576 kB\n",
		"sys/devices/system/cpu/cpu0/topology/core_id":                               "0\n",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages":      "8\n",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages":    "6\n",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/surplus_hugepages": "2\n",
		"sys/devices/system/cpu/cpu1/topology/core_id":                               "1\n",
		"proc/sys/kernel/random/boot_id":                                             testBoot + "\n",
		"hook":                                                                       "#!hook",
		"kubelet/plugins/dra.numa/keep":                                              "",
		"kubelet/plugins/dra.numa-hook/numa-pin":                                     "#!hook of before",
	} {
		files.Write(t, filepath.Join(dir, name), text)
	}
	if err := os.Chmod(dir+"/kubelet/plugins/dra.numa-hook/numa-pin", 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{
		"--node-name=node-1", "--machine-root=" + dir, "--kubelet-root=" + dir + "/kubelet", "--cdi-dir=" + dir + "/cdi",
		"--hook-source=" + dir + "/hook", "--cgroup-root=" + dir + "/none", "--kubeconfig=" + dir + "/none",
		"--listen=127.0.0.1:0",
	}, dir + "/kubelet/plugins/dra.numa"
}

// printed is what the program prints on standard output.
func printed(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := run(t.Context(), args, noEnv, &stdout)
	return stdout.String(), err
}

// isUsage reports whether an error is one of usage.
func isUsage(err error) bool { return errors.As(err, new(*cli.UsageError)) }

// expectUsage checks that a command line is an error of usage, of one line that begins
// with a text and has another.
func expectUsage(t *testing.T, begin, want string, args ...string) {
	t.Helper()
	_, err := printed(t, args...)
	if !isUsage(err) || !strings.HasPrefix(err.Error(), begin) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q: error %v, want one line of usage with %q", args, err, begin+" "+want)
	}
}

func TestNonsenseIsOneUsageLine(t *testing.T) {
	valid, _ := fakeMachine(t)
	for flag, want := range map[string]string{
		"--node-name=":              "node name is missing",
		"--node-name=A_b":           `--node-name "A_b"`,
		"--kubelet-root=var":        `--kubelet-root "var": want an absolute path`,
		"--hook-dir=var":            `--hook-dir "var": want an absolute path`,
		"--reserved-memory=lots":    `--reserved-memory "lots"`,
		"--reserved-memory=-1Mi":    `--reserved-memory "-1Mi"`,
		"--reserved-cpus=0-9":       `--reserved-cpus: reserved CPUs "0-9": the machine has no CPUs 2-9, allowed are 0-1`,
		"--reserved-cpus=7":         `--reserved-cpus: reserved CPUs "7": the machine has no CPUs 7, allowed are 0-1`,
		"--reserved-cpus=1":         `reserved CPUs 1 are all in isolcpus=1, which leaves the system none: reserve at least one of CPUs 0`,
		"--reserved-cpus= ":         `--reserved-cpus: reserved CPUs " ": name at least one of CPUs 0-1`,
		"--reserved-cpus=x":         `--reserved-cpus: reserved CPUs`,
		"--kubelet-config=/no/such": "/no/such",
		"--exclusivity=lots":        `--exclusivity "lots": allowed are auto, kernel, cooperative, none`,
		"-v=11":                     "-v 11: allowed are 0 to 10",
		"--no-such-flag":            "no-such-flag",
		"stray":                     `unexpected argument "stray"`,
	} {
		expectUsage(t, "", want, append(valid[:len(valid):len(valid)], flag)...)
	}
}

// The kubelet's reservation is checked like our own, and says where it is.
func TestKubeletReservationIsChecked(t *testing.T) {
	valid, _ := fakeMachine(t)
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	for text, want := range map[string]string{
		"reservedSystemCPUs: \"9\"":                                     `kubelet configuration reservedSystemCPUs "9": the machine has no CPUs 9, allowed are 0-1`,
		"reservedMemory: [{numaNode: 0, limits: {hugepages-1Gi: 1Gi}}]": "kubelet configuration reservedMemory[0] (hugepages-1Gi): size: the kernel has no hugepages of 1Gi, allowed are 2Mi",
		"reservedSystemCPUs: \"1\"":                                     "reserved CPUs 1 are all in isolcpus=1",
	} {
		files.Write(t, file, text)
		expectUsage(t, "", want, append(valid[:len(valid):len(valid)], "--kubelet-config="+file)...)
	}
}

func TestHelpGoesToStdout(t *testing.T) {
	const checkpoint, state = "Usage: dra-numa checkpoint verify [--kubelet-root DIR | FILE]", "Usage: dra-numa state"
	for _, row := range []struct{ args, begin, want string }{
		{"-h", "", "-reserved-cpus list"},
		{"--help", "", "dra-numa checkpoint verify|dump"},
		{"--help", "", "dra-numa state [flags]"},
		{"--help", "", "dra-numa probe [flags of the daemon]"},
		{"checkpoint -h", checkpoint, "dra-numa checkpoint dump"},
		{"checkpoint verify --help", checkpoint, "-kubelet-root directory"},
		{"state --help", state, "-cgroup-root directory"},
	} {
		got, err := printed(t, strings.Fields(row.args)...)
		if !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(got, row.begin) || !strings.Contains(got, row.want) {
			t.Errorf("%s: help %q, %v, want it to begin with %q and to have %q", row.args, got, err, row.begin, row.want)
		}
	}
}

// After a rollback, the older daemon says in one line what to do, and changes nothing: the
// newer one goes on from the same file. So do builds that meet a file from before the formats
// had names.
func TestCheckpointOfAnotherBuildEndsTheDaemon(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	path := filepath.Join(pluginDir, "checkpoint.json")
	for _, text := range []string{
		`{"format":"dra.numa/checkpoint","version":1000,"sha256":"","state":{"more":{}}}` + "\n",
		`{"version":7,"sha256":"","state":{}}` + "\n",
	} {
		files.Write(t, path, text)
		_, err := printed(t, append(flags, "--exclusivity=none")...)
		const want = ": written by another build: format "
		if !errors.Is(err, ledger.ErrOtherBuild) || !strings.HasPrefix(err.Error(), path+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line that begins with %s", err, path+want)
		}
		if now := files.Read(t, path); now != text {
			t.Errorf("the checkpoint is now %s", now)
		}
	}
}

func TestDamagedCheckpointEndsTheDaemon(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	path := filepath.Join(pluginDir, "checkpoint.json")
	files.Write(t, path, "{\"version\":1,\n")
	_, err := printed(t, append(flags, "--exclusivity=none")...)
	if !errors.Is(err, ledger.ErrDamaged) || isUsage(err) {
		t.Errorf("error %v, want ErrDamaged", err)
	}
}
