//go:build cgo

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// applicationXIDs are errors of a program on the GPU, not of the GPU itself. NVIDIA's
// own device plugin ignores the same ones (docs.nvidia.com/deploy/xid-errors).
var applicationXIDs = []uint64{13, 31, 43, 45, 68, 109}

// seen is what is known about the GPUs since the program started. It is kept when the
// library is opened again.
type seen struct {
	gpus    []numa.ReportedGPU // as they were last read
	faults  map[string]string  // by address
	unheard map[string]string  // why the library does not tell of errors of a GPU, by address
	unnamed error              // why GPUs are not in the report: their addresses were never known
}

const lost = "the GPU is lost: it has fallen off the bus"

// listen registers for errors of all GPUs that can report them.
func (s *seen) listen(library nvml.Interface) (nvml.EventSet, error) {
	s.unheard = map[string]string{}
	refused := map[int]bool{}
	for {
		set, ret := library.EventSetCreate()
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("create a set of events: %w", ret)
		}
		before := len(refused)
		err := eachGPU(library, func(i int, device nvml.Device, ret nvml.Return) {
			if ret != nvml.SUCCESS || refused[i] {
				return
			}
			supported, ret := device.GetSupportedEventTypes()
			if ret != nvml.SUCCESS || supported&nvml.EventTypeXidCriticalError == 0 {
				return
			}
			if ret := device.RegisterEvents(nvml.EventTypeXidCriticalError, set); ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
				refused[i] = true
				if address, err := addressOf(device); err == nil {
					s.unheard[address] = fmt.Sprintf("NVIDIA's library does not tell of errors of the GPU: %v", ret)
				}
			}
		})
		if err == nil && len(refused) == before {
			return set, nil
		}
		_ = set.Free() // after such an error, the set is in an undefined state (nvml.h)
		if err != nil {
			return nil, err
		}
	}
}

// next waits for an event, but not longer than the period. The event does not say which
// GPU is lost. Reading the GPUs shows that.
func (s *seen) next(set nvml.EventSet, period time.Duration) error {
	event, ret := set.Wait(uint32(period.Milliseconds()))
	switch {
	case ret == nvml.ERROR_GPU_IS_LOST:
		time.Sleep(period) // Wait returns this error at once, again and again
		return nil
	case ret == nvml.ERROR_TIMEOUT:
		return nil
	case ret != nvml.SUCCESS:
		return fmt.Errorf("wait for errors of GPUs: %w", ret)
	case event.EventType != nvml.EventTypeXidCriticalError || slices.Contains(applicationXIDs, event.EventData):
		return nil
	}
	if address, err := addressOf(event.Device); err == nil { // else the GPU cannot be read, and gets that fault
		s.faults[address] = fmt.Sprintf("its driver has reported XID %d", event.EventData)
	}
	return nil
}

// report returns the content of the file. A GPU that the library does not open any more, or
// cannot read, keeps its last values and has a fault.
func (s *seen) report(library nvml.Interface) ([]byte, error) {
	read, err := readGPUs(library)
	if err != nil {
		return nil, err
	}
	var gpus []numa.ReportedGPU
	gone := lost
	for _, gpu := range read {
		if gpu.Address == "" {
			gone = gpu.Fault
			continue
		}
		gpus = append(gpus, gpu)
	}
	for _, before := range s.gpus {
		i := slices.IndexFunc(gpus, func(gpu numa.ReportedGPU) bool { return gpu.Address == before.Address })
		switch {
		case i < 0:
			before.Fault = gone
			gpus = append(gpus, before)
		case gpus[i].Fault != "":
			before.Fault = gpus[i].Fault
			gpus[i] = before
		}
	}
	s.unnamed = nil
	if missing := len(read) - len(gpus); missing > 0 {
		s.unnamed = fmt.Errorf("%d GPUs have no address: %s", missing, gone)
	}
	for i := range gpus {
		address := gpus[i].Address
		gpus[i].Fault = cmp.Or(gpus[i].Fault, s.faults[address], s.unheard[address])
	}
	s.gpus = gpus
	text, err := json.Marshal(numa.GPUReport{GPUs: gpus})
	return append(text, '\n'), err
}
