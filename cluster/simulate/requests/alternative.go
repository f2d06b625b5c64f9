package requests

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Alternative is a request of a claim, or one of its subrequests.
type Alternative struct {
	Name        string // request, or request/subrequest
	Class       string // "" for a kind of request that this version does not know
	Mode        resourceapi.DeviceAllocationMode
	Count       int64 // number of devices
	Admin       bool  // admin access, which holds nothing
	Selectors   []resourceapi.DeviceSelector
	Tolerations []resourceapi.DeviceToleration
	Capacity    *resourceapi.CapacityRequirements
	Derived     bool // has derived attributes
}

// Alternatives returns the subrequests of firstAvailable in their order, or the request
// itself.
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

// Amounts returns what the alternative asks for of the capacities of each device.
func (a Alternative) Amounts() map[resourceapi.QualifiedName]resource.Quantity {
	if a.Capacity == nil {
		return nil
	}
	return a.Capacity.Requests
}

// Base returns the name of the request that an alternative belongs to.
func Base(name string) string { return resourceclaim.BaseRequestRef(name) }
