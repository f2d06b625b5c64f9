package kubeletplugin

import (
	"maps"
	"slices"
	"strings"
)

const (
	reasonUnmet = "NUMASettingUnmet"
	reasonMet   = "NUMASettingsMet"
)

// unmetNotice is about settings of the NodeConfig that the node does not carry out.
func unmetNotice() notice {
	return notice{reason: reasonUnmet, overReason: reasonMet, over: "The node carries out all settings of its NodeConfig"}
}

// unmetText takes, by setting, why the node does not carry it out.
func unmetText(unmet map[string]string) string {
	var parts []string
	for _, setting := range slices.Sorted(maps.Keys(unmet)) {
		parts = append(parts, "The node does not do what its NodeConfig says in "+setting+": "+unmet[setting])
	}
	return strings.Join(parts, "; ")
}
