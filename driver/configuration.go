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
		if _, err := (deviceclasses.RequestConfig{}).DecodeOver(config.Opaque.Parameters.Raw); err != nil {
			return fmt.Errorf("status.allocation.devices.config[%d].opaque.parameters: %w", i, err)
		}
	}
	return nil
}

// configOf merges the configurations that the DeviceClass and the claim have for a
// request, field by field. The claim overrides its class. Within the class or the
// claim, the last configuration wins.
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

// concerns reports whether a configuration for these requests applies to this request.
// A configuration without requests applies to all. One for a request applies to its
// subrequests too.
func concerns(requests []string, request string) bool {
	main, _, _ := strings.Cut(request, "/")
	return len(requests) == 0 || slices.Contains(requests, request) || slices.Contains(requests, main)
}
