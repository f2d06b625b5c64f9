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

// applicationXIDs are errors of a program on the GPU, not of the GPU itself. NVIDIA's
// own device plugin ignores the same ones (docs.nvidia.com/deploy/xid-errors).
var applicationXIDs = []uint64{13, 31, 43, 45, 68, 109}

// seen is what is known about the GPUs since the program started. It is kept when the
// library is opened again.
type seen struct {
	gpus   []numa.ReportedGPU // as they were last read
	faults map[string]string  // by address
}

const lost = "the GPU is lost: it has fallen off the bus"

// listen registers for errors of all GPUs that can report them.
func listen(library nvml.Interface) (nvml.EventSet, error) {
	set, ret := library.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("create a set of events: %w", ret)
	}
	err := eachGPU(library, func(i int, device nvml.Device) error {
		supported, ret := device.GetSupportedEventTypes()
		if ret != nvml.SUCCESS || supported&nvml.EventTypeXidCriticalError == 0 {
			return nil
		}
		if ret := device.RegisterEvents(nvml.EventTypeXidCriticalError, set); ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
			return fmt.Errorf("register for errors of GPU %d: %w", i, ret)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return set, nil
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
	address, err := addressOf(event.Device)
	if errors.Is(err, nvml.ERROR_GPU_IS_LOST) {
		return nil
	}
	if err == nil {
		s.faults[address] = fmt.Sprintf("its driver has reported XID %d", event.EventData)
	}
	return err
}

// report returns the content of the file. A GPU that the library does not open any more
// keeps its last values, and is reported as lost.
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
