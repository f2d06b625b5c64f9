package deviceclasses

import (
	"cmp"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// RequestConfig is all that classes and claims configure for a request. A request for a
// zone uses the ZoneConfigs and the PerformanceConfigs, one for a PCI function the
// DeviceConfigs, and one for a cache the CacheConfigs. The others have no effect.
type RequestConfig struct {
	Zone        ZoneConfig
	Device      DeviceConfig
	Cache       CacheConfig
	Performance PerformanceConfig
}

// DecodeOver reads one configuration of a class, of any kind, in JSON. Fields that raw
// does not name keep the values of c. Anything unknown is an error of one line, which
// names the field and what is allowed. It is short, because it is logged and reported
// often, and any user can write a configuration.
func (c RequestConfig) DecodeOver(raw []byte) (RequestConfig, error) {
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &meta); err != nil {
		return RequestConfig{}, explain(err, "apiVersion, kind and the fields of the kind")
	}
	var err error
	switch meta.Kind {
	case ZoneConfigKind:
		c.Zone, err = c.Zone.DecodeOver(raw)
	case DeviceConfigKind:
		c.Device, err = c.Device.DecodeOver(raw)
	case CacheConfigKind:
		c.Cache, err = c.Cache.DecodeOver(raw)
	case PerformanceConfigKind:
		c.Performance, err = c.Performance.DecodeOver(raw)
	default:
		err = fmt.Errorf("kind: %q, allowed are %s, %s, %s, %s", meta.Kind, ZoneConfigKind, DeviceConfigKind, CacheConfigKind, PerformanceConfigKind)
	}
	if err != nil {
		return RequestConfig{}, short(err)
	}
	return c, nil
}

// DecodeClaim reads one configuration of a claim like DecodeOver. c has the configuration
// of the DeviceClass with this name, and maybe other configurations of the claim. It is a
// [LockedError] if the claim changes a field that the class locks.
func (c RequestConfig) DecodeClaim(raw []byte, class string) (RequestConfig, error) {
	open := c
	open.Zone.Locked, open.Device.Locked, open.Cache.Locked, open.Performance.Locked = nil, nil, nil, nil
	merged, err := open.DecodeOver(raw)
	if err != nil {
		return RequestConfig{}, err
	}
	if merged.Zone.Locked != nil || merged.Device.Locked != nil || merged.Cache.Locked != nil || merged.Performance.Locked != nil {
		return RequestConfig{}, errors.New("locked: only a DeviceClass can lock fields")
	}
	if err := cmp.Or(
		checkUnchanged(class, c.Zone.Locked, c.Zone.settings(), merged.Zone.settings()),
		checkUnchanged(class, c.Device.Locked, c.Device.settings(), merged.Device.settings()),
		checkUnchanged(class, c.Cache.Locked, c.Cache.settings(), merged.Cache.settings()),
		checkUnchanged(class, c.Performance.Locked, c.Performance.settings(), merged.Performance.settings()),
	); err != nil {
		return RequestConfig{}, err
	}
	merged.Zone.Locked, merged.Device.Locked, merged.Cache.Locked, merged.Performance.Locked =
		c.Zone.Locked, c.Device.Locked, c.Cache.Locked, c.Performance.Locked
	return merged, nil
}
