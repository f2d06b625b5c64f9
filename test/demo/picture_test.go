package main

import (
	"fmt"
	"io"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// draw draws what claims hold as `kubectl numa status -o svg` does. The flag -update rewrites
// the picture.
func draw(t *testing.T, name string, c *occupied.Cluster) {
	t.Helper()
	cluster := holdings.Of(&c.Snapshot)
	files.Golden(t, "../../docs/"+name, files.Render(t, func(w io.Writer) error { return chart.SVG(w, cluster) }))
}

// TestPictureOfTheDemo draws the claims of the demo's pods on the demo's node.
func TestPictureOfTheDemo(t *testing.T) {
	const node = "numa-node-0"
	c := occupied.New(t)
	c.AddMachine(node, "rig", nil)
	for _, held := range []struct {
		pod, claim, device, amounts, cpus, mems string
	}{
		{"huge", "huge-zone-4d74q", "numa-0", "cpu=2,memory=64Mi,hugepages2Mi=4Mi", "2-3", "0"},
		{"alpha", "alpha-zone-x7k2p", "numa-1", "cpu=4,memory=256Mi", "4-7", "1"},
		{"beta", "beta-zone-9bqws", "numa-2", "cpu=2,memory=128Mi", "8-9", "2"},
	} {
		c.AddClaim("numa-demo/"+held.claim, occupied.Share{
			Request: "zone", Node: node, Device: held.device, Amounts: held.amounts, CPUs: &held.cpus, Mems: held.mems,
		})
		c.AddPod("numa-demo/"+held.pod, node, held.claim)
	}
	c.AddPod("numa-demo/plain", node)
	draw(t, "status.svg", c)
}

// TestPictureOfTheReadme draws jobs of a DGX H100, each with a GPU, the network card under the
// same PCIe switch, and CPUs and memory of their NUMA node.
func TestPictureOfTheReadme(t *testing.T) {
	const node = "dgx-h100"
	machine := sample.Machine(t, node)
	reserved, err := driver.Reserved(machine, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	selection, err := attached.NewSelection(deviceclasses.DeviceSelection{Include: []string{
		`device.attributes["dra.numa"].vendorID == "10de"`,
		`device.attributes["dra.numa"].kind == "nic" && device.attributes["dra.numa"].deviceID == "1021"`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := occupied.New(t)
	c.AddNode(node)
	config := driver.Config{NodeName: node, Reserved: reserved, Exclusivity: driver.ExclusivityKernel, Attached: selection}
	c.AddSlice(node, driver.Name, driver.Devices(machine, config, nil)...)
	for _, job := range []struct {
		namespace, pod string
		gpu, nic       string // number of their bus
		zone, first    int    // first of 12 cores, whose second threads are 112 CPUs later
	}{
		{"ai", "train-0", "16", "18", 0, 2},
		{"ai", "train-1", "2b", "2d", 0, 14},
		{"ai", "train-2", "3b", "3d", 0, 26},
		{"ai", "train-3", "98", "9a", 1, 56},
		{"llm", "serve", "d8", "da", 1, 92},
	} {
		cpus := fmt.Sprintf("%d-%d,%d-%d", job.first, job.first+11, job.first+112, job.first+123)
		function := func(bus string) string { return "0000-" + bus + "-00-0" }
		c.AddClaim(job.namespace+"/"+job.pod+"-near",
			occupied.Share{Request: "cpus", Node: node, Device: fmt.Sprintf("numa-%d", job.zone), Amounts: "cpu=24,memory=200Gi", CPUs: &cpus, Mems: fmt.Sprint(job.zone)},
			occupied.Share{Request: "gpu", Node: node, Device: "gpu-" + function(job.gpu)},
			occupied.Share{Request: "nic", Node: node, Device: "nic-" + function(job.nic)})
		c.AddPod(job.namespace+"/"+job.pod, node, job.pod+"-near")
	}
	draw(t, "dgx.svg", c)
}
