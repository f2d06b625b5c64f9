// Package capacity knows the two spellings of a capacity of a device.
package capacity

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Name returns a capacity as devices of the driver publish it: without the driver's
// domain. From Kubernetes 1.38 on, a claim and its allocation result may also spell the
// capacity cpu of the driver dra.numa as dra.numa/cpu. Other names are returned
// unchanged.
func Name(driver string, name resourceapi.QualifiedName) resourceapi.QualifiedName {
	return resourceapi.QualifiedName(strings.TrimPrefix(string(name), driver+"/"))
}

// Amounts returns amounts by the names that devices of the driver publish. If both
// spellings of a capacity are there, the larger amount counts. The result may be the
// argument, so it must not be changed.
func Amounts(driver string, amounts map[resourceapi.QualifiedName]resource.Quantity) map[resourceapi.QualifiedName]resource.Quantity {
	changed := false
	for name := range amounts {
		changed = changed || Name(driver, name) != name
	}
	if !changed {
		return amounts
	}
	published := make(map[resourceapi.QualifiedName]resource.Quantity, len(amounts))
	for name, amount := range amounts {
		short := Name(driver, name)
		if known, twice := published[short]; !twice || known.Cmp(amount) < 0 {
			published[short] = amount
		}
	}
	return published
}
