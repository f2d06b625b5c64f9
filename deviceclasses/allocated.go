package deviceclasses

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// ConfigOf returns the configuration that the DeviceClass with this name has for a request of
// an allocated claim, and merged, that of the class and the claim, field by field. The claim
// overrides fields that its class does not lock. Within the class or the claim, the last
// configuration wins.
func ConfigOf(request, class string, configs []resourceapi.DeviceAllocationConfiguration) (ofClass, merged RequestConfig, err error) {
	for _, source := range []resourceapi.AllocationConfigSource{
		resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim,
	} {
		ofClass = merged
		for _, config := range configs {
			if config.Source != source || !concerns(config.Requests, request) {
				continue
			}
			if merged, err = merged.DecodeAllocated(config, class); err != nil {
				return RequestConfig{}, RequestConfig{}, err
			}
		}
	}
	return ofClass, merged, nil
}

// DecodeAllocated reads a configuration of an allocation over that of the class with this
// name. One of another driver changes nothing.
func (c RequestConfig) DecodeAllocated(config resourceapi.DeviceAllocationConfiguration, class string) (RequestConfig, error) {
	switch {
	case config.Opaque == nil || config.Opaque.Driver != DriverName:
		return c, nil
	case config.Source == resourceapi.AllocationConfigSourceClass:
		return c.DecodeOver(config.Opaque.Parameters.Raw)
	}
	return c.DecodeClaim(config.Opaque.Parameters.Raw, class)
}

// RequestOf returns the DeviceClass and the capacity requirements of a request or
// subrequest; "" and nil if the claim does not have the request.
func RequestOf(claim *resourceapi.ResourceClaim, request string) (class string, amounts *resourceapi.CapacityRequirements) {
	main, sub, _ := strings.Cut(request, "/")
	for _, of := range claim.Spec.Devices.Requests {
		if of.Name == main && of.Exactly != nil {
			return of.Exactly.DeviceClassName, of.Exactly.Capacity
		}
		for _, alternative := range of.FirstAvailable {
			if of.Name == main && alternative.Name == sub {
				return alternative.DeviceClassName, alternative.Capacity
			}
		}
	}
	return "", nil
}

// concerns reports whether a configuration for these requests applies to this request.
// A configuration without requests applies to all. One for a request applies to its
// subrequests too.
func concerns(requests []string, request string) bool {
	main, _, _ := strings.Cut(request, "/")
	return len(requests) == 0 || slices.Contains(requests, request) || slices.Contains(requests, main)
}
