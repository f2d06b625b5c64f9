package cpuset

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// maskGroupBits is the width of one comma-separated group of a kernel mask.
const maskGroupBits = 32

// Parse reads the kernel's list form, such as "0-3,8", with white space around it. The
// empty list is the empty set. Strides ("0-7:1/2"), which the kernel accepts but never
// prints, are refused.
func Parse(list string) (Set, error) {
	var s Set
	trimmed := strings.TrimSpace(list)
	if trimmed == "" {
		return s, nil
	}
	for span := range strings.SplitSeq(trimmed, ",") {
		first, last, err := parseSpan(span)
		if err != nil {
			return Set{}, fmt.Errorf("cpulist %.80q: %w", list, err)
		}
		for id := first; id <= last; id++ {
			s.words[id/wordBits] |= 1 << (id % wordBits)
		}
	}
	return s, nil
}

// parseSpan reads "4" or "4-7"; 0 ≤ first ≤ last < MaxCPUs.
func parseSpan(span string) (first, last int, err error) {
	low, high, isRange := strings.Cut(span, "-")
	if first, err = parseID(low); err != nil {
		return 0, 0, err
	}
	if !isRange {
		return first, first, nil
	}
	if last, err = parseID(high); err != nil {
		return 0, 0, err
	}
	if first > last {
		return 0, 0, fmt.Errorf("range %q runs backwards", span)
	}
	return first, last, nil
}

func parseID(text string) (int, error) {
	id, err := strconv.ParseUint(text, 10, 31)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && id >= MaxCPUs:
		return 0, fmt.Errorf("id %.20q is above %d", text, MaxCPUs-1)
	case err != nil:
		return 0, fmt.Errorf("id %.20q is not a decimal number", text)
	}
	return int(id), nil
}

// ParseMask reads the kernel's mask form: hexadecimal groups of 32 bits, the highest
// first, such as "00000000,0000ff0f", with white space around it.
func ParseMask(mask string) (Set, error) {
	var s Set
	groups := strings.Split(strings.TrimSpace(mask), ",")
	for i, group := range groups {
		word, err := strconv.ParseUint(group, 16, maskGroupBits)
		if err != nil {
			return Set{}, fmt.Errorf("cpu mask %.80q: group %.20q is not a hexadecimal number of 32 bits", mask, group)
		}
		low := (len(groups) - 1 - i) * maskGroupBits // the id of the group's bit 0
		if low < MaxCPUs {
			s.words[low/wordBits] |= word << (low % wordBits)
		} else if word != 0 { // a kernel built for more CPUs prints zeros up there
			return Set{}, fmt.Errorf("cpu mask %.80q: an id is above %d", mask, MaxCPUs-1)
		}
	}
	return s, nil
}

// Mask returns the kernel's mask form, such as "ff0f" or "1,00000000"; it is "0" for the
// empty set.
func (s Set) Mask() string {
	var mask []byte
	for low := MaxCPUs - maskGroupBits; low >= 0; low -= maskGroupBits {
		group := uint32(s.words[low/wordBits] >> (low % wordBits))
		switch {
		case len(mask) > 0:
			mask = fmt.Appendf(mask, ",%08x", group)
		case group != 0 || low == 0:
			mask = strconv.AppendUint(mask, uint64(group), 16)
		}
	}
	return string(mask)
}

// String returns the kernel's list form, such as "0-3,8"; it is empty for the empty set.
func (s Set) String() string {
	list := make([]byte, 0, 64) // on the stack, enough for most sets
	for first, ok := s.next(0); ok; {
		last := s.spanEnd(first)
		if len(list) > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, int64(first), 10)
		if last > first {
			list = append(list, '-')
			list = strconv.AppendInt(list, int64(last), 10)
		}
		first, ok = s.next(last + 1)
	}
	return string(list)
}

// spanEnd returns the last of the consecutive ids that start at first. The set contains
// first.
func (s *Set) spanEnd(first int) (last int) {
	i := first / wordBits
	missing := ^s.words[i] &^ (1<<(first%wordBits) - 1)
	for missing == 0 {
		if i++; i == len(s.words) {
			return MaxCPUs - 1
		}
		missing = ^s.words[i]
	}
	return i*wordBits + bits.TrailingZeros64(missing) - 1
}

// MarshalText returns the list form: a set in a JSON file is a string.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the list form.
func (s *Set) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
