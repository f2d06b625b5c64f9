package numa

import (
	"maps"
	"strings"
	"testing"
)

func TestWhatDriversTellOfTheirFunctions(t *testing.T) {
	const amd = "sys/class/kfd/kfd/topology/nodes/"
	got := mustReadPCI(t,
		function("pci0000:01/0000:01:00.0", files{"class": "0x030200", "driver": "-> ../../../bus/pci/drivers/nvidia"}),
		files{"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 44\n" +
			"GPU UUID: \t GPU-5b4f1c1e-5ed9-3f1c-9d6f-0f6a8a6f7b11\nBus Location: \t 0000:01:00.0"},
		function("pci0000:02/0000:02:00.0", files{
			"class": "0x120000", "driver": "-> ../../../bus/pci/drivers/amdgpu", "mem_info_vram_total": "206158430208",
			"unique_id": "d29a3a6f4c1b7e05", "product_name": "AMD Instinct MI300X OAM",
		}),
		files{
			amd + "0/properties": "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\nlocation_id 0\ndomain 0",
			amd + "1/properties": "simd_count 1216\nlocation_id 512\ndomain 0\ngfx_target_version 90402\nunique_id 15175410498306801157\nname 0x12",
			amd + "2/properties": "gfx_target_version 90010\nlocation_id 65536\ndomain 0", // no function has this id
		},
		function("pci0000:03/0000:03:00.0", files{
			"class": "0x038000", "driver": "-> ../../../bus/pci/drivers/xe",
			"tile0/physical_vram_size_bytes": "17179869184", "tile1/physical_vram_size_bytes": "17179869184",
		}),
		function("pci0000:04/0000:04:00.0", files{
			"class": "0x010802", "nvme/nvme3/model": "SAMSUNG MZQL23T8HCLS-00A07              ", "nvme/nvme3/nvme1c3n1/size": "1",
			"nvme/nvme3/nvme3n12/size": "1", "nvme/nvme3/ng3n12/dev": "1", "nvme/nvme3/nvme3n/size": "1", "nvme/nvme3/hwmon3/name": "nvme",
		}),
		function("pci0000:05/0000:05:00.0", files{"class": "0x010802", "block/nvme0n1/size": "1"}), // Linux 3.x
		function("pci0000:06/0000:06:00.0", files{
			"class": "0x020000", "net/ens1/speed": "25000", "net/ens2/speed": "100000", "net/ens3/speed": "-1", "net/ens4/speed": "4294967295",
		}),
		function("pci0000:07/0000:07:00.0", files{"driver": "-> ../../../bus/pci/drivers/virtio-pci", "virtio1/net/ens5/speed": "10000"}),
	)
	var told []PCIFunction
	for _, f := range got {
		told = append(told, PCIFunction{
			Model: f.Model, UUID: f.UUID, Architecture: f.Architecture, MemoryBytes: f.MemoryBytes, Namespaces: f.Namespaces, LinkMbps: f.LinkMbps,
		})
	}
	sameJSON(t, "what is told", told, []PCIFunction{
		{Model: "NVIDIA H100 80GB HBM3", UUID: "GPU-5b4f1c1e-5ed9-3f1c-9d6f-0f6a8a6f7b11"},
		{Model: "AMD Instinct MI300X OAM", UUID: "d29a3a6f4c1b7e05", Architecture: "gfx942", MemoryBytes: new(uint64(192 << 30))},
		{MemoryBytes: new(uint64(32 << 30))},
		{Model: "SAMSUNG MZQL23T8HCLS-00A07", Namespaces: []string{"nvme1n1", "nvme3n12"}},
		{Namespaces: []string{"nvme0n1"}},
		{LinkMbps: new(100000)},
		{LinkMbps: new(10000)},
	})
}

func TestWhatIsWrongWithFunctions(t *testing.T) {
	const counted = "Undefined 0\nData Link Protocol 1\nSurprise Down Error 2\nPoisoned TLP 0\n"
	got := mustReadPCI(t,
		function("pci0000:01/0000:01:00.0", files{"class": "0x010802", "nvme/nvme3/state": "live", "aer_dev_fatal": counted + "TOTAL_ERR_FATAL 0"}),
		function("pci0000:02/0000:02:00.0", files{"class": "0x010802", "nvme/nvme1/state": "dead"}),
		function("pci0000:03/0000:03:00.0", files{"class": "0x020000", "aer_dev_fatal": counted + "TOTAL_ERR_FATAL 3"}),
		function("pci0000:04/0000:04:00.0", files{"class": "0x010802", "nvme/nvme2/state": "resetting"}), // it may come back
		function("pci0000:05/0000:05:00.0", files{"class": "0x060400", "aer_dev_fatal": counted + "TOTAL_ERR_FATAL 1", "aer_rootport_total_err_fatal": "2"}),
	)
	var wrong []PCIFunction
	for _, f := range got {
		wrong = append(wrong, PCIFunction{FatalErrors: f.FatalErrors, Dead: f.Dead})
	}
	sameJSON(t, "what is wrong", wrong, []PCIFunction{{}, {Dead: true}, {FatalErrors: 3}, {}, {FatalErrors: 2}})
}

// Before it is asked, the driver prints question marks for the digits.
func TestAUUIDThatNobodyKnowsIsNone(t *testing.T) {
	got := mustReadPCI(t, function("pci0000:01/0000:01:00.0", files{"driver": "-> ../../../bus/pci/drivers/nvidia"}), files{
		"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: Unknown\nGPU UUID: GPU-????????-????-????-????-????????????",
	})
	if got[0].UUID != "" {
		t.Errorf("UUID = %q", got[0].UUID)
	}
}

func TestGarbageOfADriverIsAnErrorThatNamesTheFile(t *testing.T) {
	const device = "pci0000:00/0000:00:01.0"
	for file, text := range map[string]string{
		"mem_info_vram_total": "much", "tile0/physical_vram_size_bytes": "-1", "net/ens1/speed": "fast", "tile99999/x": "",
		"aer_dev_fatal": "TOTAL_ERR_FATAL -1",
	} {
		f := rigFiles()
		maps.Copy(f, function(device, files{"class": "0x030000", file: text}))
		if _, err := Read(f.tree()); err == nil || !strings.Contains(err.Error(), device+"/"+strings.TrimSuffix(file, "/x")) {
			t.Errorf("%s %q: Read error = %v", file, text, err)
		}
	}
}
