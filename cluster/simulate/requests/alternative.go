package requests

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Alternative is a request of a claim, or one of its subrequests.
type Alternative struct {
	Name        string // request, or request/subrequest
	Class       string // "" if the request is of a kind that this version does not know
	Mode        resourceapi.DeviceAllocationMode
	Count       int64 // of devices
	Admin       bool  // access only, nothing is held
	Selectors   []resourceapi.DeviceSelector
	Tolerations []resourceapi.DeviceToleration
	Capacity    *resourceapi.CapacityRequirements
	Derived     bool // it has derived attributes
}

// Alternatives are those of firstAvailable in their order, or the only one.
func Alternatives(request resourceapi.DeviceRequest) (list []Alternative) {
	if e := request.Exactly; e != nil {
		return []Alternative{{
			request.Name, e.DeviceClassName, e.AllocationMode, e.Count, e.AdminAccess != nil && *e.AdminAccess,
			e.Selectors, e.Tolerations, e.Capacity, len(e.DerivedAttributes) > 0,
		}}
	}
	for _, s := range request.FirstAvailable {
		list = append(list, Alternative{
			request.Name + "/" + s.Name, s.DeviceClassName, s.AllocationMode, s.Count, false,
			s.Selectors, s.Tolerations, s.Capacity, len(s.DerivedAttributes) > 0,
		})
	}
	if len(list) == 0 {
		return []Alternative{{Name: request.Name}}
	}
	return list
}

// Base is the request of an alternative's name.
func Base(name string) string { return resourceclaim.BaseRequestRef(name) }
