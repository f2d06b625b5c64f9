package funnel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// attributeOf returns a value of the device as text, such as [0, 1] for a list.
func attributeOf(d *inventory.Device, name resourceapi.FullyQualifiedName) (text string, has bool) {
	list, one := elementsOf(d, name)
	text = strings.Join(list, ", ")
	if !one && len(list) > 0 {
		text = "[" + text + "]"
	}
	return text, len(list) > 0
}

// elementsOf returns the elements of a list as text, each once, or one value. Two of them are equal if and
// only if their texts are equal.
func elementsOf(d *inventory.Device, name resourceapi.FullyQualifiedName) (list []string, one bool) {
	value, _ := spelling.Attribute(d.Slice.Spec.Driver, d.Attributes, name)
	switch {
	case value.StringValue != nil:
		return []string{fmt.Sprintf("%q", *value.StringValue)}, true
	case value.IntValue != nil:
		return []string{fmt.Sprint(*value.IntValue)}, true
	case value.BoolValue != nil:
		return []string{fmt.Sprint(*value.BoolValue)}, true
	case value.VersionValue != nil:
		return []string{"v" + *value.VersionValue}, true
	}
	add := func(text string) {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for _, text := range value.StringValues {
		add(fmt.Sprintf("%q", text))
	}
	for _, number := range value.IntValues {
		add(fmt.Sprint(number))
	}
	for _, flag := range value.BoolValues {
		add(fmt.Sprint(flag))
	}
	for _, version := range value.VersionValues {
		add("v" + version)
	}
	return list, false
}

// capacityOf returns a capacity of the device as text.
func capacityOf(d *inventory.Device, name resourceapi.FullyQualifiedName) (text string, has bool) {
	for spelled, of := range d.Capacity {
		if spelling.FullName(d.Slice.Spec.Driver, spelled) == name {
			return spelling.Text(of.Value), true
		}
	}
	return "", false
}

// maxListed is the maximum number of things that a sentence names.
const maxListed = 4

func listText(list []string) string { return message.First(list, maxListed) }

// listed names the first things of a list.
func listed[T any](list []T, text func(T) string) string {
	var texts []string
	for _, one := range list {
		texts = append(texts, text(one))
	}
	return listText(texts)
}

func devices(count int) string {
	if count == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", count)
}

func isAre(count int) string {
	if count == 1 {
		return "is"
	}
	return "are"
}

// sortedNames returns the keys, sorted.
func sortedNames[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// texts converts names.
func texts[T ~string](names []T) (list []string) {
	for _, name := range names {
		list = append(list, string(name))
	}
	return list
}
