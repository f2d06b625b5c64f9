package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// configFile is a NodeConfig with the text after its head.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.yaml")
	files.Write(t, path, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n"+text)
	return path
}

// configured are the options with these flags and what the file says.
func configured(t *testing.T, flags ...string) (options, error) {
	t.Helper()
	o, err := parseFlags(cli.Call{Args: flags}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	return o.withConfig(t.Context())
}

func TestNodeConfigBecomesTheDriversConfiguration(t *testing.T) {
	flags, _ := fakeMachine(t)
	path := configFile(t, "reservedCPUs: '0'\nreservedMemory: 1Mi\nexclusivity: none\ndevices: {presets: [gpu]}\n")
	// The default of the flag says nothing, so it contradicts nothing.
	o, err := configured(t, append(flags, "--config="+path, "--exclusivity=auto")...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := readNode(o)
	if err != nil {
		t.Fatal(err)
	}
	if n.config.Reserved.String() != "0" || n.config.ReservedMemory.Bytes(0, "") != 1<<20 || o.exclusivityMode != "none" || n.config.Attached.IsEmpty() {
		t.Errorf("configuration %+v, exclusivity %s", n.config, o.exclusivityMode)
	}
	o, err = configured(t, append(flags, "--config="+configFile(t, ""), "--reserved-memory=2Mi", "--exclusivity=kernel")...)
	if err != nil || o.reservedQuantity.Value() != 2<<20 || o.exclusivityMode != "kernel" || o.reservedIn != "--reserved-cpus" || !o.attached.IsEmpty() {
		t.Errorf("an empty file changes the flags to %+v, %v", o, err)
	}
}

func TestNodeConfigSaysWhoBindsDrivers(t *testing.T) {
	flags, _ := fakeMachine(t)
	for setting, want := range map[string]struct{ binds, claims bool }{
		"": {false, false}, "bindDrivers: none": {false, false}, "bindDrivers: class": {true, false}, "bindDrivers: claim": {true, true},
	} {
		o, err := configured(t, append(flags, "--config="+configFile(t, "devices: {"+setting+"}\n"))...)
		if err != nil {
			t.Fatal(err)
		}
		n, err := readNode(o)
		if err != nil {
			t.Fatal(err)
		}
		if (n.config.Drivers != nil) != want.binds || n.config.ClaimsBind != want.claims {
			t.Errorf("%q: drivers are bound by %v, for claims %t, want %+v", setting, n.config.Drivers, n.config.ClaimsBind, want)
		}
	}
}

// The NodeConfig decides for memory and for hugepages, each where it says something.
func TestKubeletReservesMemoryThatTheNodeConfigDoesNot(t *testing.T) {
	flags, _ := fakeMachine(t)
	kubelet := filepath.Join(t.TempDir(), "kubelet.yaml")
	files.Write(t, kubelet, "reservedMemory: [{numaNode: 0, limits: {memory: 3Mi, hugepages-2Mi: 6Mi}}]")
	for text, want := range map[string]struct{ memory, hugepages, free uint64 }{
		"":                        {3 << 20, 6 << 20, 12 << 20},
		"reservedMemory: 1Mi\n":   {1 << 20, 6 << 20, 12 << 20},
		"reservedHugepages: []\n": {3 << 20, 0, 12 << 20},
		"reservedHugepages: [{size: 2Mi, amount: 4Mi}]\nreservedMemory: '0'\n": {0, 4 << 20, 12 << 20},
		"reservedNodeMemory: [{numaNodes: '0', amount: 2Mi}]\n":                {5 << 20, 6 << 20, 12 << 20},
		"exclude: {memoryOf: '0', zones: [numa-7]}\n":                          {1 << 60, 1 << 60, 12 << 20},
	} {
		o, err := configured(t, append(flags, "--config="+configFile(t, text), "--kubelet-config="+kubelet)...)
		if err != nil {
			t.Fatal(err)
		}
		n, err := readNode(o)
		if err != nil {
			t.Fatal(err)
		}
		reserved := n.config.ReservedMemory
		if reserved.Bytes(0, "") != want.memory || reserved.Bytes(0, "2Mi") != want.hugepages {
			t.Errorf("%q: reserved are %+v, want %+v", text, reserved, want)
		}
		now, err := n.config.Hugepages(cpuset.New(0), nil)
		if err != nil || now.Total[0]["2Mi"] != 16<<20 || now.Free[0]["2Mi"] != want.free {
			t.Errorf("%q: hugepages %+v, %v", text, now, err)
		}
	}
}

func TestNonsenseInANodeConfigIsOneUsageLine(t *testing.T) {
	valid, _ := fakeMachine(t)
	for text, row := range map[string]struct{ flag, want string }{
		"reservedCPUs: 0-9-1\n":                                 {"", `reservedCPUs: cpulist "0-9-1"`},
		"reservedCPUs: '7'\n":                                   {"", `reservedCPUs: reserved CPUs "7": the machine has no CPUs 7, allowed are 0-1`},
		"reservedCPUs: '0'\n":                                   {"--reserved-cpus=0", "reservedCPUs: set --reserved-cpus or this, not both"},
		"reservedMemory: 1Mi\n":                                 {"--reserved-memory=1Mi", "reservedMemory: set --reserved-memory or this, not both"},
		"reservedMemory: '0'\n":                                 {"--reserved-memory=0", "reservedMemory: set --reserved-memory or this, not both"},
		"exclude: {memoryOf: '7'}\n":                            {"", "exclude.memoryOf: the machine has no NUMA node 7"},
		"reservedNodeMemory: [{numaNodes: '7', amount: 1Gi}]\n": {"", "reservedNodeMemory[0].numaNodes: the machine has no NUMA node 7"},
		"reservedHugepages: [{size: 4Mi, amount: 32Mi}]\n":      {"", "reservedHugepages[0].size: the kernel has no hugepages of 4Mi, allowed are 2Mi"},
		"exclusivity: none\n":                                   {"--exclusivity=kernel", "exclusivity: set --exclusivity or this, not both"},
		"exclusivity: cooperative\n":                            {"--nri-socket=", "--exclusivity=cooperative: needs --nri-socket, which is empty"},
		"exclusivity: some\n":                                   {"", `exclusivity: "some", allowed are auto, kernel, cooperative, none`},
		"zoneBy: die\n":                                         {"", `zoneBy: "die", allowed are numa, l3, socket, coreType, machine`},
		"zones: l3\n":                                           {"", `unknown field "zones", allowed are apiVersion, kind, reservedCPUs, reservedMemory, reservedHugepages, reservedNodeMemory, exclude, exclusivity, cpuQuota, zoneBy, zoneOrder, groups, accounting, otherCPUDrivers, otherMemoryDrivers, numaNodeKeys, numaNodeLists, publishing, devices.presets, devices.include, devices.exclude, devices.bindDrivers, cache, performance, profiles`},
		"devices: {presets: [tpu]}\n":                           {"", `devices.presets[0]: "tpu", allowed are gpu, nic, nvme, vf, vfio`},
		"devices: {include: ['device.driver == gpu']}\n":        {"", "devices.include[0]: line 1, column 18: undeclared reference to 'gpu'"},
	} {
		flags := append(valid[:len(valid):len(valid)], "--config="+configFile(t, text))
		if row.flag != "" {
			flags = append(flags, row.flag)
		}
		expectUsage(t, `--config "`, row.want, flags...)
	}
	for flag, want := range map[string]string{
		"--config=/no/such": "--config: open /no/such",
	} {
		expectUsage(t, "", want, append(valid[:len(valid):len(valid)], "--config="+configFile(t, ""), flag)...)
	}
}

// apiServer has the node, and counts how often it is asked.
func apiServer(t *testing.T, labels map[string]string) (kubeconfig string, asked *int) {
	t.Helper()
	asked = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/nodes/node-1" || labels == nil {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Message: "not for you", Code: http.StatusForbidden})
			return
		}
		_ = json.NewEncoder(w).Encode(corev1.Node{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: labels},
		})
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: '%s'}}]}", server.URL)
	files.Write(t, kubeconfig, text)
	return kubeconfig, asked
}

