package attached

import (
	"context"
	"errors"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// expression is a CEL expression, as in a claim, over the published attributes.
type expression struct{ selector *allocation.Selector }

// compile refuses an expression that no device can match, whatever values it has: one
// with unknown attributes or mismatched types. The error is one line.
func compile(text string) (expression, error) {
	if len(text) > resourceapi.CELSelectorExpressionMaxLength {
		return expression{}, fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(text), resourceapi.CELSelectorExpressionMaxLength)
	}
	tree, err := allocation.Parse(text)
	if err != nil {
		return expression{}, errors.New(message.OneLine(err.Error()))
	}
	if err := checkNames(tree); err != nil {
		return expression{}, err
	}
	selector, err := allocation.Compile(text)
	if err != nil {
		return expression{}, err
	}
	e := expression{selector}
	return e, e.tryOut()
}

// at returns an error with a position in an expression.
func at(place allocation.Place, format string, args ...any) error {
	return fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...))
}

// tryOut evaluates the expression for one device of each kind, which has all attributes
// of its kind.
func (e expression) tryOut() error {
	for _, kind := range deviceclasses.FunctionKinds() {
		device := resourceapi.Device{Attributes: deviceclasses.DeviceAttributes(deviceclasses.FunctionAttributes(), sample(kind).values())}
		if _, err := e.holds(device); err != nil {
			return fmt.Errorf("for a device of kind %s: %w", kind, err)
		}
	}
	return nil
}

// holds reports whether the expression is true for the device. An expression that reads
// an attribute which the device lacks is not true.
func (e expression) holds(d resourceapi.Device) (bool, error) {
	matches, _, err := e.selector.Matches(context.Background(), allocation.NewDevice(deviceclasses.DriverName, &resourceapi.Device{Attributes: d.Attributes}))
	if err != nil && strings.HasPrefix(err.Error(), "no such key") {
		return false, nil
	}
	return matches, err
}

// sample returns a function with all facts known. Its numbers are not 0, so that
// expressions can divide by them.
func sample(kind string) function {
	return function{
		PCIFunction: &numa.PCIFunction{
			Address: "0000:3b:00.1", Class: new(uint32(1)), Vendor: new(uint16(1)), Device: new(uint16(1)), Driver: "x", Zone: new(1),
			Root: "pci0000:3a", PhysFn: "0000:3b:00.0", IOMMU: new(1), Net: []string{"x"}, Infiniband: []string{"x"}, NVMe: []string{"x"},
			DRM: []string{firstRenderNodePrefix}, Model: "x", UUID: "x", Architecture: "x", MemoryBytes: new(bytesPerMiB), LinkMbps: new(1),
			Namespaces: []string{"x"}, ComputeCapability: "x", MIG: new(true), NVLink: "0000:3b:00.0",
		},
		kind: kind, socket: new(1), vendorName: "x", product: "x", speedMTps: new(1), width: new(1),
	}
}
