package kubeletplugin

import (
	"maps"
	"slices"
	"strings"
)

const (
	reasonHugepages         = "NUMAHugepagesMissing"
	reasonHugepagesRestored = "NUMAHugepagesRestored"
)

// hugepagesNotice is about pools that are smaller than what claims hold of them.
func hugepagesNotice() notice {
	return notice{reason: reasonHugepages, overReason: reasonHugepagesRestored, over: "Every zone has as many hugepages as claims hold"}
}

// hugepagesText takes, by device, which hugepages of claims the node does not have.
func hugepagesText(missing map[string]string) string {
	var parts []string
	for _, device := range slices.Sorted(maps.Keys(missing)) {
		parts = append(parts, "device "+device+": "+missing[device])
	}
	return strings.Join(parts, "; ")
}
