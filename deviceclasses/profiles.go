package deviceclasses

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
)

// For returns the settings of a node with these labels.
func (c NodeConfig) For(nodeLabels map[string]string) NodeSettings {
	settings := c.NodeSettings
	for _, profile := range c.Profiles {
		if labels.SelectorFromSet(profile.NodeSelector).Matches(labels.Set(nodeLabels)) {
			settings.ReservedCPUs = cmp.Or(profile.ReservedCPUs, settings.ReservedCPUs)
			settings.ReservedMemory = cmp.Or(profile.ReservedMemory, settings.ReservedMemory)
			if profile.ReservedHugepages != nil {
				settings.ReservedHugepages = profile.ReservedHugepages
			}
			if profile.ReservedNodeMemory != nil {
				settings.ReservedNodeMemory = profile.ReservedNodeMemory
			}
			settings.Exclude = cmp.Or(profile.Exclude, settings.Exclude)
			settings.Exclusivity = cmp.Or(profile.Exclusivity, settings.Exclusivity)
			settings.CPUQuota = cmp.Or(profile.CPUQuota, settings.CPUQuota)
			settings.ZoneBy = cmp.Or(profile.ZoneBy, settings.ZoneBy)
			settings.ZoneOrder = cmp.Or(profile.ZoneOrder, settings.ZoneOrder)
			settings.Accounting = cmp.Or(profile.Accounting, settings.Accounting)
			settings.NUMANodeLists = cmp.Or(profile.NUMANodeLists, settings.NUMANodeLists)
			settings.Publishing = cmp.Or(profile.Publishing, settings.Publishing)
			settings.Devices = cmp.Or(profile.Devices, settings.Devices)
			settings.Cache = cmp.Or(profile.Cache, settings.Cache)
			settings.Performance = cmp.Or(profile.Performance, settings.Performance)
			if profile.OtherCPUDrivers != nil {
				settings.OtherCPUDrivers = profile.OtherCPUDrivers
			}
			if profile.OtherMemoryDrivers != nil {
				settings.OtherMemoryDrivers = profile.OtherMemoryDrivers
			}
			if profile.Groups != nil {
				settings.Groups = profile.Groups
			}
			if profile.NUMANodeKeys != nil {
				settings.NUMANodeKeys = profile.NUMANodeKeys
			}
		}
	}
	return settings
}

// Profile says where a field of a node with these labels is set: "profiles[1]." for a
// profile, or "" for the settings of all nodes. Followed by the field, it is a path in
// the NodeConfig. field is a field of NodeSettings, named as in the file.
func (c NodeConfig) Profile(field string, nodeLabels map[string]string) string {
	for i, profile := range slices.Backward(c.Profiles) {
		if labels.SelectorFromSet(profile.NodeSelector).Matches(labels.Set(nodeLabels)) && profile.names(field) {
			return fmt.Sprintf("profiles[%d].", i)
		}
	}
	return ""
}

// Differing returns the fields, ascending, that have other values on a node with one of two
// sets of labels than with the other.
func (c NodeConfig) Differing(one, other map[string]string) (fields []string) {
	a, b := c.For(one), c.For(other)
	for field := range a.named() {
		was, is := a.value(field), b.value(field)
		if !equality.Semantic.DeepEqual(was.Interface(), is.Interface()) || was.IsZero() != is.IsZero() { // an empty list may differ from none
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}

// Overlapping returns the fields, ascending, that several profiles of a node with these
// labels set, as in "reservedCPUs: profiles[0], profiles[2]". The last one wins.
func (c NodeConfig) Overlapping(nodeLabels map[string]string) (fields []string) {
	by := make(map[string][]string)
	for i, profile := range c.Profiles {
		if !labels.SelectorFromSet(profile.NodeSelector).Matches(labels.Set(nodeLabels)) {
			continue
		}
		for field, named := range profile.named() {
			if named {
				by[field] = append(by[field], fmt.Sprintf("profiles[%d]", i))
			}
		}
	}
	for field, profiles := range by {
		if len(profiles) > 1 {
			fields = append(fields, field+": "+strings.Join(profiles, ", "))
		}
	}
	slices.Sort(fields)
	return fields
}

// names reports whether the field is set.
func (s NodeSettings) names(field string) bool { return s.named()[field] }

// value returns the field with this name in JSON, which is that of named.
func (s NodeSettings) value(name string) reflect.Value {
	return reflect.ValueOf(s).FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
}

// named returns all fields, and whether they are set.
func (s NodeSettings) named() map[string]bool {
	return map[string]bool{
		"reservedCPUs":       s.ReservedCPUs != "",
		"reservedMemory":     s.ReservedMemory != nil,
		"reservedHugepages":  s.ReservedHugepages != nil,
		"reservedNodeMemory": s.ReservedNodeMemory != nil,
		"exclude":            s.Exclude != nil,
		"exclusivity":        s.Exclusivity != "",
		"cpuQuota":           s.CPUQuota != "",
		"zoneBy":             s.ZoneBy != "",
		"zoneOrder":          s.ZoneOrder != "",
		"groups":             s.Groups != nil,
		"accounting":         s.Accounting != "",
		"otherCPUDrivers":    s.OtherCPUDrivers != nil,
		"otherMemoryDrivers": s.OtherMemoryDrivers != nil,
		"numaNodeKeys":       s.NUMANodeKeys != nil,
		"numaNodeLists":      s.NUMANodeLists != "",
		"publishing":         s.Publishing != "",
		"devices":            s.Devices != nil,
		"cache":              s.Cache != nil,
		"performance":        s.Performance != nil,
	}
}

// validateSelector refuses a selector that no node can match, and one that all nodes
// match.
func (p NodeProfile) validateSelector() error {
	if len(p.NodeSelector) == 0 {
		return errors.New("nodeSelector: want at least one label")
	}
	for _, key := range slices.Sorted(maps.Keys(p.NodeSelector)) {
		if problems := content.IsLabelKey(key); len(problems) > 0 {
			return fmt.Errorf("nodeSelector: key %q: %s", key, problems[0])
		}
		if problems := content.IsLabelValue(p.NodeSelector[key]); len(problems) > 0 {
			return fmt.Errorf("nodeSelector[%s]: %q: %s", key, p.NodeSelector[key], problems[0])
		}
	}
	return nil
}
