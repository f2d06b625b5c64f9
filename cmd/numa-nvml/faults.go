//go:build cgo

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// applicationXIDs are errors of a program on the GPU, not of the GPU: those that
// NVIDIA's own device plugin passes over (docs.nvidia.com/deploy/xid-errors).
var applicationXIDs = []uint64{13, 31, 43, 45, 68, 109}

// seen is what is known of GPUs since the program started, also when the library
// had to be opened anew.
type seen struct {
	gpus   []numa.ReportedGPU // as they were read last
	faults map[string]string  // by address
}

const lost = "the GPU is lost: it has fallen off the bus"

// listen has the library tell of errors of all GPUs that can.
func listen(library nvml.Interface) (nvml.EventSet, error) {
	set, ret := library.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("make a set of events: %w", ret)
	}
	count, ret := library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count GPUs: %w", ret)
	}
	for i := range count {
		device, ret := library.DeviceGetHandleByIndex(i)
		if ret == nvml.ERROR_GPU_IS_LOST {
			continue
		}
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("open GPU %d: %w", i, ret)
		}
		supported, ret := device.GetSupportedEventTypes()
		if ret != nvml.SUCCESS || supported&nvml.EventTypeXidCriticalError == 0 {
			continue
		}
		if ret := device.RegisterEvents(nvml.EventTypeXidCriticalError, set); ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
			return nil, fmt.Errorf("have GPU %d tell of errors: %w", i, ret)
		}
	}
	return set, nil
}

// next waits for an event, but no longer than the period. Which GPU is lost says
// what is read of it.
func (s *seen) next(set nvml.EventSet, period time.Duration) error {
	event, ret := set.Wait(uint32(period.Milliseconds()))
	switch {
	case ret == nvml.ERROR_GPU_IS_LOST:
		time.Sleep(period) // it is told at once, again and again
		return nil
	case ret == nvml.ERROR_TIMEOUT:
		return nil
	case ret != nvml.SUCCESS:
		return fmt.Errorf("wait for errors of GPUs: %w", ret)
	case event.EventType != nvml.EventTypeXidCriticalError || slices.Contains(applicationXIDs, event.EventData):
		return nil
	}
	address, err := addressOf(event.Device)
	if errors.Is(err, nvml.ERROR_GPU_IS_LOST) {
		return nil
	}
	if err == nil {
		s.faults[address] = fmt.Sprintf("its driver has reported XID %d", event.EventData)
	}
	return err
}

// report is the content of the file. A GPU that the library does not open any more
// is as it was, and lost.
func (s *seen) report(library nvml.Interface) ([]byte, error) {
	gpus, err := readGPUs(library)
	if err != nil {
		return nil, err
	}
	for _, before := range s.gpus {
		if !slices.ContainsFunc(gpus, func(gpu numa.ReportedGPU) bool { return gpu.Address == before.Address }) {
			before.Fault = lost
			gpus = append(gpus, before)
		}
	}
	for i := range gpus {
		gpus[i].Fault = cmp.Or(gpus[i].Fault, s.faults[gpus[i].Address])
	}
	s.gpus = gpus
	text, err := json.Marshal(numa.GPUReport{GPUs: gpus})
	return append(text, '\n'), err
}
