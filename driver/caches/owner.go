package caches

import (
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// PoolOfGroup returns the pool to which a group of resctrl belongs as a whole: os, reserved,
// groups, infra or shared. It is empty for all other groups.
func PoolOfGroup(name string) string {
	switch name {
	case "":
		return ways.OS
	case resctrl.Name(groupReserved):
		return ways.Reserved
	case resctrl.Name(groupInfra):
		return ways.Infra
	case resctrl.Name(groupShared):
		return ways.Shared
	}
	if resctrl.IsNamed(name) {
		return ways.Groups
	}
	return ""
}

// AllWays returns the ways of level-3 caches, and those of them that devices use, too.
// They are 0 if the kernel does not divide such caches.
func AllWays(info numa.Resctrl) (all, devices ways.Mask) {
	for _, cache := range info.Caches {
		if isLevel3(cache.Name) {
			all |= ways.Mask(cache.Mask)
			devices |= ways.Mask(cache.ShareableMask)
		}
	}
	return all, devices
}

// WaysInUse returns the ways of a level-3 cache that a group has: those for code and for
// data, if they are apart. A group of another tool without CPUs and tasks uses none.
func WaysInUse(group numa.ResctrlGroup, cache int) (mask ways.Mask) {
	foreign := ForeignGroups(numa.ResctrlState{Groups: []numa.ResctrlGroup{group}})
	if len(foreign) > 0 {
		return foreign[0].Masks[cache]
	}
	for _, of := range group.Schemata.Masks {
		if isLevel3(of.Resource) && of.Cache == cache {
			mask |= ways.Mask(of.Mask)
		}
	}
	return mask
}
