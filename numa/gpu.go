package numa

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// gpuMemory reads the memory of a GPU: mem_info_vram_total of amdgpu,
// Documentation/gpu/amdgpu/driver-misc.rst, and physical_vram_size_bytes of each tile
// of xe. No file has the memory of an NVIDIA GPU.
func (t tree) gpuMemory(folder string, f *PCIFunction) (err error) {
	if f.Kind != GPUFunction {
		return nil
	}
	if f.MemoryBytes, err = t.positive(folder + "/mem_info_vram_total"); err != nil || f.MemoryBytes != nil {
		return err
	}
	tiles, err := t.numbered(folder, "tile")
	for tile := range tiles.All() {
		bytes, err := t.positive(fmt.Sprintf("%s/tile%d/physical_vram_size_bytes", folder, tile))
		if err != nil {
			return err
		}
		if bytes != nil {
			if f.MemoryBytes == nil {
				f.MemoryBytes = new(uint64)
			}
			*f.MemoryBytes += *bytes
		}
	}
	return err
}

// nvidiaGPU reads what NVIDIA's driver says about a GPU under /proc, without NVIDIA's
// library: lines such as "Model: NVIDIA H100 80GB HBM3".
func (t tree) nvidiaGPU(_ string, f *PCIFunction) error {
	if f.Driver != "nvidia" {
		return nil
	}
	text, _, err := t.text("proc/driver/nvidia/gpus/" + f.Address + "/information")
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Model":
			f.Model = value
		case "GPU UUID":
			if !strings.Contains(value, "?") { // a "?" means that the driver has not asked the GPU yet
				f.UUID = value
			}
		}
	}
	return err
}

// amdGPU reads the unique id and the product name that amdgpu shows for a GPU.
func (t tree) amdGPU(folder string, f *PCIFunction) error {
	if f.Driver != "amdgpu" {
		return nil
	}
	var err error
	if f.UUID, _, err = t.text(folder + "/unique_id"); err != nil {
		return err
	}
	f.Model, _, err = t.text(folder + "/product_name")
	return err
}

const kfdFolder = "sys/class/kfd/kfd/topology/nodes"

// gpuArchitectures sets the architecture of each GPU that AMD's compute driver (KFD)
// lists. The nodes of this driver are CPUs, and GPUs or parts of them.
func (t tree) gpuArchitectures(functions []PCIFunction) error {
	nodes, err := t.numbered(kfdFolder, "")
	if err != nil {
		return err
	}
	for node := range nodes.All() {
		properties, _, err := parseFile(t, fmt.Sprintf("%s/%d/properties", kfdFolder, node), parseProperties)
		if err != nil {
			return err
		}
		target, location := properties["gfx_target_version"], properties["location_id"]
		if target == 0 || properties["domain"] > 1<<32-1 || location > 1<<16-1 {
			continue // a CPU node, or numbers that are not a PCI address
		}
		address := pciAddress{uint32(properties["domain"]), uint8(location >> 8), uint8(location >> 3 & 31), uint8(location & 7)}
		i := slices.IndexFunc(functions, func(f PCIFunction) bool { return f.Address == address.String() })
		if i >= 0 { // all parts of one GPU have the same architecture
			functions[i].Architecture = fmt.Sprintf("gfx%d%x%x", target/10000, target/100%100, target%100)
		}
	}
	return nil
}

// parseProperties reads lines of a name and a decimal number. It skips lines with any
// other value.
func parseProperties(text string) (map[string]uint64, error) {
	properties := map[string]uint64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.ParseUint(value, 10, 64); err == nil {
			properties[name] = number
		}
	}
	return properties, nil
}
