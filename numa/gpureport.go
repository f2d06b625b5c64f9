package numa

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// GPUReportFile is where numa-nvml writes a [GPUReport], below the root of a machine.
const GPUReportFile = "run/dra-numa/gpus.json"

// gpuReportBytes limits the size of the report. A GPU takes about 400 bytes of it.
const gpuReportBytes = 1 << 20

// GPUReport holds what NVIDIA's library says about the GPUs of a machine and no kernel
// file does.
type GPUReport struct {
	GPUs []ReportedGPU `json:"gpus"`
}

// ReportedGPU is one GPU of a report. An empty field means unknown.
type ReportedGPU struct {
	Address           string     `json:"address"` // as the kernel prints it
	UUID              string     `json:"uuid,omitempty"`
	Model             string     `json:"model,omitempty"`
	MemoryBytes       *uint64    `json:"memoryBytes,omitempty"`
	ComputeCapability string     `json:"computeCapability,omitempty"` // such as 9.0
	MIG               *bool      `json:"mig,omitempty"`               // whether MIG mode is on now; nil if the GPU has no MIG
	NVLinks           []string   `json:"nvlinks,omitempty"`           // addresses of the GPUs and switches that its NVLinks lead to
	CPUs              cpuset.Set `json:"cpus,omitzero"`               // CPUs near the GPU
	Fault             string     `json:"fault,omitempty"`             // why it must not be used
}

// readGPUReport adds the facts of the report to the GPUs that were read.
func (t tree) readGPUReport(m *Machine) error {
	text, err := t.limited(GPUReportFile, gpuReportBytes)
	if len(text) == 0 || err != nil {
		return err
	}
	report, err := parseGPUReport(string(text))
	if err != nil {
		return fmt.Errorf("read %s: %w", GPUReportFile, err)
	}
	for _, gpu := range report.GPUs {
		i := slices.IndexFunc(m.PCI, func(f PCIFunction) bool { return f.Address == gpu.Address && f.Kind == GPUFunction })
		if i < 0 || IsVFIO(m.PCI[i].Driver) {
			continue // the machine no longer has this GPU, or the library no longer does
		}
		f := &m.PCI[i]
		f.UUID, f.Model = cmp.Or(gpu.UUID, f.UUID), cmp.Or(gpu.Model, f.Model)
		f.ComputeCapability, f.MIG, f.Fault = gpu.ComputeCapability, gpu.MIG, gpu.Fault
		f.NVLink = report.nvlink(gpu.Address)
		f.MemoryBytes = cmp.Or(gpu.MemoryBytes, f.MemoryBytes)
		for j := range m.Zones {
			if f.Zone == nil && !gpu.CPUs.IsEmpty() && gpu.CPUs.IsSubsetOf(m.Zones[j].CPUs) {
				f.Zone = &m.Zones[j].ID
			}
		}
	}
	return nil
}

func parseGPUReport(text string) (report GPUReport, err error) {
	strict := json.NewDecoder(bytes.NewReader([]byte(text)))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&report); err != nil {
		return GPUReport{}, err
	}
	for _, gpu := range report.GPUs {
		for _, address := range append([]string{gpu.Address}, gpu.NVLinks...) {
			if !IsPCIAddress(address) {
				return GPUReport{}, fmt.Errorf("%.80q is not a PCI address such as 0000:3b:00.0", address)
			}
		}
	}
	return report, nil
}

// nvlink returns the lowest address among a GPU and all GPUs that NVLinks connect it
// to, directly or through other GPUs and switches. It is "" if NVLinks connect the GPU
// to no other GPU.
func (r GPUReport) nvlink(address string) string {
	reached := []string{address}
	for i := 0; i < len(reached); i++ {
		for _, gpu := range r.GPUs {
			ends := append([]string{gpu.Address}, gpu.NVLinks...)
			if !slices.Contains(ends, reached[i]) {
				continue
			}
			for _, end := range ends {
				if !slices.Contains(reached, end) {
					reached = append(reached, end)
				}
			}
		}
	}
	var gpus []string
	for _, gpu := range r.GPUs {
		if slices.Contains(reached, gpu.Address) {
			gpus = append(gpus, gpu.Address)
		}
	}
	if len(gpus) < 2 {
		return ""
	}
	return slices.Min(gpus)
}
