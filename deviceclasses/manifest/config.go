package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// checkConfig refuses what the driver would refuse of the configuration of zones, and
// contradictions.
func checkConfig(c deviceclasses.RequestConfig) error {
	if c.Zone.Mixed && c.Zone.Partition != "" && c.Zone.Partition != deviceclasses.PartitionNone {
		return fmt.Errorf("mixed with partition %q: mixed containers also run on shared CPUs, which are in no partition", c.Zone.Partition)
	}
	return cmp.Or(c.Zone.Validate(), c.Performance.Validate())
}

// checkConfig refuses settings for what the claim does not have.
func (w Wish) checkConfig() error {
	if w.CPUs == 0 && isSet(w.Config.Performance) {
		return errors.New("frequencies, idle states and interrupts are those of CPUs: want cpus as well")
	}
	return checkConfig(w.Config)
}

// configurations are those of zones, without those that say nothing.
func configurations(c deviceclasses.RequestConfig) (list []resourceapi.DeviceConfiguration) {
	if isSet(c.Zone) {
		c.Zone.TypeMeta = typeOf(deviceclasses.ZoneConfigKind)
		list = append(list, opaque(c.Zone))
	}
	if isSet(c.Performance) {
		c.Performance.TypeMeta = typeOf(deviceclasses.PerformanceConfigKind)
		list = append(list, opaque(c.Performance))
	}
	return list
}

func isSet(config any) bool { return !reflect.ValueOf(config).IsZero() }

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: deviceclasses.APIVersion, Kind: kind}
}

// opaque is a configuration of this driver in the form of claims and classes.
func opaque(config any) resourceapi.DeviceConfiguration {
	raw, err := json.Marshal(config)
	if err != nil {
		panic(err) // impossible: configurations have only strings, numbers, bools and lists of strings
	}
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: deviceclasses.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}
}
