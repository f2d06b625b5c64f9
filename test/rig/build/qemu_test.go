package build

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/topology"
)

func TestPatchDefinesThePropertiesOfMachines(t *testing.T) {
	text, err := os.ReadFile("../topology/machines/cache.yaml")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := topology.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var set, defined []string
	for property := range strings.SplitSeq(strings.TrimPrefix(machine.CPUProperties(), ","), ",") {
		name, _, _ := strings.Cut(property, "=")
		set = append(set, name)
	}
	for _, match := range regexp.MustCompile(`(?m)^\+    DEFINE_PROP_\w+\("([^"]+)"`).FindAllSubmatch(rdtPatch, -1) {
		defined = append(defined, string(match[1]))
	}
	if !slices.Equal(set, defined) {
		t.Errorf("a machine sets %q, the patch defines %q", set, defined)
	}
}

func TestQEMUHasTheDevicesOfTopologies(t *testing.T) {
	config := map[string]string{
		"bochs-display": "BOCHS_DISPLAY", "e1000e": "E1000E_PCI_EXPRESS", "igb": "IGB_PCI_EXPRESS",
		"nvme": "NVME_PCI", "nvme-sriov": "NVME_PCI", "virtio-net-pci": "VIRTIO_NET",
	}
	for _, device := range topology.Devices {
		if line := fmt.Sprintf("\nCONFIG_%s=y\n", config[device]); !bytes.Contains(qemuDevices, []byte(line)) {
			t.Errorf("qemu/rig.mak has no line %q, for device %s", line, device)
		}
	}
}

func TestQEMUIsBuiltForMachinesWithRDT(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Source: "../../..", Log: io.Discard}
	needs := Needs{Kubernetes: DefaultKubernetes, Nodes: true, Kernel: "6.12", Init: "busybox", CRI: "containerd"}
	check := func(what string, needs Needs, want bool) {
		t.Helper()
		names, err := c.missing(needs)
		if err != nil || slices.Contains(names, "qemu") != want {
			t.Errorf("%s: missing are %q, %v; want QEMU %t", what, names, err, want)
		}
	}
	check("a machine without RDT", needs, false)
	needs.RDT = true
	check("a machine with RDT", needs, true)
	check("no machine", Needs{Kubernetes: DefaultKubernetes, RDT: true}, false)
	if err := c.once(t.Context(), "qemu", qemuThing().inputs, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	check("built before", needs, false)
	if got, want := c.missingPackages(needs), c.missingPackages(Needs{Nodes: true}); !slices.Equal(got, want) {
		t.Errorf("packages to install when QEMU is built: %q, want %q", got, want)
	}
}

func TestSourceOfQEMUIsNotTooOld(t *testing.T) {
	for archive, good := range map[string]bool{
		"qemu_10.0.13+ds.orig.tar.xz": true, "/work/qemu_10.0.20+ds.orig.tar.xz": true,
		"qemu_10.0.2+ds.orig.tar.xz": false, "qemu_11.1.3+ds.orig.tar.xz": false, "qemu_10.0.orig.tar.xz": false,
	} {
		if err := checkQEMU(archive); (err == nil) != good {
			t.Errorf("checkQEMU(%q) = %v, want success: %t", archive, err, good)
		}
	}
}

func TestOtherThingsAreMadeWhileQEMUIsBuilt(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Log: io.Discard}
	err := c.onceLocked(t.Context(), qemuLock, "qemu", "inputs", func() error {
		return c.once(t.Context(), "a", "inputs", func() error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
}
