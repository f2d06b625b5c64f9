package numa

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Counters is what the kernel has counted for a group. A nil pointer means that it does
// not count this now.
type Counters struct {
	OccupancyBytes *uint64 // llc_occupancy: bytes that are in the cache now
	TotalBytes     *uint64 // mbm_total_bytes: bytes from and to any memory, since some moment
	LocalBytes     *uint64 // mbm_local_bytes: those of the near memory
}

// CacheCounters are the counters of one cache, mon_data/mon_L3_<Cache>.
type CacheCounters struct {
	Resource string // L3
	Cache    int
	Counters
	// Zones are the counters of each NUMA node of the cache, by id. It is empty unless
	// the machine counts so (sub-NUMA clustering); then Counters are the sums.
	Zones []ZoneCounters
}

// ZoneCounters are the counters of one NUMA node of a cache, mon_sub_L3_<Zone>.
type ZoneCounters struct {
	Zone int
	Counters
}

// ReadCountersOf is ReadCounters for one level-3 cache. The kernel reads each counter on a
// CPU of its cache, so this does not disturb CPUs of other caches.
func ReadCountersOf(mount fs.FS, group, monitor string, cache int) (CacheCounters, error) {
	return fleetingTree(mount).cacheCounters(level3Folder(group, monitor, cache), "L3", cache)
}

func (t tree) cacheCounters(folder, resource string, id int) (cache CacheCounters, err error) {
	cache.Resource, cache.Cache = resource, id
	if cache.Counters, err = t.counters(folder); err != nil {
		return CacheCounters{}, err
	}
	if cache.Zones, err = t.zoneCounters(folder, resource); err != nil {
		return CacheCounters{}, err
	}
	return cache, nil
}

// level3Folder has what is counted for a group in one level-3 cache.
func level3Folder(group, monitor string, cache int) string {
	return fmt.Sprintf("%s/mon_L3_%02d", countedFolder(group, monitor), cache)
}

// ReadBytesOf reads the bytes that are counted for a group in one level-3 cache, and not
// how much of the cache it occupies.
func ReadBytesOf(mount fs.FS, group string, cache int) (Counters, error) {
	t := fleetingTree(mount)
	var c Counters
	err := t.countersIn(level3Folder(group, "", cache), map[string]**uint64{totalBytes: &c.TotalBytes, localBytes: &c.LocalBytes})
	if err != nil {
		return Counters{}, err
	}
	return c, nil
}

// countedFolder has a folder for each cache in which a group is counted.
func countedFolder(group, monitor string) string {
	folder := cmp.Or(group, ".")
	if monitor != "" {
		folder = path.Join(folder, monitorsFolder, monitor)
	}
	return path.Join(folder, "mon_data")
}

// zoneCounters reads the NUMA nodes of a cache that are counted by themselves.
func (t tree) zoneCounters(folder, of string) (list []ZoneCounters, err error) {
	names, err := t.folders(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		resource, id, err := parseMonitored(name, "mon_sub_")
		if err == nil && resource != of {
			err = fmt.Errorf("it is not a part of %s", of)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s/%s: %w", folder, name, err)
		}
		zone := ZoneCounters{Zone: id}
		if zone.Counters, err = t.counters(path.Join(folder, name)); err != nil {
			return nil, err
		}
		list = append(list, zone)
	}
	slices.SortFunc(list, func(a, b ZoneCounters) int { return cmp.Compare(a.Zone, b.Zone) })
	return list, nil
}

// The files of counters.
const (
	occupancyBytes = "llc_occupancy"
	totalBytes     = "mbm_total_bytes"
	localBytes     = "mbm_local_bytes"
)

func (t tree) counters(folder string) (c Counters, err error) {
	err = t.countersIn(folder, map[string]**uint64{occupancyBytes: &c.OccupancyBytes, totalBytes: &c.TotalBytes, localBytes: &c.LocalBytes})
	if err != nil {
		return Counters{}, err
	}
	return c, nil
}

// countersIn reads some counters of a cache. One whose file is absent stays nil.
func (t tree) countersIn(folder string, files map[string]**uint64) error {
	for name, counter := range files {
		value, _, err := parseFile(t, path.Join(folder, name), parseCounter)
		if err != nil {
			return err
		}
		*counter = value
	}
	return nil
}

// parseCounter reads a counter. It is nil for the words that the kernel has for a value
// that it cannot give: rdtgroup_mondata_show in fs/resctrl/ctrlmondata.c.
func parseCounter(text string) (*uint64, error) {
	if slices.Contains([]string{"Unavailable", "Unassigned", "Error"}, text) {
		return nil, nil
	}
	value, err := parseUint(text, 10, 64, "a number of 64 bits, Unavailable, Unassigned or Error")
	if err != nil {
		return nil, err
	}
	return &value, nil
}

// parseMonitored reads the name of a folder such as mon_L3_00. A resource may have an
// underscore in its name.
func parseMonitored(name, prefix string) (resource string, id int, err error) {
	rest, ok := strings.CutPrefix(name, prefix)
	i := strings.LastIndexByte(rest, '_')
	if !ok || i <= 0 {
		return "", 0, fmt.Errorf("%.80q is not %s<resource>_<id>", name, prefix)
	}
	number, err := parseUint(rest[i+1:], 10, 31, "an id from 0 to 2^31-1")
	if err != nil {
		return "", 0, err
	}
	return rest[:i], int(number), nil
}
