package funnel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// View is what the stages need to know about a node.
type View struct {
	inventory.Local
	State     structured.AllocatedState // the holdings of claims
	Features  structured.Features
	Classes   inventory.Classes    // all classes of the requests
	Selectors *inventory.Selectors // those of the inventory
	// Kinds are the kinds of the devices of all nodes, as [Kind] returns them.
	Kinds map[string]bool
	// Holds returns who holds each device. It is called only if something blocks.
	Holds func() map[structured.DeviceID][]inventory.Hold
}

// Claim is a claim that a pod needs and that is not allocated yet.
type Claim struct {
	Entry string // its name in the pod
	Claim *resourceapi.ResourceClaim
}

// Requests passes the requests of all claims through the stages, each request alone. It
// returns the obstacles of those that cannot be met.
func (v *View) Requests(claims []Claim) (list []Request, obstacles []Obstacle) {
	for _, used := range claims {
		var funnels []*funnel
		for _, request := range used.Claim.Spec.Devices.Requests {
			for _, a := range requests.Alternatives(request) {
				funnels = append(funnels, v.run(a, used.Entry))
			}
		}
		applyConstraints(used.Claim.Spec.Devices.Constraints, funnels)
		for _, f := range funnels {
			v.explain(f)
			list = append(list, f.counts)
		}
		obstacles = append(obstacles, obstaclesOf(funnels)...)
	}
	return list, obstacles
}

// funnel is a request, or one of its alternatives, on its way through the stages.
type funnel struct {
	requests.Alternative
	wanted   int
	driver   string                           // that the class requires; "" for none
	left     []*inventory.Device              // the devices that passed the stages so far
	selected []*inventory.Device              // the devices that the class and the request select
	matched  []resourceapi.FullyQualifiedName // attributes that devices of the request must have in common
	counts   Request

	kept      int      // number of devices that passed the stage that blocks
	countHint string   // the hint for these devices
	why       *finding // what this stage says; nil if explain asks it again
	obstacles []Obstacle
}

// run passes a request through all stages except the constraints of its claim.
func (v *View) run(a requests.Alternative, entry string) *funnel {
	f := &funnel{Alternative: a, wanted: int(a.Count), driver: v.driverOf(v.Classes[a.Class])}
	f.counts = Request{Claim: entry, Request: a.Name, Devices: len(v.Devices)}
	for i := range v.Devices {
		f.left = append(f.left, &v.Devices[i])
	}
	left := &f.counts.Left
	class := v.Classes[a.Class]
	all := a.Mode == resourceapi.DeviceAllocationModeAll
	if all {
		f.wanted = 1
	}
	f.stage(StageDriver, &left.Driver, v.byDriver(class), func(out []*inventory.Device) finding { return v.explainDriver(class, out) })
	f.stage(StageClass, &left.Class, v.bySelectors(class.Spec.Selectors), func(out []*inventory.Device) finding {
		found := finding{sentence: fmt.Sprintf("%s not of class %s", devicesAre(len(out)), a.Class)}
		if unmet := v.unmet(class.Spec.Selectors, out); unmet != "" {
			found.sentence += ": " + unmet
		}
		if kind := v.kindOf(class); kind != "" && !v.Kinds[kind] {
			found.hint, found.absent = fmt.Sprintf("no node has a device whose %s, which class %s requires", kind, a.Class), kind
		}
		return found
	})
	f.stage(StageSelector, &left.Selector, v.bySelectors(a.Selectors), func(out []*inventory.Device) finding {
		return finding{sentence: fmt.Sprintf("the request's selectors reject %s: %s", devices(len(out)), cmp.Or(v.unmet(a.Selectors, out), selectorText(a.Selectors)))}
	})
	if all {
		f.wanted = max(1, len(f.left)) // a request for all devices wants every selected device
	}
	f.counts.Wanted, f.selected = f.wanted, f.left
	f.stage(StageTaint, &left.Taint, v.byTaint(a.Tolerations), nil)
	f.stage(StageInUse, &left.InUse, v.unused(f), nil)
	f.stage(StageCapacity, &left.Capacity, func(d *inventory.Device) bool { return len(v.shortages(a, d)) == 0 }, nil)
	return f
}

// unused accepts the devices that no claim holds as a whole.
func (v *View) unused(f *funnel) func(*inventory.Device) bool {
	return func(d *inventory.Device) bool { return f.Admin || !v.State.AllocatedDevices.Has(d.ID) }
}

