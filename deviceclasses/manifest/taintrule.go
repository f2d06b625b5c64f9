package manifest

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Device identifies a device of any driver.
type Device struct{ Driver, Pool, Name string }

// TaintRule is a DeviceTaintRule that taints one device. Its name depends only on the
// device and the key of the taint.
func TaintRule(device Device, taint resourceapi.DeviceTaint) (Object, error) {
	if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
		return Object{}, fmt.Errorf("key %q: %s", taint.Key, problems[0])
	}
	if problems := validation.IsValidLabelValue(taint.Value); len(problems) > 0 {
		return Object{}, fmt.Errorf("value %q: %s", taint.Value, problems[0])
	}
	parts := []string{taint.Key, device.Driver, device.Pool, device.Name}
	if taint.Key == deviceclasses.TaintDrain {
		parts[0] = "drain"
	}
	if device.Driver == deviceclasses.DriverName {
		parts = append(parts[:1], parts[2:]...)
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(strings.Join(parts, "-")))
	return object("DeviceTaintRule", Metadata{Name: name}, resourceapi.DeviceTaintRuleSpec{
		DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: &device.Driver, Pool: &device.Pool, Device: &device.Name},
		Taint:          taint,
	})
}
