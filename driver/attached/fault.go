package attached

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Fault returns why no new claim should get a function, as a value of the taint and as
// a text for people. Both are empty if no fault is known. Fatal errors of its link are
// those that were counted by the function itself, its physical function, or the port
// that it is plugged into.
func Fault(machine numa.Machine, f *numa.PCIFunction) (taint, why string) {
	if f.Dead {
		return deviceclasses.FaultDead, deviceclasses.FaultHealth(deviceclasses.FaultDead, f.Address)
	}
	if f.Fault != "" {
		return deviceclasses.FaultUnhealthy, deviceclasses.FaultHealth(deviceclasses.FaultUnhealthy, f.Address, f.Fault)
	}
	for _, end := range []*numa.PCIFunction{f, find(machine, f.PhysFn), find(machine, f.Parent)} {
		if end != nil && end.FatalErrors > 0 {
			return deviceclasses.FaultFatalErrors, deviceclasses.FaultHealth(deviceclasses.FaultFatalErrors, f.Address, end.Address, end.FatalErrors)
		}
	}
	return "", ""
}

// taints returns the taints of a function.
func taints(machine numa.Machine, f *numa.PCIFunction) []resourceapi.DeviceTaint {
	if taint, _ := Fault(machine, f); taint != "" {
		return []resourceapi.DeviceTaint{deviceclasses.FaultTaint(taint)}
	}
	return nil
}
