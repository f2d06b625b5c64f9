package resctrlfs

import (
	"fmt"
	"strings"
	"syscall"
)

const (
	shareable = "shareable"
	exclusive = "exclusive"
)

func (g *group) modeText() string {
	if g.exclusive {
		return exclusive + "\n"
	}
	return shareable + "\n"
}

func (f *FS) writeMode(g *group, text string) error {
	text, ok := withoutNewline(text)
	if !ok {
		return syscall.EINVAL
	}
	f.newCommand(Linux612)
	switch {
	case text == shareable:
		g.exclusive = false
	case text == exclusive && g.exclusive:
	case text == exclusive:
		if err := f.checkExclusive(g); err != nil {
			return err
		}
		g.exclusive = true
	case text == "pseudo-locksetup" && g == f.root:
		return f.refuse(syscall.EINVAL, "Cannot pseudo-lock default group")
	case text == "pseudo-locksetup":
		return f.refuse(syscall.EINVAL, "Pseudo-locking not supported")
	default:
		return f.refuse(syscall.EINVAL, "Unknown or unsupported mode")
	}
	return nil
}

// checkExclusive tests the masks of every cache, whether or not the group has CPUs there.
func (f *FS) checkExclusive(g *group) error {
	hasCache := false
	for _, s := range f.schemas {
		if !s.isCache {
			continue
		}
		hasCache = true
		for _, id := range f.domains() {
			if f.overlaps(domain{s, id}, s.values[id][g.closid], g.closid, false) {
				return f.refuse(syscall.EINVAL, "Schemata overlaps")
			}
		}
	}
	if !hasCache {
		return f.refuse(syscall.EINVAL, "Cannot be exclusive without CAT/CDP")
	}
	return nil
}

// overlaps reports whether a mask has a way of another group, or of devices. If
// onlyExclusive is true, only exclusive groups count.
func (f *FS) overlaps(d domain, mask uint64, closid int, onlyExclusive bool) bool {
	if !onlyExclusive && mask&f.machine.Shareable != 0 {
		return true
	}
	for _, g := range f.controlGroups() {
		if g.closid == closid || onlyExclusive && !g.exclusive {
			continue
		}
		for _, s := range f.schemas { // code and data are in the same cache
			if s.isCache && s.values[d.id][g.closid]&mask != 0 {
				return true
			}
		}
	}
	return false
}

// bitUsageText says of each way, the highest first, who uses it.
func (f *FS) bitUsageText(cache string) string {
	s := f.schema(cache)
	var domains []string
	for _, id := range f.domains() {
		var shared, owned uint64
		for _, g := range f.controlGroups() {
			if g.exclusive {
				owned |= s.values[id][g.closid]
			} else {
				shared |= s.values[id][g.closid]
			}
		}
		var usage strings.Builder
		for bit := f.machine.Ways - 1; bit >= 0; bit-- {
			usage.WriteByte(usageOf(f.machine.Shareable>>bit&1 != 0, shared>>bit&1 != 0, owned>>bit&1 != 0))
		}
		domains = append(domains, fmt.Sprintf("%d=%s", id, usage.String()))
	}
	return strings.Join(domains, ";") + "\n"
}

func usageOf(devices, shared, owned bool) byte {
	switch {
	case devices && shared:
		return 'X'
	case devices:
		return 'H'
	case shared:
		return 'S'
	case owned:
		return 'E'
	}
	return '0'
}
