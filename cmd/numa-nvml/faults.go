//go:build cgo

package main

import (
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// applicationXIDs are errors of a program on the GPU, not of the GPU: those that
// NVIDIA's own device plugin passes over (docs.nvidia.com/deploy/xid-errors).
var applicationXIDs = []uint64{13, 31, 43, 45, 68, 109}

// faults is what has become of GPUs since the program started, by address.
type faults map[string]string

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

// next waits for an event, but no longer than so many milliseconds, and reports
// whether something is new.
func (f faults) next(set nvml.EventSet, milliseconds uint32) (isNew bool, err error) {
	event, ret := set.Wait(milliseconds)
	switch {
	case ret == nvml.ERROR_TIMEOUT, ret == nvml.ERROR_GPU_IS_LOST: // which one says what is read of it
		return false, nil
	case ret != nvml.SUCCESS:
		return false, fmt.Errorf("wait for errors of GPUs: %w", ret)
	case event.EventType != nvml.EventTypeXidCriticalError || slices.Contains(applicationXIDs, event.EventData):
		return false, nil
	}
	address, err := addressOf(event.Device)
	if err != nil {
		return false, err
	}
	f[address] = fmt.Sprintf("its driver has reported XID %d", event.EventData)
	return true, nil
}
