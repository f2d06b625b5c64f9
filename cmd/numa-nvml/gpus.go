//go:build cgo

package main

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// readGPUs reads every GPU. It leaves out facts that the library does not support, or does
// not tell this user. A GPU that the library cannot read has a fault, and no address if the
// library does not even return that.
func readGPUs(library nvml.Interface) (gpus []numa.ReportedGPU, err error) {
	err = eachGPU(library, func(_ int, device nvml.Device, ret nvml.Return) {
		var gpu numa.ReportedGPU
		if ret == nvml.SUCCESS {
			gpu = readGPU(device)
		} else {
			gpu.Fault = faultOf(ret)
		}
		gpus = append(gpus, gpu)
	})
	return gpus, err
}

// eachGPU calls visit for every GPU with its index, and with what the library answered when
// it was to open the GPU.
func eachGPU(library nvml.Interface, visit func(i int, device nvml.Device, ret nvml.Return)) error {
	count, ret := library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("count GPUs: %w", ret)
	}
	for i := range count {
		device, ret := library.DeviceGetHandleByIndex(i)
		visit(i, device, ret)
	}
	return nil
}

func readGPU(device nvml.Device) (gpu numa.ReportedGPU) {
	var err error
	if gpu.Address, err = addressOf(device); err != nil {
		gpu.Fault = faultOf(err)
		return gpu
	}
	var ret [5]nvml.Return
	gpu.UUID, ret[0] = device.GetUUID()
	gpu.Model, ret[1] = device.GetName()
	memory, memoryRet := device.GetMemoryInfo()
	major, minor, capabilityRet := device.GetCudaComputeCapability()
	mig, _, migRet := device.GetMigMode()
	ret[2], ret[3], ret[4] = memoryRet, capabilityRet, migRet
	if ret[2] == nvml.SUCCESS {
		gpu.MemoryBytes = &memory.Total
	}
	if ret[3] == nvml.SUCCESS {
		gpu.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
	}
	if ret[4] == nvml.SUCCESS {
		isDivided := mig == nvml.DEVICE_MIG_ENABLE
		gpu.MIG = &isDivided
	}
	for _, r := range ret {
		unknown := r == nvml.ERROR_NOT_SUPPORTED || r == nvml.ERROR_NO_PERMISSION
		if r != nvml.SUCCESS && !unknown && gpu.Fault != lost {
			gpu.Fault = faultOf(r)
		}
	}
	gpu.NVLinks = nvlinksOf(device)
	gpu.CPUs = cpusOf(device)
	return gpu
}

// faultOf returns the fault of a GPU about which the library answers with this error.
func faultOf(err error) string {
	if errors.Is(err, nvml.ERROR_GPU_IS_LOST) {
		return lost
	}
	return fmt.Sprintf("NVIDIA's library cannot read the GPU: %v", err)
}

// addressOf returns the address as the kernel prints it. The library prints a domain
// with eight digits.
func addressOf(device nvml.Device) (string, error) {
	pci, ret := device.GetPciInfo()
	if ret != nvml.SUCCESS {
		return "", fmt.Errorf("PCI address: %w", ret)
	}
	return format(pci)
}

func format(pci nvml.PciInfo) (string, error) {
	var text []byte
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		text = append(text, byte(c))
	}
	var domain, bus, device, function uint32
	if _, err := fmt.Sscanf(string(text), "%x:%x:%x.%x", &domain, &bus, &device, &function); err != nil {
		return "", fmt.Errorf("PCI address %q: %w", text, err)
	}
	address := fmt.Sprintf("%04x:%02x:%02x.%d", domain, bus, device, function)
	if !numa.IsPCIAddress(address) {
		return "", fmt.Errorf("PCI address %q: not a valid address", text)
	}
	return address, nil
}

// nvlinksOf returns the addresses of the devices that active NVLinks lead to, sorted,
// each once.
func nvlinksOf(device nvml.Device) (addresses []string) {
	for link := range nvml.NVLINK_MAX_LINKS {
		if state, ret := device.GetNvLinkState(link); ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		remote, ret := device.GetNvLinkRemotePciInfo(link)
		if ret != nvml.SUCCESS {
			continue
		}
		if address, err := format(remote); err == nil {
			addresses = append(addresses, address)
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// cpusOf returns the CPUs near a GPU. The library returns them as bits in machine words.
func cpusOf(device nvml.Device) (cpus cpuset.Set) {
	words, ret := device.GetCpuAffinity(cpuset.MaxCPUs / bits.UintSize)
	if ret != nvml.SUCCESS {
		return cpus
	}
	for i, word := range words {
		for bit := range bits.UintSize {
			if word&(1<<bit) != 0 {
				cpus = cpus.Union(cpuset.New(i*bits.UintSize + bit))
			}
		}
	}
	return cpus
}
