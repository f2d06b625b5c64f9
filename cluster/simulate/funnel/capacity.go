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

// explainCapacity names the first capacity that is in the way, and what is left
// of it on the devices that were still in the race.
func (v *View) explainCapacity(f *funnel, out []*inventory.Device) (sentence, hint string) {
	if len(out) == 0 {
		return "there are no more", ""
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
		return fmt.Sprintf("no device has a capacity %q", first.name), misspelled(first.name, out)
	case first.counter:
		return fmt.Sprintf("counter %s of the pool: %s", first.name, some(lines)), ""
	case !first.named:
		return fmt.Sprintf("capacity %s, which the request does not name, is charged as %s: %s", first.name, first.charged.String(), some(lines)),
			fmt.Sprintf("name %s in the request's capacity: without a default of the driver, all of it is charged", first.name)
	}
	text := fmt.Sprintf("%s %s asked", first.asked.String(), first.name)
	if first.asked.Cmp(first.charged) != 0 {
		text += fmt.Sprintf(", which is rounded up to %s", first.charged.String())
	}
	return text + ": " + some(lines), v.capacityHint(first, out)
}

func (s shortage) on(d *inventory.Device) string {
	if s.limit != nil {
		return fmt.Sprintf("%s gives a request at most %s", d.Name, s.limit.String())
	}
	value := d.Capacity[resourceapi.QualifiedName(s.name)].Value
	if s.counter || s.free.Cmp(value) == 0 {
		return fmt.Sprintf("%s has %s", d.Name, s.free.String())
	}
	return fmt.Sprintf("%s has %s of %s left", d.Name, s.free.String(), value.String())
}

// misspelled finds the capacity that was probably meant.
func misspelled(name string, out []*inventory.Device) string {
	known := make(map[string]bool)
	for _, d := range out {
		for has := range d.Capacity {
			known[string(has)] = true
		}
	}
	names := sortedNames(known)
	for _, has := range names {
		if plain(has) == plain(name) {
			why := ""
			if domain, _, found := strings.Cut(name, "/"); found && domain == out[0].Slice.Spec.Driver {
				why = ", without the driver's prefix"
			}
			return fmt.Sprintf("write %s instead of %s%s: a request has to spell a capacity as the device does", has, name, why)
		}
	}
	if len(names) == 0 {
		return "these devices have no capacities: leave capacity out of the request"
	}
	return "the capacities there are: " + strings.Join(names, ", ")
}

// plain is a name without domain, case and punctuation, and without an s at its
// end.
func plain(name string) string {
	name = name[strings.LastIndex(name, "/")+1:]
	name = strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name))
	return strings.TrimSuffix(name, "s")
}

// capacityHint helps where rounding decides, and where several devices would do
// what one cannot.
func (v *View) capacityHint(s shortage, out []*inventory.Device) string {
	if s.asked.Cmp(s.charged) < 0 && slices.ContainsFunc(out, func(d *inventory.Device) bool { return s.asked.Cmp(v.freeOf(s.name, d)) <= 0 }) {
		return fmt.Sprintf("%s would fit, but %s comes in steps and is rounded up to %s: ask for a multiple of the step", s.asked.String(), s.name, s.charged.String())
	}
	var sum resource.Quantity
	for _, d := range out {
		sum.Add(v.freeOf(s.name, d))
	}
	if len(out) > 1 && s.charged.Cmp(sum) <= 0 {
		return fmt.Sprintf("a request gets its %s from one device, and only several together have so much: split it into several requests", s.name)
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
