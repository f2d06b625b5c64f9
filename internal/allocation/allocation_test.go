package allocation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const ours, node = "dra.numa", "node-a"

// zone is a device of 4 CPUs that several claims can share.
func zone() resourceapi.Device {
	return resourceapi.Device{
		Name: "numa-0", AllowMultipleAllocations: new(true),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"kind": {StringValue: new("zone")}, "numaNode": {IntValue: new(int64(0))}, "a.b/version": {VersionValue: new("1.2.3")},
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"cpu": {Value: resource.MustParse("4")}},
	}
}

func TestSelectorMatches(t *testing.T) {
	d := zone()
	for expression, want := range map[string]bool{
		`device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"`:                          true,
		`device.attributes["dra.numa"].kind == "cache"`:                                                        false,
		`device.attributes["dra.numa"].numaNode + 1 == 1`:                                                      true,
		`device.attributes["a.b"].version.isGreaterThan(semver("1.2.0"))`:                                      true,
		`device.attributes["c.d"].?kind.orValue("") == "" && !("c.d" in device.attributes)`:                    true,
		`device.capacity["dra.numa"].cpu.compareTo(quantity("4")) == 0`:                                        true,
		`device.allowMultipleAllocations && size(device.attributes["dra.numa"]) == 2`:                          true,
		`device.attributes["dra.numa"].exists(name, name == "kind") && !has(device.attributes["dra.numa"].l3)`: true,
	} {
		compiled, err := Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		cached, err := NewCache(1, DefaultFeatures()).Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		for _, selector := range []*Selector{compiled, cached} {
			if matches, cost, err := selector.Matches(t.Context(), NewDevice(ours, &d)); matches != want || cost == 0 || err != nil {
				t.Errorf("%s: %t, cost %d, %v", expression, matches, cost, err)
			}
		}
	}
}

func TestErrorsOfSelectors(t *testing.T) {
	d := zone()
	selector, err := Compile(`device.attributes["dra.numa"].nothing == 1`)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = selector.Matches(t.Context(), NewDevice(ours, &d))
	if err == nil || !strings.HasPrefix(err.Error(), "no such key: nothing. consider using CEL optional chaining") {
		t.Errorf("an attribute that is missing: %v", err)
	}
	for expression, want := range map[string]string{
		"1 +":            "line 1, column 4: Syntax error: ",
		"true &&\n  x.y": "line 2, column 3: undeclared reference to 'x'",
		"1 + 1":          "", // a tree of another type
	} {
		if _, err := Compile(expression); err == nil {
			t.Errorf("%q compiles", expression)
		}
		if _, err := NewCache(1, DefaultFeatures()).Compile(expression); err == nil {
			t.Errorf("%q compiles", expression)
		}
		switch _, err := Parse(expression); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%q: %v, want %s", expression, err, want)
		}
	}
}

func TestTree(t *testing.T) {
	const text = `device.attributes["dra.numa"].?kind.orValue("") == "zone" && !(device.attributes["a.b"].c in [1, 2])` + "\n" +
		` && cel.bind(a, device.attributes["a.b"], a.d.exists(x, x > 7))`
	selector, err := Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := selector.Tree()
	if err != nil {
		t.Fatal(err)
	}
	first := tree.Root().AsCall().Args()[0] // the macros cannot be written again
	if got, err := tree.Text(first); err != nil || got != strings.Split(text, "\n")[0] {
		t.Errorf("the first conditions are\n%s, %v", got, err)
	}
	var words []string
	loops := 0
	Visit(tree.Root(), func(e Expr) {
		switch e.Kind() {
		case LiteralKind:
			if word, is := e.AsLiteral().(String); is {
				words = append(words, fmt.Sprintf("%s at %s", word, tree.Place(e)))
			}
		case ComprehensionKind:
			loops++
		}
	})
	if want := []string{"dra.numa at line 1, column 19", "zone at line 1, column 52"}; !slices.Contains(words, want[0]) || !slices.Contains(words, want[1]) || loops != 2 {
		t.Errorf("%d loops, words %q", loops, words)
	}
}

