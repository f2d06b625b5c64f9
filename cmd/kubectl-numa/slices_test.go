package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// list is a v1 List of slices.
type list struct {
	APIVersion, Kind string
	Items            []resourceapi.ResourceSlice
}

func TestSlicesAreWhatTheDriverPublishes(t *testing.T) {
	dir := sample.Folder(t, "rig")
	config := file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nreservedCPUs: 4-7\nreservedMemory: 100Mi\n"+
		"reservedHugepages: [{numaNodes: '0', size: 2Mi, amount: 8Mi}]\n")
	args := []string{"slices", "--root", dir, "--node-name", "node-1", "--config", config, "--exclusivity", "none"}
	text := mustCall(t, args...)
	var slice resourceapi.ResourceSlice
	if err := yaml.UnmarshalStrict([]byte(text), &slice); err != nil {
		t.Fatal(err)
	}
	spec := slice.Spec
	if slice.APIVersion != "resource.k8s.io/v1" || slice.Kind != "ResourceSlice" || slice.GenerateName != "0-dra.numa-node-1-" ||
		spec.Driver != driver.Name || *spec.NodeName != "node-1" || spec.Pool != (resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1}) {
		t.Errorf("slice\n%s", text)
	}
	if strings.Contains(text, "null") || strings.Contains(text, "status") {
		t.Errorf("noise in\n%s", text)
	}
	var names []string
	for _, device := range spec.Devices {
		names = append(names, device.Name)
		if exclusivity := device.Attributes["exclusivity"].StringValue; exclusivity == nil || *exclusivity != "none" {
			t.Errorf("device %s: exclusivity %v", device.Name, exclusivity)
		}
	}
	if want := []string{"numa-0", "numa-2", "numa-3", "numa-1"}; !cmp.Equal(names, want) { // claims get no CPUs of the last one
		t.Fatalf("devices %v, want %v", names, want)
	}
	if _, ok := spec.Devices[3].Capacity["cpu"]; ok {
		t.Error("the reserved CPUs are published")
	}
	cpu, reserved := spec.Devices[0].Capacity["cpu"].Value, spec.Devices[0].Capacity["memory"].Value
	if cpu.Value() != 4 {
		t.Errorf("CPUs of numa-0: %s, want 4", cpu.String())
	}
	if zero, one := spec.Devices[0].Capacity["hugepages2Mi"].Value, spec.Devices[3].Capacity["hugepages2Mi"].Value; zero.String() != "24Mi" || one.String() != "32Mi" {
		t.Errorf("hugepages of numa-0 %s and of numa-1 %s, want 24Mi and 32Mi", &zero, &one)
	}
	if err := yaml.UnmarshalStrict([]byte(mustCall(t, args[:5]...)), &slice); err != nil {
		t.Fatal(err)
	}
	all := slice.Spec.Devices[0].Capacity["memory"].Value
	if all.Value()-reserved.Value() != 100<<20 {
		t.Errorf("memory of numa-0: %s with 100Mi reserved, %s without", reserved.String(), all.String())
	}
	var same resourceapi.ResourceSlice
	if err := json.Unmarshal([]byte(mustCall(t, append(args[:5:5], "-o", "json")...)), &same); err != nil || !cmp.Equal(slice, same) {
		t.Errorf("json is of another slice: %v\n%s", err, cmp.Diff(slice, same))
	}
}

// The labels select what is reserved, and the exclusivity.
func TestSlicesOfAProfile(t *testing.T) {
	config := file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nexclusivity: auto\nprofiles:\n"+
		"- {nodeSelector: {pool: batch}, reservedCPUs: 0-3, exclusivity: cooperative}\n")
	args := []string{"slices", "--root", sample.Folder(t, "rig"), "--node-name", "node-1", "--config", config}
	for labels, want := range map[string]string{"pool=web": "2 kernel", "pool=batch,size=large": "0 cooperative"} {
		var slice resourceapi.ResourceSlice
		if err := yaml.UnmarshalStrict([]byte(mustCall(t, append(args, "--node-labels", labels)...)), &slice); err != nil {
			t.Fatal(err)
		}
		device := slice.Spec.Devices[slices.IndexFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return d.Name == "numa-0" })]
		cpu := device.Capacity["cpu"].Value
		if got := fmt.Sprintf("%d %s", cpu.Value(), *device.Attributes["exclusivity"].StringValue); device.Name != "numa-0" || got != want {
			t.Errorf("%s with labels %s: %s, want numa-0 with %s", device.Name, labels, got, want)
		}
	}
}