// stage removes the devices that do not pass. If too few are left, the stage blocks, and
// why says why.
func (f *funnel) stage(stage Stage, count *int, pass func(*inventory.Device) bool, why func(out []*inventory.Device) finding) {
	var kept, out []*inventory.Device
	for _, d := range f.left {
		if pass(d) {
			kept = append(kept, d)
		} else {
			out = append(out, d)
		}
	}
	f.left, *count = kept, len(kept)
	if f.counts.Blocks != "" || len(kept) >= f.wanted {
		return
	}
	f.counts.Blocks, f.kept, f.countHint = stage, len(kept), countHint(f)
	if why != nil {
		said := why(out)
		f.why = &said
	}
}

func (v *View) byDriver(class *resourceapi.DeviceClass) func(*inventory.Device) bool {
	driver := v.driverOf(class)
	return func(d *inventory.Device) bool {
		return (driver == "" || d.Slice.Spec.Driver == driver) && d.Incomplete == ""
	}
}

func (v *View) explainDriver(class *resourceapi.DeviceClass, out []*inventory.Device) finding {
	driver := v.driverOf(class)
	for _, d := range out {
		if d.Incomplete != "" && (driver == "" || d.Slice.Spec.Driver == driver) {
			return finding{sentence: d.Incomplete, hint: "the scheduler allocates no device of a pool until all its ResourceSlices exist: check that the driver publishes them"}
		}
	}
	if len(v.Devices) == 0 {
		return finding{sentence: "the node has no devices", hint: "no ResourceSlice is for this node: check that the driver runs there"}
	}
	if driver == "" {
		return finding{sentence: fmt.Sprintf("the node has only %s", devices(len(v.Devices)))}
	}
	if len(out) < len(v.Devices) {
		return finding{sentence: fmt.Sprintf("the node has no more devices of driver %s", driver)}
	}
	return finding{
		sentence: fmt.Sprintf("the node has no devices of driver %s, which class %s requires", driver, class.Name),
		hint:     fmt.Sprintf("no ResourceSlice of %s is for this node: check that the driver runs there", driver),
	}
}

// bySelectors accepts the devices that pass all selectors. A device does not pass if a
// selector fails.
func (v *View) bySelectors(selectors []resourceapi.DeviceSelector) func(*inventory.Device) bool {
	return func(d *inventory.Device) bool {
		matches, err := v.Selectors.All(selectors, d)
		return err == nil && matches
	}
}

func (v *View) byTaint(tolerations []resourceapi.DeviceToleration) func(*inventory.Device) bool {
	return func(d *inventory.Device) bool {
		return !v.Features.DeviceTaints || !slices.ContainsFunc(d.Taints, func(taint resourceapi.DeviceTaint) bool {
			return prevents(taint) && !slices.ContainsFunc(tolerations, func(t resourceapi.DeviceToleration) bool {
				return resourceclaim.ToleratesTaint(t, taint)
			})
		})
	}
}

// prevents reports whether the allocator considers the effect of the taint.
func prevents(taint resourceapi.DeviceTaint) bool {
	return taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute
}

func explainTaints(out []*inventory.Device) finding {
	var list []string
	for _, d := range out {
		for _, taint := range d.Taints {
			if prevents(taint) {
				list = append(list, fmt.Sprintf("%s has %s=%s:%s", d.Name, taint.Key, taint.Value, taint.Effect))
			}
		}
	}
	return finding{sentence: "the request does not tolerate these taints: " + listText(list)}
}

func (v *View) explainInUse(out []*inventory.Device) finding {
	var found finding
	var names []string
	for _, d := range out {
		names = append(names, d.Name)
		found.holders = append(found.holders, v.holdersOf(d, "")...)
	}
	found.sentence = fmt.Sprintf("%s %s in use by other claims", listText(names), isAre(len(names)))
	return found
}

func selectorText(selectors []resourceapi.DeviceSelector) string {
	var list []string
	for _, selector := range selectors {
		if selector.CEL != nil {
			list = append(list, message.OneLine(selector.CEL.Expression))
		}
	}
	return strings.Join(list, " && ")
}

// maxListed is the maximum number of things that a sentence names.
const maxListed = 4

func listText(list []string) string { return message.First(list, maxListed) }

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

func devicesAre(count int) string { return fmt.Sprintf("%s %s", devices(count), isAre(count)) }

// sortedNames returns the keys, sorted.
func sortedNames[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
