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

// explainCapacity names the first capacity that is not sufficient, and says how much of
// it is left on the devices that passed the earlier stages.
func (v *View) explainCapacity(f *funnel, out []*inventory.Device) (sentence, hint string) {
	if len(out) == 0 {
		return "no more devices are left", ""
	}
	first := v.shortages(f.Alternative, out[0])[0]
	var lines []string
	for _, d := range out {
		for _, s := range v.shortages(f.Alternative, d) {
			if s.name == first.name {
				lines = append(lines, s.on(d))
			}
		}
	}
	switch {
	case first.missing:
		return fmt.Sprintf("no device has a capacity named %q", first.name), misspellingHint(first.name, out)
	case first.gate != "":
		return fmt.Sprintf("the devices consume counters, and the feature gate %s is off", first.gate), ""
	case first.counter:
		return fmt.Sprintf("too little of the pool's counter %s is left: %s", first.name, listText(lines)), ""
	case !first.named:
		return fmt.Sprintf("the request does not name capacity %s, so it takes %s of one device: %s", first.name, first.charged.String(), listText(lines)),
			fmt.Sprintf("name %s in the request's capacity: otherwise the request takes the driver's default, or all of it", first.name)
	}
	text := fmt.Sprintf("asks for %s %s of one device", first.asked.String(), first.name)
	if first.asked.Cmp(first.charged) != 0 {
		text += fmt.Sprintf(", rounded up to %s", first.charged.String())
	}
	return text + ": " + listText(lines), v.capacityHint(first, out)
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

// capacityHint gives a hint if the amount would fit without rounding, or if several
// devices together have enough.
func (v *View) capacityHint(s shortage, out []*inventory.Device) string {
	if s.asked.Cmp(s.charged) < 0 && slices.ContainsFunc(out, func(d *inventory.Device) bool { return s.asked.Cmp(v.freeOf(s.name, d)) <= 0 }) {
		return fmt.Sprintf("%s would fit, but the scheduler rounds %s up to %s: ask for a multiple of the step", s.asked.String(), s.name, s.charged.String())
	}
	var sum resource.Quantity
	for _, d := range out {
		sum.Add(v.freeOf(s.name, d))
	}
	if len(out) > 1 && s.charged.Cmp(sum) <= 0 {
		return fmt.Sprintf("a request gets its %s from one device, and no device has enough: split the request into several", s.name)
	}
	return ""
}

func (v *View) freeOf(name string, d *inventory.Device) resource.Quantity {
	value := d.Capacity[resourceapi.QualifiedName(name)].Value
	free := value.DeepCopy()
	if taken := v.State.AggregatedCapacity[d.ID][resourceapi.QualifiedName(name)]; taken != nil {
		free.Sub(*taken)
	}
	return free
}
