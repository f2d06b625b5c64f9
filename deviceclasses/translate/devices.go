package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
)

// takeDevices returns the container's extended resources that have a class, and takes them
// out of the container.
func (t *translation) takeDevices(container *corev1.Container) (devices []manifest.Devices, err error) {
	for _, name := range slices.Sorted(maps.Keys(container.Resources.Limits)) {
		class, has := t.options.Twins[name]
		amount := container.Resources.Limits[name]
		if !has || amount.IsZero() {
			if !has && isExtended(name) && name != cacheWays {
				t.note(container, "keeps %s: %s", name, whyKept(name))
			}
			continue
		}
		switch word := stem(class); {
		case len(word) > longestStem:
			return nil, fmt.Errorf("%s has a class that begins with %d letters, allowed are %d", name, len(word), longestStem)
		case word == cacheWord || strings.Contains(word, separator):
			return nil, fmt.Errorf("%s has a class that begins with %q, which means something else in the name of a request", name, word)
		}
		for _, before := range devices {
			if stem(before.Class) == stem(class) && before.Class != class {
				return nil, fmt.Errorf("%s and another resource have classes that begin with %q", name, stem(class))
			}
		}
		if amount.Value() > resourceapi.DeviceRequestsMaxSize {
			return nil, fmt.Errorf("%s: %s, allowed are up to %d devices in a claim", name, amount.String(), resourceapi.DeviceRequestsMaxSize)
		}
		// One request for each, so that the names of the requests say how many there are.
		devices = append(devices, slices.Repeat([]manifest.Devices{{Class: class, Count: 1}}, int(amount.Value()))...)
		delete(container.Resources.Limits, name)
		delete(container.Resources.Requests, name)
	}
	slices.SortStableFunc(devices, func(a, b manifest.Devices) int { return cmp.Compare(a.Class, b.Class) })
	return devices, nil
}

// isExtended reports whether the name is that of a resource that no part of Kubernetes has,
// or of a DeviceClass in the place of one.
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/") || isOfClass(name)
}

// isOfClass reports whether the name is that of a DeviceClass, of which the scheduler makes a
// claim.
func isOfClass(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), resourceapi.ResourceDeviceClassPrefix)
}

func whyKept(name corev1.ResourceName) string {
	if isOfClass(name) {
		return "it has a claim of its own, so it may be anywhere"
	}
	return "it has no DeviceClass, so its device plugin chooses where it is"
}
