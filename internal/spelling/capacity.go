package spelling

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Capacity returns the name of a capacity as devices of the driver publish it: without the driver's
// domain. From Kubernetes 1.38 on, a claim and its allocation result may also spell the
// capacity cpu of the driver dra.numa as dra.numa/cpu. Other names are returned
// unchanged.
func Capacity(driver string, name resourceapi.QualifiedName) resourceapi.QualifiedName {
	return resourceapi.QualifiedName(strings.TrimPrefix(string(name), driver+"/"))
}

// Amounts returns amounts by the names that devices of the driver publish. If both
// spellings of a capacity are there, the larger amount counts. The result may be the
// argument, so it must not be changed.
func Amounts(driver string, amounts map[resourceapi.QualifiedName]resource.Quantity) map[resourceapi.QualifiedName]resource.Quantity {
	changed := false
	for name := range amounts {
		changed = changed || Capacity(driver, name) != name
	}
	if !changed {
		return amounts
	}
	published := make(map[resourceapi.QualifiedName]resource.Quantity, len(amounts))
	for name, amount := range amounts {
		short := Capacity(driver, name)
		if known, twice := published[short]; !twice || less(known, amount) {
			published[short] = amount
		}
	}
	return published
}

// Text returns an amount as people count: 2000 CPUs, and not the 2k of a Quantity.
func Text(amount resource.Quantity) string {
	text := amount.String()
	if thousands, is := strings.CutSuffix(text, "k"); is {
		return thousands + "000"
	}
	return text
}

// mostDigits limits the power of ten of an amount. The largest suffix of Kubernetes, E,
// is 10^18, and the smallest, n, is 10^-9.
const mostDigits = 30

// Countable reports whether an amount can be compared with others and added to them.
// Kubernetes accepts 1e999999999 in the requests of a claim. To compare it with 1,
// package resource writes it out with all its digits, which takes hours and a gigabyte.
func Countable(amount resource.Quantity) bool {
	number := amount.DeepCopy() // AsDec changes it
	scale := number.AsDec().Scale()
	return scale >= -mostDigits && scale <= mostDigits
}

// less reports whether a is less than b. An amount that is not countable is more than all
// that are.
func less(a, b resource.Quantity) bool {
	if !Countable(a) || !Countable(b) {
		return Countable(a)
	}
	return a.Cmp(b) < 0
}
