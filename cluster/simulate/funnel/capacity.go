package funnel

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
)

// lack is a capacity or counter, and the devices on which it is not sufficient.
type lack struct {
	shortage // of the first of the devices that have the capacity at all
	devices  []*inventory.Device
	lines    []string // what each of them lacks
}

// explainCapacity says for each capacity that is not sufficient how much of it is left,
// and who has the rest.
func (v *View) explainCapacity(f *funnel, out []*inventory.Device) (findings []finding) {
	var lacks []*lack
	split, isSplit := f.explainSplit()
	for _, d := range out {
		for _, s := range withoutFollowing(v.shortages(f.Alternative, d)) {
			if s.missing && isSplit {
				continue // other devices have it
			}
			i := slices.IndexFunc(lacks, func(l *lack) bool { return l.name == s.name })
			if i < 0 {
				i = len(lacks)
				lacks = append(lacks, &lack{shortage: s})
			}
			if lacks[i].missing {
				lacks[i].shortage = s
			}
			lacks[i].devices, lacks[i].lines = append(lacks[i].devices, d), append(lacks[i].lines, s.on(d))
		}
	}
	for _, l := range lacks {
		found := v.explainLack(l, f.matched)
		switch {
		case l.counter && l.gate == "":
			found.holders = v.counterHolders(l.devices[0], l.name)
		case !l.counter:
			for _, d := range l.devices {
				found.holders = append(found.holders, v.holdersOf(d, l.name)...)
			}
		}
		findings = append(findings, found)
	}
	if isSplit {
		findings = append([]finding{split}, findings...)
	}
	return findings
}

// withoutFollowing leaves out capacities that are short only because another one is. The
// other one limits the number of requests that a device can have, and the device has the
// maximum of the capacity for each of them. So the capacity only limits each request by
// itself, as the bandwidth of a cache does.
func withoutFollowing(list []shortage) []shortage {
	return slices.DeleteFunc(slices.Clone(list), func(s shortage) bool {
		return s.limit == nil && s.most != nil && slices.ContainsFunc(list, func(other shortage) bool {
			each, times := other.each(), other.value.Value()
			return each > 0 && s.value.Value() >= times/each*s.most.Value()
		})
	})
}

// each returns the amount that every request takes, if there is no choice; else 0.
func (s shortage) each() int64 {
	if s.only == nil {
		return 0
	}
	return s.only.Value()
}

func (v *View) explainLack(l *lack, matched []resourceapi.FullyQualifiedName) finding {
	switch {
	case l.missing:
		return finding{sentence: fmt.Sprintf("no device has a capacity named %q", l.name), hint: misspellingHint(l.name, l.devices)}
	case l.gate != "":
		return finding{sentence: fmt.Sprintf("the devices consume counters, and the feature gate %s is off", l.gate)}
	case l.counter:
		return finding{sentence: fmt.Sprintf("too little of the pool's counter %s is left: %s", l.name, listText(l.lines))}
	case l.only != nil && l.limit == nil:
		return finding{sentence: fmt.Sprintf("every request takes %s %s of one device: %s", l.charged.String(), l.name, listText(l.lines))}
	case !l.named:
		return finding{
			sentence: fmt.Sprintf("the request does not name capacity %s, so it takes %s of one device: %s", l.name, l.charged.String(), listText(l.lines)),
			hint:     fmt.Sprintf("name %s in the request's capacity: otherwise the request takes the driver's default, or all of it", l.name),
		}
	}
	text := fmt.Sprintf("asks for %s %s of one device", l.asked.String(), l.name)
	if l.asked.Cmp(l.charged) != 0 {
		text += fmt.Sprintf(", rounded up to %s", l.charged.String())
	}
	return finding{sentence: text + ": " + listText(l.lines), hint: v.capacityHint(l.shortage, l.devices, matched)}
}

