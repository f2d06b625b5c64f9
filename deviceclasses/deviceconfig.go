package deviceclasses

import (
	"fmt"
	"slices"

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
	// Locked are names of fields that claims must not change, not even from their default.
	// Only a DeviceClass can lock fields.
	//
	//	locked: [driver]
	Locked []string `json:"locked,omitempty"`
}

// DecodeOver reads one DeviceConfig, in JSON. Fields that raw does not name keep the
// values of c. Anything unknown is an error of one line, which names the field and what
// is allowed.
func (c DeviceConfig) DecodeOver(raw []byte) (DeviceConfig, error) {
	c.Locked = slices.Clone(c.Locked) // decoding writes into a list that is there
	return decodeValid(DeviceConfigKind, raw, &c, &c.TypeMeta)
}

// Validate checks the values of the fields. A field may be empty.
func (c DeviceConfig) Validate() error {
	if c.Driver != "" && c.Driver != DriverVFIO {
		return fmt.Errorf("driver: %q, allowed is %s", c.Driver, DriverVFIO)
	}
	return checkLocked(c.Locked, c.settings())
}

// settings returns the fields that a class can lock.
func (c DeviceConfig) settings() []setting { return []setting{{"driver", c.Driver}} }
