package numa

import (
	"maps"
	"strings"
	"testing"
)

func TestWhatALibraryTellsOfGPUs(t *testing.T) {
	gpu := func(bus string) files {
		return function("pci0000:"+bus+"/0000:"+bus+":00.0", files{"class": "0x030200"})
	}
	passed := function("pci0000:04/0000:04:00.0", files{"class": "0x030200", "driver": "-> ../../../bus/pci/drivers/vfio-pci"})
	got := mustReadPCI(t, gpu("01"), gpu("02"), gpu("03"), passed, function("pci0000:05/0000:05:00.0", files{"class": "0x068000"}), files{GPUReportFile: `{"gpus": [
		{"address": "0000:01:00.0", "uuid": "GPU-1", "model": "H100", "memoryBytes": 85899345920, "computeCapability": "9.0", "mig": true, "nvlinks": ["0000:05:00.0"]},
		{"address": "0000:02:00.0", "mig": false, "nvlinks": ["0000:05:00.0"], "fault": "XID 79"},
		{"address": "0000:03:00.0", "nvlinks": ["0000:06:00.0"]},
		{"address": "0000:04:00.0", "uuid": "GPU-4", "fault": "the library lost it to VFIO"},
		{"address": "0000:05:00.0", "model": "a switch is no GPU"},
		{"address": "0000:09:00.0", "model": "gone"}]}`})
	var told []PCIFunction
	for _, f := range got {
		told = append(told, PCIFunction{
			Model: f.Model, UUID: f.UUID, MemoryBytes: f.MemoryBytes, ComputeCapability: f.ComputeCapability, MIG: f.MIG, NVLink: f.NVLink, Fault: f.Fault,
		})
	}
	sameJSON(t, "what is told", told, []PCIFunction{
		{Model: "H100", UUID: "GPU-1", MemoryBytes: new(uint64(80 << 30)), ComputeCapability: "9.0", MIG: new(true), NVLink: "0000:01:00.0"},
		{MIG: new(false), NVLink: "0000:01:00.0", Fault: "XID 79"},
		{},
		{},
		{},
	})
}

func TestAReportOfGPUsThatMakesNoSense(t *testing.T) {
	for text, why := range map[string]string{
		"{":                        "unexpected EOF",
		`{"gpus": [{"bus": "x"}]}`: `unknown field "bus"`,
		`{"gpus": [{"address": "00000000:01:00.0"}]}`:                          `"00000000:01:00.0" is not a PCI address`,
		`{"gpus": [{"address": "0000:01:00.0", "nvlinks": ["../../../etc"]}]}`: `"../../../etc" is not a PCI address`,
		strings.Repeat(" ", gpuReportBytes+1):                                  "longer than 1048576 bytes",
	} {
		f := rigFiles()
		maps.Copy(f, files{GPUReportFile: text})
		if _, err := Read(f.tree()); err == nil || !strings.Contains(err.Error(), GPUReportFile) || !strings.Contains(err.Error(), why) {
			t.Errorf("%.80s: Read error = %v, want one with %q", text, err, why)
		}
	}
}
