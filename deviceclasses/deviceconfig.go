package deviceclasses

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeviceConfigKind is the kind of a DeviceConfig.
const DeviceConfigKind = "DeviceConfig"

// Values of DeviceConfig.Driver. Without a value, the function keeps its driver.
const (
	DriverVFIO = "vfio-pci" // for virtual machines, and for programs with drivers of their own, such as those of DPDK
)

// DeviceConfig says how a claim uses PCI functions. It is the opaque configuration of a
// request, in the claim or in its class.
type DeviceConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Driver is the kernel driver that is bound to the function while a claim has it.
	// When the claim ends, the function gets back the driver that it had before.
	//
	//	driver: vfio-pci
	Driver string `json:"driver,omitempty"`
}

// deviceConfigs describes the fields of a DeviceConfig.
func deviceConfigs() schema {
	return schema{kind: DeviceConfigKind, fields: "apiVersion, kind, driver"}
}

// DecodeOver reads one DeviceConfig, in JSON. Fields that raw does not name keep the
// values of c. Anything unknown is an error of one line, which names the field and what
// is allowed.
func (c DeviceConfig) DecodeOver(raw []byte) (DeviceConfig, error) {
	err := deviceConfigs().decode(raw, &c, &c.TypeMeta)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return DeviceConfig{}, err
	}
	return c, nil
}

// Validate checks the values of the fields. A field may be empty.
func (c DeviceConfig) Validate() error {
	if c.Driver != "" && c.Driver != DriverVFIO {
		return fmt.Errorf("driver: %q, allowed is %s", c.Driver, DriverVFIO)
	}
	return nil
}