// on says what a device lacks.
func (s shortage) on(d *inventory.Device) string {
	if s.limit != nil {
		return fmt.Sprintf("%s allows at most %s per request", d.Name, s.limit.String())
	}
	if s.counter {
		return fmt.Sprintf("%s needs %s, %s left", d.Name, s.charged.String(), s.free.String())
	}
	value := d.Capacity[resourceapi.QualifiedName(s.name)].Value
	if s.free.Cmp(value) == 0 {
		return fmt.Sprintf("%s has %s", d.Name, s.free.String())
	}
	return fmt.Sprintf("%s has %s of %s left", d.Name, s.free.String(), value.String())
}

// misspellingHint looks for the capacity that the user probably meant.
func misspellingHint(name string, out []*inventory.Device) string {
	known := make(map[string]bool)
	for _, d := range out {
		for has := range d.Capacity {
			known[string(has)] = true
		}
	}
	names := sortedNames(known)
	for _, has := range names {
		if simplify(has) == simplify(name) {
			why := ""
			if domain, _, found := strings.Cut(name, "/"); found && domain == out[0].Slice.Spec.Driver {
				why = ", without the driver's prefix"
			}
			return fmt.Sprintf("write %s instead of %s%s: a request must spell a capacity as the device does", has, name, why)
		}
	}
	if len(names) == 0 {
		return "these devices have no capacities: remove capacity from the request"
	}
	return "the devices have these capacities: " + strings.Join(names, ", ")
}

// simplify removes the domain, punctuation and a final s from a name, and converts it
// to lower case, so that similar names are equal.
func simplify(name string) string {
	name = name[strings.LastIndex(name, "/")+1:]
	name = strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name))
	return strings.TrimSuffix(name, "s")
}

// capacityHint gives a hint if the amount would fit without rounding, if several devices
// together have enough, or if no request can have as much. matched are attributes that
// the devices of all parts of a request must have in common.
func (v *View) capacityHint(s shortage, out []*inventory.Device, matched []resourceapi.FullyQualifiedName) string {
	if s.asked.Cmp(s.charged) < 0 && slices.ContainsFunc(out, func(d *inventory.Device) bool { return s.asked.Cmp(v.freeOf(s.name, d)) <= 0 }) {
		return fmt.Sprintf("%s would fit, but the scheduler rounds %s up to %s: ask for a multiple of the step", s.asked.String(), s.name, s.charged.String())
	}
	enough := func(list []*inventory.Device) bool {
		var sum resource.Quantity
		for _, d := range list {
			sum.Add(v.freeOf(s.name, d))
		}
		return len(list) > 1 && s.charged.Cmp(sum) <= 0
	}
	switch {
	case slices.ContainsFunc(placesOf(out, matched), enough):
		return fmt.Sprintf("a request gets its %s from one device, and no device has enough: split the request into several", s.name)
	case s.limit != nil:
		return fmt.Sprintf("ask for at most %s %s: no request gets more of one device", s.limit.String(), s.name)
	case enough(out):
		return fmt.Sprintf("no device has enough %s, and the claim cannot have devices that differ in %s: ask for less", s.name, joined(matched))
	}
	return ""
}

// placesOf returns the devices in groups that have the values of these attributes in
// common.
func placesOf(list []*inventory.Device, attributes []resourceapi.FullyQualifiedName) (places [][]*inventory.Device) {
	index := make(map[string]int)
	for _, d := range list {
		values := ""
		for _, name := range attributes {
			value, _ := attributeOf(d, name)
			values += value + "\n"
		}
		i, known := index[values]
		if !known {
			i = len(places)
			index[values], places = i, append(places, nil)
		}
		places[i] = append(places[i], d)
	}
	return places
}

func joined(names []resourceapi.FullyQualifiedName) string {
	var texts []string
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return strings.Join(texts, ", ")
}

func (v *View) freeOf(name string, d *inventory.Device) resource.Quantity {
	value := d.Capacity[resourceapi.QualifiedName(name)].Value
	free := value.DeepCopy()
	if taken := v.State.AggregatedCapacity[d.ID][resourceapi.QualifiedName(name)]; taken != nil {
		free.Sub(*taken)
	}
	return free
}
