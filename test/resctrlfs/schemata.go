package resctrlfs

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"syscall"
)

// schema is a line of schemata: a resource that can be allocated.
type schema struct {
	name    string
	classes int
	isCache bool
	initial uint64

	// values are masks or percents, by cache id and CLOSID. Only caches with an online
	// CPU have them.
	values map[int][]uint64
}

func newSchema(name string, classes int, isCache bool, initial uint64) *schema {
	return &schema{name, classes, isCache, initial, map[int][]uint64{}}
}

// domain is a cache as a line of schemata names it.
type domain struct {
	*schema
	id int
}

func (f *FS) schemataText(g *group) string {
	return f.lines(g, func(s *schema, value uint64) string {
		switch {
		case s.isCache && f.machine.Kernel == Linux612:
			return fmt.Sprintf("%0*x", f.valueWidth(), value)
		case s.isCache:
			return fmt.Sprintf("%x", value)
		case f.machine.Kernel == Linux612:
			return fmt.Sprintf("%*d", f.valueWidth(), value)
		}
		return fmt.Sprint(value)
	})
}

// sizeText has bytes in place of masks.
func (f *FS) sizeText(g *group) string {
	return f.lines(g, func(s *schema, value uint64) string {
		if s.isCache {
			value = uint64(f.machine.Caches[0].Bytes / f.machine.Ways * bits.OnesCount64(value))
		}
		return fmt.Sprint(value)
	})
}

func (f *FS) lines(g *group, show func(*schema, uint64) string) string {
	width := 2
	if f.machine.Ways > 0 && f.machine.CodeData {
		width = len("L3CODE")
	}
	var text strings.Builder
	for _, s := range f.schemas {
		if g.closid >= s.classes {
			continue
		}
		var values []string
		for _, id := range f.domains() {
			values = append(values, fmt.Sprintf("%d=%s", id, show(s, s.values[id][g.closid])))
		}
		fmt.Fprintf(&text, "%*s:%s\n", width, s.name, strings.Join(values, ";"))
	}
	return text.String()
}

// valueWidth is the width of the widest value.
func (f *FS) valueWidth() int {
	width := (f.machine.Ways + 3) / 4
	if b := f.machine.Bandwidth; b != nil && b.Percent {
		return max(width, 3)
	} else if b != nil {
		return max(width, 4)
	}
	return width
}

// writeSchemata writes all that a text says, or nothing.
func (f *FS) writeSchemata(g *group, text string) error {
	text, ok := withoutNewline(text)
	if !ok {
		return syscall.EINVAL
	}
	f.newCommand(Linux612)
	staged := map[domain]uint64{}
	for row := range strings.SplitSeq(text, "\n") {
		name, values, found := strings.Cut(row, ":")
		name = strings.TrimSpace(name)
		if !found {
			return f.refuse(syscall.EINVAL, "Missing ':'")
		}
		if values == "" {
			return f.refuse(syscall.EINVAL, "Missing '%s' value", name)
		}
		s := f.schema(name)
		if s == nil || g.closid >= s.classes {
			return f.refuse(syscall.EINVAL, "Unknown or unsupported resource name '%s'", name)
		}
		if err := f.parseRow(g, s, values, staged); err != nil {
			return err
		}
	}
	for d, value := range staged {
		d.values[d.id][g.closid] = value
	}
	return nil
}

func (f *FS) schema(name string) *schema {
	for _, s := range f.schemas {
		if s.name == name {
			return s
		}
	}
	return nil
}

// parseRow adds what a row such as 0=f;1=ff says. What follows an empty value is ignored.
func (f *FS) parseRow(g *group, s *schema, row string, staged map[domain]uint64) error {
	for row != "" {
		var part string
		part, row, _ = strings.Cut(row, ";")
		idText, value, found := strings.Cut(part, "=")
		id, valid := parseUnsigned(idText, 10)
		if !found || !valid {
			return f.refuse(syscall.EINVAL, "Missing '=' or non-numeric domain")
		}
		d := domain{s, int(id)}
		if s.values[d.id] == nil {
			return syscall.EINVAL // and the kernel says no more
		}
		if _, twice := staged[d]; twice {
			return f.refuse(syscall.EINVAL, "Duplicate domain %d", id)
		}
		parse := f.parseBandwidth
		if s.isCache {
			parse = f.parseWays
		}
		parsed, err := parse(g, d, strings.TrimSpace(value))
		if err != nil {
			return err
		}
		staged[d] = parsed
	}
	return nil
}

func (f *FS) parseBandwidth(_ *group, _ domain, text string) (uint64, error) {
	b := f.machine.Bandwidth
	value, valid := parseUnsigned(text, 10)
	if !valid || value > 1<<32-1 {
		return 0, f.refuse(syscall.EINVAL, "Invalid MB value %s", text)
	}
	if f.machine.countsMBps() {
		return value, nil
	}
	if value < uint64(b.Min) || value > b.max() {
		return 0, f.refuse(syscall.EINVAL, "MB value %d out of range [%d,%d]", value, b.Min, b.max())
	}
	step := uint64(b.Step)
	return (value + step - 1) / step * step, nil
}

func (f *FS) parseWays(g *group, d domain, text string) (uint64, error) {
	m := f.machine
	mask, valid := parseUnsigned(text, 16)
	if !valid {
		return 0, f.refuse(syscall.EINVAL, "Non-hex character in the mask %s", text)
	}
	if m.MinBits > 0 && mask == 0 || mask > m.full() {
		return 0, f.refuse(syscall.EINVAL, "Mask out of range")
	}
	if !m.Sparse && mask != firstRun(mask) {
		return 0, f.refuse(syscall.EINVAL, "The mask %x has non-consecutive 1-bits", mask)
	}
	if bits.OnesCount64(firstRun(mask)) < m.MinBits {
		return 0, f.refuse(syscall.EINVAL, "Need at least %d bits in the mask", m.MinBits)
	}
	if f.overlaps(d, mask, g.closid, true) {
		return 0, f.refuse(syscall.EINVAL, "Overlaps with exclusive group")
	}
	if g.exclusive && f.overlaps(d, mask, g.closid, false) {
		return 0, f.refuse(syscall.EINVAL, "Overlaps with other group")
	}
	return mask, nil
}

// parseUnsigned reads a number as the kernel's kstrtoul does.
func parseUnsigned(text string, base int) (value uint64, valid bool) {
	text = strings.TrimPrefix(strings.TrimSuffix(text, "\n"), "+")
	if base == 16 && len(text) > 2 && strings.EqualFold(text[:2], "0x") {
		text = text[2:]
	}
	if strings.ContainsAny(text, "+_") {
		return 0, false
	}
	value, err := strconv.ParseUint(text, base, 64)
	return value, err == nil
}
