package deviceclasses

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// RequestConfig is all that classes and claims configure for a request. A request for a
// zone uses the ZoneConfigs, and a request for a PCI function uses the DeviceConfigs.
// The others have no effect.
type RequestConfig struct {
	Zone   ZoneConfig
	Device DeviceConfig
}

// DecodeOver reads one configuration of either kind, in JSON. Fields that raw does not
// name keep the values of c. Anything unknown is an error of one line, which names the
// field and what is allowed.
func (c RequestConfig) DecodeOver(raw []byte) (RequestConfig, error) {
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &meta); err != nil {
		return RequestConfig{}, schema{fields: "apiVersion, kind and the fields of the kind"}.explain(err)
	}
	var err error
	switch meta.Kind {
	case ZoneConfigKind:
		c.Zone, err = c.Zone.DecodeOver(raw)
	case DeviceConfigKind:
		c.Device, err = c.Device.DecodeOver(raw)
	default:
		err = fmt.Errorf("kind: %q, allowed are %s, %s", meta.Kind, ZoneConfigKind, DeviceConfigKind)
	}
	if err != nil {
		return RequestConfig{}, err
	}
	return c, nil
}
