package simulate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"
)

// funnel is a request, or an alternative of it, on its way through the stages.
type funnel struct {
	alternative
	entry  string // the claim's name in the pod
	wanted int
	left   []*device // after the stages so far
	counts RequestExplanation
}

// funnels are those of all claims that are to be allocated.
func (c *Cluster) funnels(d *demand, n *node) (list []RequestExplanation) {
	for _, used := range c.unallocated(d, n) {
		var funnels []*funnel
		for _, request := range used.claim.Spec.Devices.Requests {
			for _, a := range alternatives(request) {
				funnels = append(funnels, c.run(a, used.entry, n))
			}
		}
		constrain(used.claim.Spec.Devices.Constraints, funnels)
		for _, f := range funnels {
			list = append(list, f.counts)
		}
	}
	return list
}

// unallocated are the claims that the allocator would be asked for.
func (c *Cluster) unallocated(d *demand, n *node) (list []podClaim) {
	for _, used := range d.claims {
		if used.claim.Status.Allocation == nil {
			list = append(list, used)
		}
	}
	if special := c.extendedClaim(d, n); special != nil {
		list = append(list, podClaim{entry: "extended-resources", claim: special})
	}
	return list
}

// run takes a request through all stages but the constraints of its claim.
func (c *Cluster) run(a alternative, entry string, n *node) *funnel {
	f := &funnel{alternative: a, entry: entry, wanted: int(a.count)}
	f.counts = RequestExplanation{Claim: entry, Request: a.name, Devices: len(n.devices)}
	for i := range n.devices {
		f.left = append(f.left, &n.devices[i])
	}
	left := &f.counts.Left
	class := c.classes[a.class]
	f.stage(StageDriver, &left.Driver, byDriver(class), func(out []*device) (string, string) { return n.withoutDriver(class, out) })
	f.stage(StageClass, &left.Class, c.bySelectors(class.Spec.Selectors), func(out []*device) (string, string) {
		return fmt.Sprintf("%s not of class %s", areOr(len(out)), a.class), ""
	})
	f.stage(StageSelector, &left.Selector, c.bySelectors(a.selectors), func(out []*device) (string, string) {
		return fmt.Sprintf("%s not selected by the request: %s", areOr(len(out)), texts(a.selectors)), ""
	})
	if a.mode == resourceapi.DeviceAllocationModeAll {
		f.wanted = max(1, len(f.left)) // of all that are selected, none may be missing
	}
	f.counts.Wanted = f.wanted
	f.stage(StageTaint, &left.Taint, c.byTaint(a.tolerations), tainted)
	f.stage(StageInUse, &left.InUse, func(d *device) bool { return a.admin || !n.state.AllocatedDevices.Has(d.id) }, func(out []*device) (string, string) {
		return fmt.Sprintf("%s by other claims", held(out)), ""
	})
	f.stage(StageCapacity, &left.Capacity, func(d *device) bool { return len(c.shortages(a, d, n)) == 0 }, func(out []*device) (string, string) {
		return c.explainCapacity(f, out, n)
	})
	return f
}

// stage drops what does not pass, and says why if too little is left.
func (f *funnel) stage(stage Stage, count *int, pass func(*device) bool, why func(out []*device) (sentence, hint string)) {
	var kept, out []*device
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
	f.block(stage, len(kept), why, out)
}

func (f *funnel) block(stage Stage, left int, why func(out []*device) (sentence, hint string), out []*device) {
	sentence, hint := why(out)
	if left > 0 || f.wanted > 1 {
		sentence = fmt.Sprintf("%s wanted, %d left: %s", devices(f.wanted), left, sentence)
	}
	if hint == "" {
		hint = countHint(f)
	}
	f.counts.Blocks, f.counts.hint = stage, hint
	f.counts.Sentence = fmt.Sprintf("request %s: %s", f.name, sentence)
}

