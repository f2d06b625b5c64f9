package driver

import "strings"

// The settings of a NodeConfig that a node may not carry out although it is ready.
const (
	SettingCache       = "cache"
	SettingPerformance = "performance"
)

// undone says why the node does not carry out a setting, besides what its cacheState says;
// "" if it does.
type undone struct{ measuring, tuning string }

// note remembers why a part of the NodeConfig is not carried out. The caller holds the lock.
func (d *Driver) note(part *string, why string) {
	if *part != why {
		*part = why
		d.show()
	}
}

// Unmet returns the settings of the NodeConfig that the node does not carry out, and why.
// It changes with RepairCaches and RepairPerformance.
func (d *Driver) Unmet() map[string]string {
	seen := d.shown.Load()
	unmet := make(map[string]string)
	for _, one := range []struct{ setting, why string }{
		{SettingCache, seen.caches.Undone()},
		{SettingCache, seen.undone.measuring},
		{SettingPerformance, seen.undone.tuning},
	} {
		if one.why != "" {
			unmet[one.setting] = strings.ReplaceAll(one.why, "\n", "; ")
		}
	}
	return unmet
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
