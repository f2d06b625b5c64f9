package driver

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// checkConfigs refuses what this driver does not know, used or not.
func checkConfigs(configs []resourceapi.DeviceAllocationConfiguration) error {
	for i, config := range configs {
		if !isOurs(config) {
			continue
		}
		if _, err := (deviceclasses.RequestConfig{}).DecodeOver(config.Opaque.Parameters.Raw); err != nil {
			return fmt.Errorf("status.allocation.devices.config[%d].opaque.parameters: %w", i, err)
		}
	}
	return nil
}

// configOf is what classes and claim want for a request: what the claim says
// holds over what its class says, field by field, and of the same source what is
// said last.
func configOf(request string, configs []resourceapi.DeviceAllocationConfiguration) (deviceclasses.RequestConfig, error) {
	var merged deviceclasses.RequestConfig
	for _, source := range []resourceapi.AllocationConfigSource{
		resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim,
	} {
		for _, config := range configs {
			if config.Source != source || !isOurs(config) || !concerns(config.Requests, request) {
				continue
			}
			var err error
			if merged, err = merged.DecodeOver(config.Opaque.Parameters.Raw); err != nil {
				return deviceclasses.RequestConfig{}, err
			}
		}
	}
	return merged, nil
}

func isOurs(config resourceapi.DeviceAllocationConfiguration) bool {
	return config.Opaque != nil && config.Opaque.Driver == Name
}

// concerns reports whether the requests, all if there are none, have this one. A
// request stands for its subrequests.
func concerns(requests []string, request string) bool {
	main, _, _ := strings.Cut(request, "/")
	return len(requests) == 0 || slices.Contains(requests, request) || slices.Contains(requests, main)
}
