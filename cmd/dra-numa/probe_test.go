package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestExclusivityOfTheNode(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const (
		unsupported = "the probe found no support for cpuset partitions, which need Linux 6.11 or newer and cgroup v2"
		withoutNRI  = unsupported + ", and the container runtime offers no NRI"
	)
	for _, row := range []struct {
		mode, socket string
		probed, want driver.Exclusivity
		problem, why string
	}{
		{"auto", socket, "kernel", "kernel", "", "the kernel supports cpuset partitions"},
		{"auto", "", "kernel", "kernel", "", "the kernel supports cpuset partitions"},
		{"auto", socket, "none", "cooperative", "", unsupported},
		{"auto", socket + ".no", "none", "none", "", withoutNRI},
		{"auto", filepath.Dir(socket), "none", "none", "", withoutNRI},
		{"auto", "", "none", "none", "", withoutNRI},
		{"kernel", socket, "kernel", "kernel", "", "the configuration asks for kernel"},
		{"kernel", socket, "none", "", "--exclusivity=kernel: ", ""},
		{"cooperative", socket, "kernel", "cooperative", "", "the configuration asks for cooperative"},
		{"cooperative", socket + ".no", "none", "cooperative", "", "the configuration asks for cooperative"}, // the runtime may come later
		{"none", socket, "kernel", "none", "", "the configuration asks for none"},
	} {
		o := options{exclusivityMode: row.mode, nriSocket: row.socket}
		got, why, err := o.exclusivity(row.probed)
		if got != row.want || why != row.why || (err == nil) != (row.problem == "") || err != nil && !strings.HasPrefix(err.Error(), row.problem) {
			t.Errorf("%+v: %q because %q, %v", row, got, why, err)
		}
	}
	o := options{exclusivityMode: "kernel", kubeletRoot: t.TempDir()}
	files.Write(t, o.pluginDir()+"/stop-pinning", "")
	if got, why, err := o.exclusivity("kernel"); got != "none" || why != "an administrator has stopped pinning with the file "+o.pluginDir()+"/stop-pinning" || err != nil {
		t.Errorf("%q because %q, %v while pinning is stopped, want none", got, why, err)
	}
	_, err = parseFlags(cli.Call{Args: []string{"--node-name=n", "--exclusivity=cooperative", "--nri-socket="}}, noEnv)
	if err == nil || !strings.Contains(err.Error(), "--nri-socket, which is empty") {
		t.Errorf("cooperative without a socket: %v", err)
	}
}

func TestKernelsThatAreProbed(t *testing.T) {
	for release, want := range map[string]string{
		"6.11.0\n": "true", "6.12.107+deb13-amd64\n": "true", "7.0-rc1\n": "true", "10.1.0\n": "true",
		"6.10.14\n": "false", "6.7.0-arch1\n": "false", "6.1.0-56-amd64\n": "false", "5.14.0-503.el9.x86_64\n": "false",
		"next\n": `false read proc/sys/kernel/osrelease: "next", want a release such as 6.12.1: expected integer`,
	} {
		got, err := isNewEnough(fstest.MapFS{"proc/sys/kernel/osrelease": {Data: []byte(release)}})
		text := fmt.Sprint(got)
		if err != nil {
			text += " " + err.Error()
		}
		if text != want {
			t.Errorf("%q: %s, want %s", release, text, want)
		}
	}
}

func TestIdleCPU(t *testing.T) {
	n := node{machine: numa.Machine{Online: cpuset.New(0, 1, 2, 3, 4, 5), Isolated: new(cpuset.New(5))}, config: driver.Config{Reserved: cpuset.New(0, 1)}}
	claims := func(cpus ...int) []ledger.Grant {
		return []ledger.Grant{{Shares: []ledger.Share{{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(cpus...)}}}}}
	}
	holds := func(cpus ...int) []driver.Held { return []driver.Held{{CPUs: cpuset.New(cpus...)}} }
	for name, row := range map[string]struct {
		grants []ledger.Grant
		held   []driver.Held
		want   int // -1: none
	}{
		"idle":                         {nil, nil, 2},
		"granted":                      {claims(2), nil, 3},
		"held by a partition":          {nil, holds(2), 3},
		"both":                         {claims(2), holds(3), 4},
		"a reserved one":               {claims(2, 3, 4), nil, 1},
		"granted, without a partition": {claims(2, 3, 4), holds(1), 2},
		"all granted after a reboot":   {claims(0, 1, 2, 3, 4), nil, 1},
		"not all reserved":             {nil, holds(2, 3, 4), 1},
		"never the first reserved one": {nil, holds(1, 2, 3, 4, 5), -1},
		"never the last one":           {claims(1), holds(0, 1, 3, 4, 5), -1},
		"never an isolated one":        {nil, holds(1, 2, 3, 4), -1},
	} {
		got, ok := idleCPU(n, row.grants, row.held)
		if !ok {
			got = -1
		}
		if got != row.want {
			t.Errorf("%s: CPU %d, want %d", name, got, row.want)
		}
	}
}

func TestReasonOfAnInvalidPartition(t *testing.T) {
	for state, want := range map[string]string{
		"root": "", "isolated": "", "root invalid (Cpu list in cpuset.cpus not exclusive)": "Cpu list in cpuset.cpus not exclusive",
		"isolated invalid": "invalid",
	} {
		if got := invalid(state); got != want {
			t.Errorf("%q: %q, want %q", state, got, want)
		}
	}
}