// driverGuard is the first thing that a careful selector says.
var driverGuard = regexp.MustCompile(`device\.driver\s*==\s*["']([^"']+)["']`)

// driverOf is the driver that the class wants, "" if it does not say.
func driverOf(class *resourceapi.DeviceClass) string {
	for _, selector := range class.Spec.Selectors {
		if selector.CEL == nil {
			continue
		}
		if found := driverGuard.FindAllStringSubmatch(selector.CEL.Expression, 2); len(found) == 1 {
			return found[0][1]
		}
	}
	return ""
}

func byDriver(class *resourceapi.DeviceClass) func(*device) bool {
	driver := driverOf(class)
	return func(d *device) bool { return (driver == "" || d.slice.Spec.Driver == driver) && d.incomplete == "" }
}

func (n *node) withoutDriver(class *resourceapi.DeviceClass, out []*device) (sentence, hint string) {
	driver := driverOf(class)
	for _, d := range out {
		if d.incomplete != "" && (driver == "" || d.slice.Spec.Driver == driver) {
			return d.incomplete, "nothing of a pool is given away until all its slices are there; does its driver publish them?"
		}
	}
	if len(n.devices) == 0 {
		return "the node has no devices", "no ResourceSlice is for the node: does the driver run there?"
	}
	if driver == "" {
		return fmt.Sprintf("the node has only %s", devices(len(n.devices))), ""
	}
	if len(out) < len(n.devices) {
		return fmt.Sprintf("the node has no more of driver %s", driver), ""
	}
	return fmt.Sprintf("the node has no devices of driver %s, which class %s wants", driver, class.Name),
		fmt.Sprintf("no ResourceSlice of %s is for the node: does the driver run there?", driver)
}

// bySelectors holds for what passes all; what makes one fail does not pass.
func (c *Cluster) bySelectors(selectors []resourceapi.DeviceSelector) func(*device) bool {
	return func(d *device) bool {
		matches, err := c.selectsAll(selectors, d)
		return err == nil && matches
	}
}

func (c *Cluster) byTaint(tolerations []resourceapi.DeviceToleration) func(*device) bool {
	return func(d *device) bool {
		return !c.features.DeviceTaints || !slices.ContainsFunc(d.Taints, func(taint resourceapi.DeviceTaint) bool {
			return prevents(taint) && !slices.ContainsFunc(tolerations, func(t resourceapi.DeviceToleration) bool {
				return resourceclaim.ToleratesTaint(t, taint)
			})
		})
	}
}

// prevents holds for the effects that the allocator knows.
func prevents(taint resourceapi.DeviceTaint) bool {
	return taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute
}

func tainted(out []*device) (sentence, hint string) {
	var list []string
	for _, d := range out {
		for _, taint := range d.Taints {
			if prevents(taint) {
				list = append(list, fmt.Sprintf("%s has %s=%s:%s", d.Name, taint.Key, taint.Value, taint.Effect))
			}
		}
	}
	return "taints that the request does not tolerate: " + some(list), ""
}

func held(out []*device) string {
	var names []string
	for _, d := range out {
		names = append(names, d.Name)
	}
	return fmt.Sprintf("%s %s in use", some(names), isAre(len(names)))
}

func texts(selectors []resourceapi.DeviceSelector) string {
	var list []string
	for _, selector := range selectors {
		if selector.CEL != nil {
			list = append(list, strings.Join(strings.Fields(selector.CEL.Expression), " "))
		}
	}
	return strings.Join(list, " && ")
}

// maxListed are named in a sentence.
const maxListed = 4

func some(list []string) string {
	text := strings.Join(list[:min(len(list), maxListed)], ", ")
	if more := len(list) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
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

func areOr(count int) string { return fmt.Sprintf("%s %s", devices(count), isAre(count)) }

func baseRequest(name string) string { return resourceclaim.BaseRequestRef(name) }

func isShared(d *device) bool { return ptr.Deref(d.AllowMultipleAllocations, false) }
