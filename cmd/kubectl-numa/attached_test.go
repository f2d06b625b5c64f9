package main

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

const selecting = "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\ndevices:\n"

// mustSlices is what slices prints for a machine and a NodeConfig.
func mustSlices(t *testing.T, machine, config string) (list []resourceapi.ResourceSlice) {
	t.Helper()
	text := mustCall(t, "slices", "--root", sample.Folder(t, machine), "--node-name", "node-1", "--config", file(t, config))
	for reader := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var slice resourceapi.ResourceSlice
		if err := reader.Decode(&slice); err != nil {
			return list
		}
		list = append(list, slice)
	}
}

func TestSlicesShowTheDevicesThatAreSelected(t *testing.T) {
	list := mustSlices(t, "dgx-h100", selecting+"  presets: [gpu, nic, vf]\n  exclude: ['0000:16:00.0']\n")
	if len(list) != 2 || len(list[0].Spec.Devices) != 2+7+10+16 || list[0].Spec.SharedCounters != nil || list[0].Spec.Pool.ResourceSliceCount != 2 {
		t.Fatalf("%d slices, the first has %d devices", len(list), len(list[0].Spec.Devices))
	}
	if counters := list[1].Spec; len(counters.Devices) != 0 || len(counters.SharedCounters) != 2 || counters.SharedCounters[0].Name != "pf-0000-0c-00-0" {
		t.Errorf("the second slice is %+v", counters)
	}
	gpu := list[0].Spec.Devices[2]
	if address := gpu.Attributes["resource.kubernetes.io/pciBusID"].StringValue; gpu.Name != "gpu-0000-2b-00-0" || address == nil || *address != "0000:2b:00.0" {
		t.Errorf("the first GPU is %+v", gpu)
	}
	if plain := mustSlices(t, "dgx-h100", selecting+"  presets: []\n"); len(plain) != 1 || len(plain[0].Spec.Devices) != 2 {
		t.Errorf("without a selection there are %d slices", len(plain))
	}
}

func TestABadSelectionIsNamedWithItsPlace(t *testing.T) {
	config := file(t, selecting+"  include:\n  - device.attributes[\"dra.numa\"].knid == \"gpu\"\n")
	exitCode, stdout, stderr := call("slices", "--root", sample.Folder(t, "no-numa"), "--node-name", "node-1", "--config", config)
	want := `devices.include[0]: line 1, column 30: no device has attribute dra.numa/knid, allowed are `
	if exitCode != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "--config \""+config) {
		t.Errorf("exit code %d, %q, %s", exitCode, stdout, stderr)
	}
}
