package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// demoFolder has a node with the PCI functions of a machine, all classes, and copies of
// the demo's pod with different names.
func demoFolder(t *testing.T, machine, demo string, pods ...string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}
	write("node.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: worker-1}\nstatus: {allocatable: {cpu: 1000, memory: 1000Gi, pods: 110}}\n")
	config := file(t, selecting+"  presets: ["+strings.Join(deviceclasses.Presets(), ", ")+"]\n")
	write("slices.yaml", mustCall(t, "slices", "--root", machine, "--node-name", "worker-1", "--config", config))
	classes, err := filepath.Glob("../../deviceclasses/*.yaml")
	if err != nil || len(classes) == 0 {
		t.Fatal(classes, err)
	}
	for _, class := range classes {
		write(filepath.Base(class), testfiles.Read(t, class))
	}
	template, pod, _ := strings.Cut(testfiles.Read(t, "../../demo/devices/"+demo+".yaml"), "\n---\n")
	write("template.yaml", template)
	for _, name := range pods {
		write("pod-"+name+".yaml", strings.Replace(pod, "name: "+demo+"\n", "name: "+name+"\n", 1))
	}
	return dir
}

// twoRoots has a drive under each of two root complexes, and a card under the second.
func twoRoots(t *testing.T) string {
	t.Helper()
	presets := fake.Presets()
	machine := presets[0].Machine // the rig's
	port := func(address string, zone int) *fake.Function {
		return &fake.Function{Address: address, Zone: zone, Class: 0x060400, Vendor: 0x8086, Device: 0x347a, Driver: "pcieport", SpeedGTps: 16, Width: 16}
	}
	add := func(function fake.Function, above *fake.Function) {
		function.Port = above
		machine.PCI = append(machine.PCI, function)
	}
	add(fake.NVMe("0001:11:00.0", 0, 0), port("0001:10:01.0", 0))
	add(fake.NVMe("0001:21:00.0", 2, 1), port("0001:20:01.0", 2))
	add(fake.ConnectX("0001:22:00.0", 2, "ens22", 0, 0), port("0001:20:02.0", 2))
	dir := t.TempDir()
	if err := machine.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fourCards has a card with two virtual functions on each of four NUMA nodes.
func fourCards(t *testing.T) string {
	t.Helper()
	machine := fake.Presets()[0].Machine // the rig's
	for i := range 4 {
		machine.PCI = append(machine.PCI, fake.ConnectX(fmt.Sprintf("0001:%d1:00.0", i+1), i, fmt.Sprintf("ens%d1", i+1), i, 2))
	}
	dir := t.TempDir()
	if err := machine.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// crowd is pods that leave fewer than 8 of 32 CPUs in each of the zones.
func crowd(zones ...int) (manifests string) {
	for _, zone := range zones {
		manifests += strings.ReplaceAll(`---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a-crowd-ZONE}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 26}}, selectors: [
  {cel: {expression: 'device.attributes["resource.kubernetes.io"].numaNode == ZONE'}}]}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: a-crowd-ZONE}
spec: {resourceClaims: [{name: cpus, resourceClaimName: a-crowd-ZONE}], containers: [{name: main, resources: {claims: [{name: cpus}]}}]}
`, "ZONE", strconv.Itoa(zone))
	}
	return manifests
}

// Every template of demo/devices does what its first line says. The GPUs of the machine
// are on NUMA nodes 2, 0 and 7; each socket has four NUMA nodes.
func TestDemosWithDevicesAreAligned(t *testing.T) {
	covered := map[string]bool{}
	for _, row := range []struct {
		name, demo, machine, crowd string
		pods, want                 []string
	}{
		{"GPU", "gpu-near", sample.Folder(t, "epyc-2s-nps4"), "", []string{"p", "q", "r"}, []string{
			"p zone numa-0", "p gpu gpu-0000-25-00-0", "q zone numa-2", "q gpu gpu-0000-01-00-0", "r zone numa-7", "r gpu gpu-0000-81-00-0",
		}},
		{"drive and card", "drive-card", twoRoots(t), "", []string{"p"}, []string{
			"p zone numa-2", "p drive nvme-0001-21-00-0", "p card nic-0001-22-00-0",
		}},
		{
			"room at the GPU",
			"gpu-nearest",
			sample.Folder(t, "epyc-2s-nps4"),
			"",
			[]string{"p"},
			[]string{"p zone/same-node numa-0", "p gpu gpu-0000-25-00-0"},
		},
		{"room on its socket, once", "gpu-nearest", sample.Folder(t, "epyc-2s-nps4"), crowd(0, 1, 2, 3, 4, 6, 7), []string{"p", "q"}, []string{
			"p zone/same-socket numa-5", "p gpu gpu-0000-81-00-0", "q zone/anywhere numa-5", "q gpu gpu-0000-01-00-0",
		}},
		{"cards of their own", "four-vfs", fourCards(t), "", []string{"p", "q"}, []string{
			"p zone numa-0", "p vf nic-0001-11-00-1", "p vf nic-0001-21-00-1", "p vf nic-0001-31-00-1", "p vf nic-0001-41-00-1",
			"q zone numa-1", "q vf nic-0001-11-00-2", "q vf nic-0001-21-00-2", "q vf nic-0001-31-00-2", "q vf nic-0001-41-00-2",
		}},
		{"nothing in common", "apart", twoRoots(t), "", []string{""}, []string{
			"apart-0 zone numa-0", "apart-0 drive nvme-0001-11-00-0", "apart-1 zone numa-2", "apart-1 drive nvme-0001-21-00-0",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			covered[row.demo+".yaml"] = true
			dir := demoFolder(t, row.machine, row.demo, row.pods...)
			testfiles.Write(t, filepath.Join(dir, "crowd.yaml"), row.crowd)
			wantPlaced(t, dir, row.want)
		})
	}
	files, err := os.ReadDir("../../demo/devices")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !covered[file.Name()] {
			t.Errorf("demo/devices/%s is not tried", file.Name())
		}
	}
}

// wantPlaced compares what simulate says of the pods in a folder, but for a crowd: pod,
// request and device.
func wantPlaced(t *testing.T, dir string, want []string) {
	t.Helper()
	stdout := mustCall(t, "simulate", "-f", dir)
	var got []string
	for line := range strings.Lines(stdout) {
		pod, isPod := strings.CutPrefix(line, "default/")
		if columns := strings.Fields(pod); isPod && !strings.HasPrefix(pod, "a-crowd-") {
			got = append(got, columns[0]+" "+columns[3]+" "+filepath.Base(columns[4]))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, stdout)
	}
}

// Each workload of docs/workloads.md is a manifest that its node has room for.
func TestWorkloadsOfDemoArePlaced(t *testing.T) {
	const config = "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n"
	const withDevices = config + "devices: {presets: [gpu, nic, vf]}\nperformance: {allow: class}\n"
	covered := map[string]bool{}
	for _, row := range []struct {
		file, preset, config string
		want                 []string
	}{
		{"ai-training.yaml", "dgx-h100", withDevices, []string{
			"train zone numa-0", "train gpu gpu-0000-16-00-0", "train nic nic-0000-18-00-0",
		}},
		{"ai-inference.yaml", "intel-2s", config, []string{"serve-0 zone numa-0", "serve-1 zone numa-0"}},
		{"telco.yaml", "intel-2s", withDevices, []string{"dataplane zone numa-0", "dataplane vf nic-0000-3b-00-2"}},
		{"database.yaml", "intel-2s", config, []string{"database-0 zone numa-1"}},
		{"hpc.yaml", "epyc-2s-nps4", config + "zoneBy: l3\n", []string{
			"rank-0 cache l3-1", "rank-0 memory numa-0", "rank-1 cache l3-2", "rank-1 memory numa-1",
		}},
		{"vm.yaml", "intel-2s", config, []string{"guest zone numa-0"}},
		{"latency.yaml", "intel-2s", config + "performance: {allow: claim}\ncache: {os: {ways: 1}, besteffort: {ways: 8}}\n", []string{
			"control zone numa-0", "control cache cache-0-besteffort",
		}},
	} {
		t.Run(row.file, func(t *testing.T) {
			covered[row.file] = true
			dir := t.TempDir()
			write := func(name, text string) { testfiles.Write(t, filepath.Join(dir, name), text) }
			write("node.yaml", "{apiVersion: v1, kind: Node, metadata: {name: worker}, status: {allocatable: {cpu: 90, memory: 700Gi, hugepages-1Gi: 32Gi, pods: 110}}}\n")
			write("slices.yaml", mustCall(t, "slices", "--preset", row.preset, "--node-name", "worker", "--config", file(t, row.config)))
			write("classes.yaml", mustCall(t, "generate", "classes"))
			write(row.file, testfiles.Read(t, "../../demo/workloads/"+row.file))
			if exitCode, stdout, stderr := call("lint", "-f", dir); exitCode != exitDone || stdout != "" {
				t.Errorf("lint: exit code %d, %s%s", exitCode, stdout, stderr)
			}
			wantPlaced(t, dir, row.want)
		})
	}
	manifests, err := filepath.Glob("../../demo/workloads/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range manifests {
		if !covered[filepath.Base(manifest)] {
			t.Errorf("%s is not tried", manifest)
		}
	}
}

// Users copy these manifests, and the image of each is one that their nodes can pull.
func TestDemosDrawNoWarning(t *testing.T) {
	folders := []string{"../../demo", "../../demo/containers", "../../demo/devices", "../../demo/cache", "../../demo/workloads"}
	for _, folder := range folders {
		if exitCode, stdout, stderr := call("lint", "-f", folder); exitCode != exitDone || stdout != "" {
			t.Errorf("%s: exit code %d, %s%s", folder, exitCode, stdout, stderr)
		}
		manifests, err := filepath.Glob(folder + "/*.yaml")
		if err != nil || len(manifests) == 0 {
			t.Fatal(folder, err)
		}
		for _, manifest := range manifests {
			for line := range strings.Lines(testfiles.Read(t, manifest)) {
				if _, image, is := strings.Cut(strings.TrimSpace(line), "image: "); is && image != "docker.io/library/busybox:1.37" {
					t.Errorf("%s has the image %s", manifest, image)
				}
			}
		}
	}
}
