package numa

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Schemata is what one group may use: the ways of caches, and bandwidth. It may be a part
// of a group's schemata: if you write it, what it does not name stays as it is.
// Documentation/filesystems/resctrl.rst.
type Schemata struct {
	Masks      []CacheMask      // by resource, then cache
	Bandwidths []CacheBandwidth // by resource, then cache
}

// CacheMask is which ways of one cache a group may fill.
type CacheMask struct {
	Resource string // L2, L3, or L2CODE, L2DATA, L3CODE, L3DATA if code and data are apart
	Cache    int    // id of the cache, at most 2^31-1; on some machines it is no small number
	Mask     uint64 // bit N is way N
}

// CacheBandwidth is how much bandwidth the CPUs of one cache may use.
type CacheBandwidth struct {
	Resource  string // MB, SMBA
	Cache     int    // id of the cache
	Bandwidth int    // in the unit of the machine; see BandwidthUnit
}

// maxBandwidth is what the kernel shows for "no limit" where MBps are counted.
const maxBandwidth = 1<<32 - 1

// Mask returns the mask of a cache; found is false if there is none.
func (s Schemata) Mask(resource string, cache int) (mask uint64, found bool) {
	for _, m := range s.Masks {
		if m.Resource == resource && m.Cache == cache {
			return m.Mask, true
		}
	}
	return 0, false
}

// Bandwidth returns the bandwidth of a cache; found is false if there is none.
func (s Schemata) Bandwidth(resource string, cache int) (bandwidth int, found bool) {
	for _, b := range s.Bandwidths {
		if b.Resource == resource && b.Cache == cache {
			return b.Bandwidth, true
		}
	}
	return 0, false
}

// IsEmpty reports whether nothing is named.
func (s Schemata) IsEmpty() bool { return len(s.Masks) == 0 && len(s.Bandwidths) == 0 }

// String returns the lines that can be written to a group's file "schemata". The kernel
// makes all of them or none, if the group is not locked.
func (s Schemata) String() string {
	var text strings.Builder
	resource := ""
	value := func(of string, cache int, format string, value any) {
		switch {
		case of == resource:
			text.WriteString(";")
		case resource != "":
			text.WriteString("\n")
		}
		if of != resource {
			text.WriteString(of + ":")
		}
		resource = of
		fmt.Fprintf(&text, "%d="+format, cache, value)
	}
	for _, m := range s.Masks {
		value(m.Resource, m.Cache, "%x", m.Mask)
	}
	for _, b := range s.Bandwidths {
		value(b.Resource, b.Cache, "%d", b.Bandwidth)
	}
	if resource != "" {
		text.WriteString("\n")
	}
	return text.String()
}

// Sort puts masks and bandwidths in their order.
func (s Schemata) Sort() {
	slices.SortFunc(s.Masks, func(a, b CacheMask) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Cache, b.Cache))
	})
	slices.SortFunc(s.Bandwidths, func(a, b CacheBandwidth) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Cache, b.Cache))
	})
}

// ParseSchemata reads the text of a group's file "schemata". It leaves out the resources
// that r does not describe, because only r tells masks from bandwidths, and those of a
// group that is not set up yet.
func (r Resctrl) ParseSchemata(text string) (Schemata, error) {
	var s Schemata
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		resource, values, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			return Schemata{}, fmt.Errorf("schemata %.80q: want <resource>:<cache>=<value>", line)
		}
		if seen[resource] {
			return Schemata{}, fmt.Errorf("schemata: resource %.80q occurs twice", resource)
		}
		seen[resource] = true
		if values == "uninitialized" {
			continue
		}
		if err := r.parseValues(&s, resource, values); err != nil {
			return Schemata{}, fmt.Errorf("schemata of %s: %w", resource, err)
		}
	}
	s.Sort()
	return s, nil
}

// parseValues adds the values of one resource.
func (r Resctrl) parseValues(s *Schemata, resource, values string) error {
	if i := slices.IndexFunc(r.Caches, func(c CacheAllocation) bool { return c.Name == resource }); i >= 0 {
		return perCache(values, func(cache int, value string) error {
			mask, err := parseBitMask(value)
			if err == nil && mask&^r.Caches[i].Mask != 0 {
				err = fmt.Errorf("mask %x of cache %d: the cache has ways %x", mask, cache, r.Caches[i].Mask)
			}
			s.Masks = append(s.Masks, CacheMask{resource, cache, mask})
			return err
		})
	}
	if slices.ContainsFunc(r.Bandwidths, func(b BandwidthAllocation) bool { return b.Name == resource }) {
		return perCache(values, func(cache int, value string) error {
			bandwidth, err := parseUint(value, 10, 32, "a bandwidth from 0 to 2^32-1")
			s.Bandwidths = append(s.Bandwidths, CacheBandwidth{resource, cache, int(bandwidth)})
			return err
		})
	}
	return nil
}

// perCache visits the values of a list such as "0=fff;1=fff". Kernels pad numbers with
// spaces or zeros.
func perCache(list string, visit func(cache int, value string) error) error {
	last := -1
	if list == "" { // all CPUs of all caches are offline
		return nil
	}
	for entry := range strings.SplitSeq(list, ";") {
		id, value, ok := strings.Cut(entry, "=")
		if !ok {
			return fmt.Errorf("%.80q is not <cache>=<value>", entry)
		}
		number, err := parseUint(strings.TrimSpace(id), 10, 31, "the id of a cache, from 0 to 2^31-1")
		if err != nil {
			return err
		}
		if int(number) <= last { // resctrl_find_domain keeps them in order
			return fmt.Errorf("cache %d comes after cache %d", number, last)
		}
		last = int(number)
		if err := visit(last, strings.TrimSpace(value)); err != nil {
			return err
		}
	}
	return nil
}

// WayUsage is who may use the ways of one cache, as the kernel counts it. A way is in
// one mask at least; in Groups and in Devices if both use it.
type WayUsage struct {
	Resource  string
	Cache     int
	Unused    uint64 // 0: no group, and no device
	Groups    uint64 // S, X: groups that share ways, also with each other
	Devices   uint64 // H, X: hardware such as network controllers
	Exclusive uint64 // E: one group whose mode is exclusive
	Locked    uint64 // P: a pseudo-locked group
}

// parseUsage reads bit_usage, such as "0=XXSSSS;1=XX0000": the highest way comes first.
func (c CacheAllocation) parseUsage(text string) (list []WayUsage, err error) {
	err = perCache(text, func(cache int, letters string) error {
		usage := WayUsage{Resource: c.Name, Cache: cache}
		if len(letters) != bits.Len64(c.Mask) {
			return fmt.Errorf("cache %d: %.80q describes %d ways, want %d", cache, letters, len(letters), bits.Len64(c.Mask))
		}
		users := map[byte][]*uint64{
			'0': {&usage.Unused}, 'S': {&usage.Groups}, 'X': {&usage.Groups, &usage.Devices},
			'H': {&usage.Devices}, 'E': {&usage.Exclusive}, 'P': {&usage.Locked},
		}
		for i, letter := range []byte(letters) {
			if users[letter] == nil {
				return fmt.Errorf("cache %d: %q in %.80q: want 0, S, X, H, E or P", cache, letter, letters)
			}
			for _, ways := range users[letter] {
				*ways |= 1 << (len(letters) - 1 - i)
			}
		}
		list = append(list, usage)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
