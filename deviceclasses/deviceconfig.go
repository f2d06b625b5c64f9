package deviceclasses

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeviceConfigKind is the kind of a DeviceConfig.
const DeviceConfigKind = "DeviceConfig"

// What a DeviceConfig may say of Driver; without one it stays as it is.
const (
	DriverVFIO = "vfio-pci" // for virtual machines and for programs with drivers of their own, such as those of DPDK
)

// DeviceConfig is how a claim, or a class for its claims, wants to use PCI
// functions. It is the opaque configuration of a request.
type DeviceConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Driver is the kernel driver that is bound to the function while the claim has
	// it. Whatever was bound before is bound again when the claim ends.
	//
	//	driver: vfio-pci
	Driver string `json:"driver,omitempty"`
}

// deviceConfigs names all fields there are.
func deviceConfigs() schema {
	return schema{kind: DeviceConfigKind, fields: "apiVersion, kind, driver"}
}

// DecodeOver reads one DeviceConfig, in JSON. Fields that raw does not name are
// those of c; whatever is not known is an error of one line, which names the field
// and what is allowed.
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

// Validate looks at the values of the fields. An empty one is fine.
func (c DeviceConfig) Validate() error {
	if c.Driver != "" && c.Driver != DriverVFIO {
		return fmt.Errorf("driver: %q, allowed is %s", c.Driver, DriverVFIO)
	}
	return nil
}