func TestProfilesAreChosenByTheLabelsOfTheNode(t *testing.T) {
	flags, _ := fakeMachine(t)
	const profiles = "reservedMemory: 1Mi\nprofiles:\n- nodeSelector: {pool: batch}\n  reservedMemory: 2Mi\n"
	for name, row := range map[string]struct {
		text   string
		labels map[string]string
		want   string
		asks   int
		err    string
	}{
		"no profiles":  {"reservedMemory: 1Mi\n", map[string]string{"pool": "batch"}, "1Mi", 0, ""},
		"other labels": {profiles, map[string]string{"pool": "web"}, "1Mi", 1, ""},
		"its labels":   {profiles, map[string]string{"pool": "batch", "a": "b"}, "2Mi", 1, ""},
		"bad devices": {
			profiles + "  devices: {include: ['device.driver == gpu']}\n",
			map[string]string{"pool": "batch"},
			"<nil>", 1, `": profiles[0].devices.include[0]: line 1, column 18: undeclared reference to 'gpu'`,
		},
		"of others":      {profiles + "  devices: {include: ['device.driver == gpu']}\n", map[string]string{"pool": "web"}, "1Mi", 1, ""},
		"may not see it": {profiles, nil, "<nil>", 1, "has profiles: read labels of node node-1: not for you"},
	} {
		kubeconfig, asked := apiServer(t, row.labels)
		o, err := configured(t, append(flags, "--config="+configFile(t, row.text), "--kubeconfig="+kubeconfig)...)
		if got := o.reservedQuantity.String(); got != row.want || *asked != row.asks {
			t.Errorf("%s: reserved memory %s after %d questions, want %s after %d", name, got, *asked, row.want, row.asks)
		}
		if row.err == "" && err != nil || row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)) {
			t.Errorf("%s: error %v, want %q", name, err, row.err)
		}
	}
}

func TestCPUQuotasAreLiftedUnlessTheConfigSaysKeep(t *testing.T) {
	flags, _ := fakeMachine(t)
	for text, want := range map[string]bool{"": true, "cpuQuota: lift\n": true, "cpuQuota: keep\n": false} {
		args := flags[:len(flags):len(flags)]
		if text != "" {
			args = append(args, "--config="+configFile(t, text))
		}
		o, err := configured(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		n, err := readNode(o)
		if err != nil || n.config.Hook.LiftQuota != want {
			t.Errorf("%q: hook %+v (%v), want it to lift quotas: %t", text, n.config.Hook, err, want)
		}
	}
}