// No cluster is asked whether it has lists.
func TestSlicesHaveListsOnlyIfAsked(t *testing.T) {
	const list = "resource.kubernetes.io/numaNode:\n        ints:\n        - 0\n        - 1\n"
	for name, row := range map[string]struct {
		config string
		flags  []string
		want   bool
	}{
		"by default":  {"zoneBy: socket", nil, false},
		"asked":       {"zoneBy: socket", []string{"--numa-node-lists"}, true},
		"never":       {"zoneBy: socket\nnumaNodeLists: never", []string{"--numa-node-lists"}, false},
		"by one node": {"zoneBy: numa", []string{"--numa-node-lists"}, false},
	} {
		args := []string{"slices", "--root", sample.Folder(t, "epyc-2s-nps4"), "--node-name", "n", "--config", file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n"+row.config+"\n")}
		if text := mustCall(t, append(args, row.flags...)...); strings.Contains(text, list) != row.want {
			t.Errorf("%s: a list: %t in\n%s", name, !row.want, text)
		}
	}
}

// Caches that cannot be divided are missing, and a note says why.
func TestSlicesOfANodeThatDividesItsCaches(t *testing.T) {
	config := func(more string) string {
		return file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\ncache: {os: {ways: 1}, guaranteed: {ways: 10}}\n"+more)
	}
	for name, row := range map[string]struct{ preset, config, device, note string }{
		"divided":        {"intel-2s", config(""), "name: cache-1-guaranteed", ""},
		"by l3":          {"epyc-2s-nps1", config("zoneBy: l3\n"), "name: cache-15-guaranteed", ""},
		"several caches": {"epyc-2s-nps1", config(""), "", "want each zone in one level-3 cache; set zoneBy to l3"},
		"no resctrl":     {"rig", config(""), "", "caches are not published: the kernel does not divide level-3 caches, or resctrl is not mounted"},
	} {
		exitCode, stdout, stderr := call("slices", "--root", sample.Folder(t, row.preset), "--node-name", "n", "--config", row.config)
		if exitCode != exitDone || !strings.Contains(stdout, row.device) || (row.device == "") == strings.Contains(stdout, "cache-") {
			t.Errorf("%s: exit code %d, slices\n%s", name, exitCode, stdout)
		}
		if (row.note == "") != (stderr == "") || !strings.Contains(stderr, row.note) {
			t.Errorf("%s: note %q, want %q", name, stderr, row.note)
		}
	}
}

// The error names the profile with the wrong setting.
func TestRefusedProfileIsNamed(t *testing.T) {
	root := sample.Folder(t, "rig")
	for text, want := range map[string]string{
		"devices: {include: [gpu]}": "profiles[1].devices.include[0]: line 1, column 1: undeclared reference to 'gpu'",
		"reservedCPUs: '99'":        `profiles[1].reservedCPUs: reserved CPUs "99": the machine has no CPUs 99`,
		"reservedHugepages: [{numaNodes: '1', size: 2Mi, amount: 64Mi}]": "profiles[1].reservedHugepages: NUMA node 1 has 32Mi of hugepages 2Mi, reserved are 64Mi",
		"exclude: {zones: [numa-9]}":                                     `profiles[1].exclude.zones[0]: the machine has no zone "numa-9", allowed are numa-0, numa-1`,
		"reservedNodeMemory: [{numaNodes: '9', amount: 1Gi}]":            "profiles[1].reservedNodeMemory[0].numaNodes: the machine has no NUMA node 9",
		"devices: {presets: [tpu]}":                                      `profiles[1].devices.presets[0]: "tpu", allowed are gpu`,
		"devices: {include: ['1 == 1']}":                                 "",
	} {
		config := file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nprofiles:\n- {nodeSelector: {a: b}}\n- {nodeSelector: {pool: batch}, "+text+"}\n")
		_, _, stderr := call("slices", "--root", root, "--node-name", "n", "--config", config, "--node-labels", "pool=batch")
		if !strings.Contains(stderr, want) || want == "" && stderr != "" {
			t.Errorf("%s: error %q, want %q", text, stderr, want)
		}
	}
}

// All commands name the zones that zoneBy makes of a machine.
func TestZonesAreTheSameInSlicesStatusAndSimulate(t *testing.T) {
	for by, device := range map[string]string{"numa": "numa-1", "socket": "socket-1", "machine": "machine", "l3": "l3-1"} {
		config := file(t, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nzoneBy: "+by+"\n")
		asked := map[string]string{"numa": "cpu: 32", "socket": "cpu: 128", "machine": "cpu: 200", "l3": "cpu: 16"}[by]
		dir := clusterFolder(t, asked)
		slices := mustCall(t, "slices", "--root", sample.Folder(t, "epyc-2s-nps4"), "--node-name", "worker-1", "--config", config)
		testfiles.Write(t, filepath.Join(dir, "slices.yml"), slices)
		status := mustCall(t, "status", "-f", dir)
		if !strings.Contains(status, "cpu 254 of 254 free") {
			t.Errorf("zoneBy %s: status does not sum up all CPUs\n%s", by, status)
		}
		if by != "numa" && !strings.Contains(status, device) {
			t.Errorf("zoneBy %s: status does not name %s\n%s", by, device, status)
		}
		if placed := mustCall(t, "simulate", "-f", dir); !strings.Contains(placed, "dra.numa/worker-1/"+device+" ") {
			t.Errorf("zoneBy %s: %s is not of %s\n%s", by, asked, device, placed)
		}
	}
}

// There are more devices than fit into one slice.
func TestSeveralSlices(t *testing.T) {
	devices := make([]resourceapi.Device, 2*resourceapi.ResourceSliceMaxDevices+1)
	slices := resourceSlices("n", devices)
	var stdout bytes.Buffer
	if err := newPrinter(formatJSON).print(&stdout, objects("slices", slices)); err != nil {
		t.Fatal(err)
	}
	var got list
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || got.APIVersion != "v1" || got.Kind != "List" || len(got.Items) != 3 {
		t.Fatalf("%v: list of %d\n%.300s", err, len(got.Items), stdout.String())
	}
	if got.Items[2].GenerateName != "2-dra.numa-n-" || got.Items[2].Spec.Pool.ResourceSliceCount != 3 || len(got.Items[2].Spec.Devices) != 1 {
		t.Errorf("last slice %+v", got.Items[2])
	}
	stdout.Reset()
	if err := newPrinter(formatYAML).print(&stdout, objects("slices", slices)); err != nil {
		t.Fatal(err)
	}
	if documents := strings.Split(stdout.String(), "\n---\n"); len(documents) != 3 || !strings.HasPrefix(documents[0], "apiVersion: ") {
		t.Errorf("%d documents", len(documents))
	}
}
