package driver

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// checkConfigs refuses parameters that this driver does not know, even if no request
// uses them.
func checkConfigs(configs []resourceapi.DeviceAllocationConfiguration) error {
	for i, config := range configs {
		if _, err := (deviceclasses.RequestConfig{}).DecodeAllocated(config, ""); err != nil {
			return fmt.Errorf("status.allocation.devices.config[%d].opaque.parameters: %w", i, err)
		}
	}
	return nil
}
