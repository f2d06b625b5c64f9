package driver

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// checkConfigs refuses parameters that this driver does not know, even if no request
// uses them.
func checkConfigs(configs []resourceapi.DeviceAllocationConfiguration) error {
	for i, config := range configs {
		if !isOurs(config) {
			continue
		}
		if _, err := decodeOver(deviceclasses.RequestConfig{}, config, ""); err != nil {
			return fmt.Errorf("status.allocation.devices.config[%d].opaque.parameters: %w", i, err)
		}
	}
	return nil
}

// decodeOver reads a configuration over that of the class with this name.
func decodeOver(before deviceclasses.RequestConfig, config resourceapi.DeviceAllocationConfiguration, class string) (deviceclasses.RequestConfig, error) {
	if config.Source == resourceapi.AllocationConfigSourceClass {
		return before.DecodeOver(config.Opaque.Parameters.Raw)
	}
	return before.DecodeClaim(config.Opaque.Parameters.Raw, class)
}

// configOf returns the configuration that the DeviceClass has for a request, and merged,
// that of the class and the claim, field by field. The claim overrides fields that its
// class does not lock. Within the class or the claim, the last configuration wins.
func configOf(request, class string, configs []resourceapi.DeviceAllocationConfiguration) (ofClass, merged deviceclasses.RequestConfig, err error) {
	for _, source := range []resourceapi.AllocationConfigSource{
		resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim,
	} {
		ofClass = merged
		for _, config := range configs {
			if config.Source != source || !isOurs(config) || !concerns(config.Requests, request) {
				continue
			}
			if merged, err = decodeOver(merged, config, class); err != nil {
				return deviceclasses.RequestConfig{}, deviceclasses.RequestConfig{}, err
			}
		}
	}
	return ofClass, merged, nil
}

// classOf returns the name of the DeviceClass of a request or subrequest; "" if the claim
// does not have the request.
func classOf(claim *resourceapi.ResourceClaim, request string) string {
	class, _ := requestOf(claim, request)
	return class
}

// requestOf returns the DeviceClass and the capacity requirements of a request or
// subrequest; "" and nil if the claim does not have the request.
func requestOf(claim *resourceapi.ResourceClaim, request string) (class string, amounts *resourceapi.CapacityRequirements) {
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

func isOurs(config resourceapi.DeviceAllocationConfiguration) bool {
	return config.Opaque != nil && config.Opaque.Driver == Name
}

// concerns reports whether a configuration for these requests applies to this request.
// A configuration without requests applies to all. One for a request applies to its
// subrequests too.
func concerns(requests []string, request string) bool {
	main, _, _ := strings.Cut(request, "/")
	return len(requests) == 0 || slices.Contains(requests, request) || slices.Contains(requests, main)
}
