package fake

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// addDriver adds the files in which the driver describes a function.
func (t tree) addDriver(f function) {
	switch f.Driver {
	case "nvidia":
		t.line("proc/driver/nvidia/gpus/"+f.Address+"/information",
			"Model: \t\t %s\nIRQ:   \t\t 0\nGPU UUID: \t %s\nBus Type: \t PCIe\nBus Location: \t %s", f.Model, f.UUID, f.Address)
	case "amdgpu":
		t.line(f.path+"/mem_info_vram_total", "%d", f.MemoryBytes)
		t.line(f.path+"/unique_id", "%s", f.UUID)
		t.line(f.path+"/product_name", "%s", f.Model)
	case "xe":
		t.line(f.path+"/tile0/physical_vram_size_bytes", "%d", f.MemoryBytes)
	}
	for _, child := range f.Children {
		switch path.Dir(child) {
		case "nvme":
			t.line(f.path+"/"+child+"/model", "%-40s", f.Model)
			for n := range f.Namespaces {
				t.addNamespace(f.path+"/"+child, n)
			}
		case "net":
			speed := f.LinkMbps
			if speed == 0 {
				speed = -1
			}
			t.line(f.path+"/"+child+"/speed", "%d", speed)
		}
	}
}

// addNamespace adds a block device of 3.84 TB. The number counts from 0.
func (t tree) addNamespace(controller string, number int) {
	name := fmt.Sprintf("%sn%d", path.Base(controller), number+1)
	drive, _ := strconv.Atoi(strings.TrimPrefix(path.Base(controller), "nvme"))
	minor := drive*namespaceMinor + number
	folder := controller + "/" + name
	t.line(folder+"/size", "%d", 7501476528)
	t.line(folder+"/dev", "%d:%d", blockExtMajor, minor)
	t.line(folder+"/uevent", "MAJOR=%d\nMINOR=%d\nDEVNAME=%s\nDEVTYPE=disk", blockExtMajor, minor, name)
	t.link("sys/class/block/"+name, folder)
}

const kfdFolder = "sys/class/kfd/kfd/topology/nodes"

// addKFD adds the nodes of AMD's compute driver (KFD) if it has a GPU: first the zones
// with CPUs, then the GPUs. Of the properties in include/uapi/linux/kfd_sysfs.h, a node
// has those that say what it is and where it is.
func (t tree) addKFD(l layout, functions []function) {
	var nodes []string
	add := func(format string, args ...any) { nodes = append(nodes, fmt.Sprintf(format, args...)) }
	for _, z := range l.zones {
		if z.hasCPUs {
			add("cpu_cores_count %d\nsimd_count 0\ngfx_target_version 0\nlocation_id 0\ndomain 0", z.cpus.Size())
		}
	}
	zones := len(nodes)
	for _, f := range functions {
		if f.Driver == "amdgpu" && f.GFXTarget != 0 {
			bus, devfn, _ := parseAddress(f.Address)
			add("cpu_cores_count 0\nsimd_count 4\ngfx_target_version %d\nlocation_id %d\ndomain %d", f.GFXTarget, bus&0xff<<8|devfn, bus>>8)
		}
	}
	if len(nodes) == zones {
		return
	}
	for i, properties := range nodes {
		t.line(fmt.Sprintf("%s/%d/properties", kfdFolder, i), "%s", properties)
	}
}
