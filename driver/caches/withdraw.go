package caches

import (
	"errors"

	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// Withdraw removes all groups of ours, and gives the default group all ways and no limit of
// bandwidth, as after the mount. Without a group of ours it changes nothing: then the
// driver has not divided the caches. Options are those that resctrl is mounted with. It may
// be called again after an error. Claims must hold no ways.
func Withdraw(host *resctrl.Host, options []string) error {
	state, err := host.Read()
	if errors.Is(err, resctrl.ErrNotMounted) {
		return nil
	}
	if err != nil {
		return err
	}
	monitoring := resctrl.MonitoringOf(state)
	var names []string
	for _, monitor := range monitoring.Groups {
		if resctrl.IsOurMonitor(monitor.Name) {
			names = append(names, monitor.Name)
		}
	}
	if _, err := host.Unmonitor(monitoring, names...); err != nil {
		return err
	}
	found := false
	for _, group := range state.Groups {
		found = found || resctrl.IsOurs(group.Name)
	}
	if !found {
		return nil
	}
	cache, resources, err := level3(&numa.Machine{Resctrl: &state.Info})
	if err != nil {
		return err
	}
	node := Node{Resources: resources, Bandwidth: bandwidthOf(&state.Info, options), cache: cache}
	for _, mask := range state.Groups[0].Schemata.Masks { // the default group has a mask in each cache
		if mask.Resource == resources[0] {
			node.cacheIDs = append(node.cacheIDs, mask.Cache)
		}
	}
	_, err = host.Repair(resctrl.Wanted{Default: node.everywhere(ways.Mask(cache.Mask), true)})
	return err
}
