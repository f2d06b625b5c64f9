package object

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// HostileText is a text that a terminal would obey: it sets the title, clears the screen, turns
// text around, and begins a line that looks like an answer. It also has invisible
// characters.
const HostileText = "\x1b]0;owned\a\u202e\u009b2J\x7f\n\nowned: fits\u2028owned\u200b\U000e0041"

// EndlessAmount is an amount that an API server accepts in the requests of a claim.
// A program that compares it with another amount is busy for hours.
const EndlessAmount = "1e300000000"

// FullClaimSpec is the spec of a ResourceClaim in YAML, with a value in each field that a tenant
// may write.
const FullClaimSpec = `
spec:
  devices:
    requests:
    - name: zone
      exactly:
        deviceClassName: zone.dra.numa
        allocationMode: ExactCount
        count: 2
        selectors: [{cel: {expression: 'device.attributes["dra.numa"].kind == "zone"'}}]
        tolerations: [{key: a, operator: Equal, value: b, effect: NoSchedule}]
        capacity: {requests: {cpu: "2", memory: 1Mi}}
    - name: other
      firstAvailable:
      - {name: large, deviceClassName: zone.dra.numa, count: 1, capacity: {requests: {cpu: "64"}}}
      - {name: small, deviceClassName: zone.dra.numa, selectors: [{cel: {expression: "false"}}]}
    - {name: cache, exactly: {deviceClassName: cache.dra.numa, capacity: {requests: {ways: "4", bandwidthPercent: "40"}}}}
    constraints: [{requests: [zone, other], matchAttribute: dra.numa/socket}, {distinctAttribute: dra.numa/l3}]
    config:
    - {requests: [zone], opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, cores: whole, mixed: true}}}
    - {requests: [zone], opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: PerformanceConfig, governor: performance, minFrequency: 1GHz, maxFrequency: 1.5x base, energyPreference: power, idleLatency: 20, interrupts: away}}}
    - {requests: [cache], opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: CacheConfig, cpus: zone, maxWays: 5}}}
`

// PrintFault says what is wrong with a text that a program prints: a terminal would obey a part
// of it, or an object begins a line. It is "" if nothing is.
func PrintFault(text string) string {
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != '\n' {
			return fmt.Sprintf("prints %U in\n%q", r, text)
		}
	}
	if strings.Contains("\n"+text, "\nowned: ") {
		return "lets an object begin a line:\n" + text
	}
	return ""
}

// Leaf is a value of an object, or a key of one of its maps.
type Leaf struct {
	Path  string // such as .spec.devices.requests[0].name; that of a key begins with "key "
	Value any
	Set   func(any)
}

// chosen are the maps whose keys users choose.
var chosen = []string{"labels", "annotations", "nodeSelector", "requests", "limits", "overhead", "consumedCapacity", "parameters", "data", "matchLabels"}

// Leaves returns all values below a value, and the keys of the maps whose keys users choose.
func Leaves(value any) []Leaf { return leaves("", value, nil) }

func leaves(path string, value any, set func(any)) (list []Leaf) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := path + "." + key
			if slices.Contains(chosen, path[strings.LastIndex(path, ".")+1:]) {
				list = append(list, Leaf{"key " + below, key, func(other any) {
					moved := v[key]
					delete(v, key)
					v[fmt.Sprint(other)] = moved
				}})
			}
			list = append(list, leaves(below, v[key], func(other any) { v[key] = other })...)
		}
	case []any:
		for i := range v {
			list = append(list, leaves(path+"["+strconv.Itoa(i)+"]", v[i], func(other any) { v[i] = other })...)
		}
	default:
		list = append(list, Leaf{path, value, set})
	}
	return list
}

// MostWorse is the number of values that Worse has at most.
const MostWorse = 3

// Worse returns what a tenant may write instead: texts, then numbers and amounts. A value
// that is nil is no attempt.
func (l Leaf) Worse() (list []any) {
	text, isText := l.Value.(string)
	if !isText {
		return []any{nil, int64(9223372036854775807), int64(-1)}
	}
	list = []any{HostileText}
	if _, err := resource.ParseQuantity(text); err == nil && !strings.HasPrefix(l.Path, "key ") {
		list = append(list, EndlessAmount, "-5")
	}
	if strings.HasSuffix(l.Path, ".expression") {
		list = append(list, `quantity("`+EndlessAmount+`").isLessThan(quantity("1"))`)
	}
	return list
}

// Documents returns the documents of a text as JSON values, unchanged.
func Documents(tb testing.TB, text string) (objects []any) {
	tb.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object any
		if err := utilyaml.Unmarshal([]byte(document), &object); err != nil {
			tb.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// Variants calls try with the object as JSON value, once for each value of each field that a
// tenant may write instead.
func Variants(tb testing.TB, text string, try func(path string, object any)) {
	tb.Helper()
	for i := range Leaves(Documents(tb, text)[0]) {
		for kind := range MostWorse {
			object := Documents(tb, text)[0]
			leaf := Leaves(object)[i]
			if worse := leaf.Worse(); kind < len(worse) && worse[kind] != nil {
				leaf.Set(worse[kind])
				try(fmt.Sprintf("%s = %.40q", leaf.Path, fmt.Sprint(worse[kind])), object)
			}
		}
	}
}
