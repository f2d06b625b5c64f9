package probe

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// sort is a sort of devices.
type sort struct {
	driver, kind string // the kind of a device of this driver, or ""
	shared       bool   // it allows several allocations
	features     []feature
	known        bool // all that these devices can have is in features
}

// otherDriver is a driver that no selector names.
const otherDriver = "other.example.com"

func (s sort) isZone() bool  { return deviceclasses.IsZoneKind(s.kind) }
func (s sort) isCache() bool { return s.kind == deviceclasses.KindCache }
func (s sort) foreign() bool { return s.kind == "" }

// sorts returns the sorts of devices that can make a difference to the selectors, devices
// of other drivers first.
func sorts(texts []text) (all []sort) {
	features := featuresOf(texts, foreign())
	all = append(all, sort{driver: otherDriver, features: features, known: true}, sort{driver: otherDriver, shared: true, features: features, known: true})
	for _, name := range literalsFor(texts, "driver").words {
		if name != deviceclasses.DriverName && !slices.ContainsFunc(all, func(s sort) bool { return s.driver == name }) {
			all = append(all, sort{driver: name, features: features}, sort{driver: name, shared: true, features: features})
		}
	}
	table := deviceclasses.Attributes()
	for _, kind := range slices.Concat(deviceclasses.ZoneKinds(), []string{deviceclasses.KindCache}, deviceclasses.FunctionKinds()) {
		next := sort{driver: deviceclasses.DriverName, kind: kind, known: true}
		next.features = featuresOf(texts, slices.DeleteFunc(slices.Clone(table), func(a deviceclasses.AttributeRow) bool {
			return !slices.Contains(a.Kinds, kind) || a.Name == deviceclasses.AttributeKind
		}))
		switch {
		case next.isZone():
			next.shared, next.features = true, append(next.features, capacitiesOf(texts, zoneCapacities(texts))...)
		case next.isCache():
			next.shared, next.features = true, append(next.features, capacitiesOf(texts, deviceclasses.CacheCapacities())...)
		}
		all = append(all, next)
	}
	return all
}

// feature is an attribute or capacity that devices of a sort can have, with the values
// that make a difference to the selectors.
type feature struct {
	names      []resourceapi.QualifiedName
	ids        []string // names without a domain, also of attributes that depend on it
	onlyIf     resourceapi.QualifiedName
	values     []resourceapi.DeviceAttribute
	capacities []resource.Quantity // of a capacity
	absent     bool
}

// readBy reports whether a selector can read it, or an attribute that depends on it.
func (f *feature) readBy(text *text) bool { return slices.ContainsFunc(f.ids, text.reads) }

// idOf returns the name without its domain.
func idOf(name resourceapi.QualifiedName) string {
	if _, id, qualified := strings.Cut(string(name), "/"); qualified {
		return id
	}
	return string(name)
}

// foreign are the attributes whose names are not this driver's, so that a device of
// another driver can have them, whatever else it has.
func foreign() (rows []deviceclasses.AttributeRow) {
	for _, a := range deviceclasses.Attributes() {
		known := slices.ContainsFunc(rows, func(r deviceclasses.AttributeRow) bool { return r.Name == a.Name })
		if strings.Contains(string(a.Name), "/") && !known {
			rows = append(rows, deviceclasses.AttributeRow{Name: a.Name, Type: a.Type, Absent: "its driver does not publish it"})
		}
	}
	return rows
}

// featuresOf returns a feature for each row, but one for all attributes of the same value.
func featuresOf(texts []text, rows []deviceclasses.AttributeRow) (features []feature) {
	for _, a := range rows {
		if a.Same != "" {
			of := slices.IndexFunc(features, func(f feature) bool { return f.names[0] == a.Same })
			features[of].names = append(features[of].names, a.Name)
			continue
		}
		id := idOf(a.Name)
		f := feature{names: []resourceapi.QualifiedName{a.Name}, ids: []string{id}, onlyIf: a.OnlyIf, absent: a.Absent != ""}
		for _, other := range rows {
			if other.OnlyIf == a.Name {
				f.ids = append(f.ids, idOf(other.Name))
			}
		}
		literals := literalsFor(texts, id)
		switch a.Type {
		case deviceclasses.Number:
			for _, value := range literals.choices() {
				f.values = append(f.values, resourceapi.DeviceAttribute{IntValue: ptr.To(value)})
			}
		case deviceclasses.Flag:
			f.values = []resourceapi.DeviceAttribute{{BoolValue: ptr.To(true)}, {BoolValue: ptr.To(false)}}
		default:
			words := a.Words
			if !a.Closed {
				words = literals.texts(words)
			}
			for _, value := range words {
				f.values = append(f.values, resourceapi.DeviceAttribute{StringValue: ptr.To(value)})
			}
		}
		features = append(features, f)
	}
	return features
}

// large is more than devices have of anything, except bytes of memory.
const large = 1 << 40

// choices are the numbers in the conditions and their neighbours, or any two.
func (l literals) choices() (numbers []int64) {
	for _, n := range l.numbers {
		numbers = append(numbers, n-1, n, n+1)
	}
	if !l.decide || len(numbers) == 0 {
		numbers = append(numbers, 0, 1)
	}
	if !l.decide {
		numbers = append(numbers, large)
	}
	slices.Sort(numbers)
	return slices.DeleteFunc(slices.Compact(numbers), func(n int64) bool { return n < 0 })
}

// texts are the strings in the conditions and one more, or all usual values.
func (l literals) texts(usual []string) (texts []string) {
	texts = slices.Compact(slices.Sorted(slices.Values(l.words)))
	for _, value := range append(slices.Clip(usual), "other") {
		if slices.Contains(texts, value) {
			continue
		}
		if texts = append(texts, value); l.decide {
			break
		}
	}
	return texts
}

// zoneCapacities are the names of the capacities of zones.
func zoneCapacities(texts []text) []resourceapi.QualifiedName {
	names := []resourceapi.QualifiedName{deviceclasses.CapacityCPU, deviceclasses.CapacityMemory}
	for _, text := range texts {
		for _, c := range text.conditions {
			for _, name := range c.names {
				if name := resourceapi.QualifiedName(name); strings.HasPrefix(string(name), deviceclasses.CapacityHugepagesPrefix) && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// capacitiesOf are capacities with these names. A device lacks those of which it has none.
func capacitiesOf(texts []text, names []resourceapi.QualifiedName) (features []feature) {
	for _, name := range names {
		f := feature{names: []resourceapi.QualifiedName{name}, ids: []string{string(name)}, absent: true}
		f.capacities = []resource.Quantity{*resource.NewQuantity(1<<60, resource.BinarySI), resource.MustParse("1")}
		for _, word := range literalsFor(texts, string(name)).words {
			if amount, err := resource.ParseQuantity(word); err == nil {
				f.capacities = append(f.capacities, amount)
			}
		}
		features = append(features, f)
	}
	return features
}