func TestIsFalseIsAProof(t *testing.T) {
	zone := Known{ours, map[string]any{"kind": "zone"}}
	for expression, want := range map[string]struct{ zone, any bool }{
		`device.attributes["dra.numa"].kind == "cache"`:                                           {true, false},
		`device.attributes["dra.numa"].kind == "zone"`:                                            {false, false},
		`device.attributes["dra.numa"].l3 == 1`:                                                   {false, false},
		`device.attributes["dra.numa"].l3 == 1 && device.attributes["dra.numa"].kind != "zone"`:   {true, false},
		`device.driver == "a.b"`:                                                                  {true, false},
		`device.allowMultipleAllocations`:                                                         {false, false},
		`size(device.attributes["dra.numa"]) == 1`:                                                {false, false},
		`device.capacity["dra.numa"].cpu.compareTo(quantity("4")) == 0 && device.driver == "a.b"`: {true, false},
		`1 > 2`: {true, true},
	} {
		selector, err := Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := selector.Tree()
		if err != nil {
			t.Fatal(err)
		}
		partial, err := tree.Partial(1000)
		if err != nil {
			t.Fatal(err)
		}
		if partial.IsFalse(zone) != want.zone || partial.IsFalse(Known{}) != want.any {
			t.Errorf("%s is false for a zone: %t, for anything: %t", expression, partial.IsFalse(zone), partial.IsFalse(Known{}))
		}
	}
}

// list is all DeviceClasses.
type list []*resourceapi.DeviceClass

func (l list) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l list) Get(name string) (*resourceapi.DeviceClass, error) {
	return l[slices.IndexFunc(l, func(class *resourceapi.DeviceClass) bool { return class.Name == name })], nil
}

func TestAllocatorCountsWhatClaimsHold(t *testing.T) {
	classes := list{{ObjectMeta: metav1.ObjectMeta{Name: "zone"}, Spec: resourceapi.DeviceClassSpec{
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "dra.numa"`}}},
	}}}
	published := func(name string) Slices {
		return NewSlices([]*resourceapi.ResourceSlice{{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: ours, NodeName: new(name), Devices: []resourceapi.Device{zone()}, Pool: resourceapi.ResourcePool{Name: name, ResourceSliceCount: 1},
		}}})
	}
	claim := func(cpus string) *resourceapi.ResourceClaim {
		return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default"}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "cpus", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: "zone", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
				Capacity: &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse(cpus)}},
			}}},
		}}}
	}
	id := MakeDeviceID(ours, node, "numa-0")
	three := map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse("3")}
	for name, row := range map[string]struct {
		hold        func(State)
		whole, held bool
		consumed    string
		can         []string // of 1, 2 and 5 CPUs
	}{
		"nothing": {func(State) {}, false, false, "", []string{"1", "2"}},
		"a share": {func(s State) { s.AddShare(NewShare(id, new(types.UID("x")), three)) }, false, true, "3", []string{"1"}},
		"two shares": {func(s State) {
			s.AddShare(NewShare(id, new(types.UID("x")), three))
			s.AddShare(NewShare(id, new(types.UID("y")), three))
		}, false, true, "6", nil},
		"a share without amounts": {func(s State) { s.AddShare(NewShare(id, new(types.UID("x")), nil)) }, false, true, "", []string{"1", "2"}},
		"the whole device":        {func(s State) { s.AddDevices(id) }, true, true, "", nil},
		"another device":          {func(s State) { s.AddDevices(MakeDeviceID(ours, "node-b", "numa-0")) }, false, false, "", []string{"1", "2"}},
	} {
		state := NewState()
		row.hold(state)
		consumed := ""
		if amount := state.Consumed(id, "cpu"); amount != nil {
			consumed = amount.String()
		}
		if state.HeldWhole(id) != row.whole || state.Held(id) != row.held || consumed != row.consumed {
			t.Errorf("%s: whole %t, held %t, consumed %q", name, state.HeldWhole(id), state.Held(id), consumed)
		}
		allocator, err := NewAllocator(t.Context(), DefaultFeatures(), state, classes, Join(published("node-b"), published(node)), NewCache(10, DefaultFeatures()))
		if err != nil {
			t.Fatal(err)
		}
		var can []string
		for _, cpus := range []string{"1", "2", "5"} {
			results, err := allocator.Allocate(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, []*resourceapi.ResourceClaim{claim(cpus)})
			if err != nil {
				t.Fatal(err)
			}
			if len(results) > 0 {
				can = append(can, cpus)
				given := results[0].Devices.Results[0]
				amount := given.ConsumedCapacity["cpu"]
				if MakeDeviceID(given.Driver, given.Pool, given.Device) != id || given.ShareID == nil || amount.String() != cpus {
					t.Errorf("%s: the claim of %s CPUs gets %+v", name, cpus, given)
				}
			}
		}
		if !slices.Equal(can, row.can) {
			t.Errorf("%s: claims of %v CPUs are allocated, want %v", name, can, row.can)
		}
	}
}
