package funnel

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// View is a node, which is asked for facts.
type View struct {
	inventory.Local
	State     allocation.State // the holdings of claims
	Features  allocation.Features
	Classes   inventory.Classes    // all classes of the requests
	Selectors *inventory.Selectors // those of the inventory
	// Kinds are the kinds of the devices of all nodes, as [Kind] returns them.
	Kinds map[string]bool
	// Holds returns who holds each device. It is called only if something blocks.
	Holds func() map[allocation.DeviceID][]Hold
}

// Hold is what a holder has of a device: the device itself, or some of its capacities.
type Hold struct {
	Holder
	Capacity map[resourceapi.QualifiedName]resource.Quantity
}

// Claim is a claim that a pod needs and that is not allocated yet.
type Claim struct {
	Entry string // its name in the pod
	Claim *resourceapi.ResourceClaim
}

// Facts are how the devices of a node stand to the requests of claims.
type Facts struct {
	requests [][]*request // alternatives of each request
	devices  []inventory.Device
	holds    map[allocation.DeviceID][]Hold // nil if no holder can be in the way
	// Apart is what does not fit together, as [Together] returns it. The caller sets it.
	Apart Cause
}

// request is a request, or one of its alternatives, and what is left for it.
type request struct {
	requests.Alternative
	driver  string // that the class requires; "" for none
	absent  string // the kind that the class requires, if no node has it
	wanted  int
	devices []fit
	fitting bool                             // of a request for all devices: some are not small, so that it wants only those
	matched []resourceapi.FullyQualifiedName // attributes that devices of the request must have in common
	counts  Request
	left    []fit // the devices that passed all stages

	// The fields below are about the stage that blocks.
	kept   int  // number of devices that passed it
	shared bool // claims can share one of them, and the request wants several
	unmet  []unmet
	broken *constraint
}

// fit says which stages a device does not pass. If the class and the request do not select
// the device, that is only the first of them.
type fit struct {
	*inventory.Device
	selected bool
	small    bool // the request is for all devices, and this one would not be enough even if nobody held any of it
	fails    []Stage
	lacks    []shortage
}

// Ask passes the requests of all claims through the stages, each request alone.
func (v *View) Ask(claims []Claim) *Facts {
	facts := &Facts{devices: v.Devices}
	for _, used := range claims {
		var list []*request
		for _, wanted := range used.Claim.Spec.Devices.Requests {
			first := len(list)
			for _, a := range requests.Alternatives(wanted) {
				list = append(list, v.ask(a, used.Entry))
			}
			facts.requests = append(facts.requests, list[first:])
		}
		applyConstraints(used.Claim.Spec.Devices.Constraints, list, v.Features.ListTypeAttributes)
		if facts.holds == nil && slices.ContainsFunc(list, func(r *request) bool { return r.counts.Blocks.order() >= StageTaint.order() }) {
			facts.holds = v.Holds()
		}
	}
	return facts
}

// ask passes a request through all stages except the constraints of its claim.
func (v *View) ask(a requests.Alternative, entry string) *request {
	class := v.Classes[a.Class]
	r := &request{Alternative: a, driver: v.driverOf(class), wanted: int(a.Count)}
	r.counts = Request{Claim: entry, Request: a.Name, Devices: len(v.Devices)}
	for i := range v.Devices {
		r.devices = append(r.devices, v.fit(r, class, &v.Devices[i]))
	}
	r.left = r.devices
	all := a.Mode == resourceapi.DeviceAllocationModeAll
	if all {
		r.wanted = 1
	}
	pass := func(stage Stage, count *int) {
		r.stage(stage, count, func(d fit) bool { return !slices.Contains(d.fails, stage) })
	}
	left := &r.counts.Left
	pass(StageDriver, &left.Driver)
	pass(StageClass, &left.Class)
	pass(StageSelector, &left.Selector)
	if all {
		large := len(only(r.left, func(d fit) bool { return !d.small }))
		r.fitting, r.wanted = large > 0, max(1, large)
	}
	r.counts.Wanted = r.wanted
	pass(StageTaint, &left.Taint)
	pass(StageInUse, &left.InUse)
	pass(StageCapacity, &left.Capacity)
	switch r.counts.Blocks {
	case StageClass:
		r.unmet = v.unmet(class.Spec.Selectors, r.failing(StageClass))
		if kind := v.kindOf(class); !v.Kinds[kind] {
			r.absent = kind
		}
	case StageSelector:
		r.unmet = v.unmet(a.Selectors, r.failing(StageSelector))
	}
	return r
}

func (v *View) fit(r *request, class *resourceapi.DeviceClass, d *inventory.Device) fit {
	f := fit{Device: d}
	switch {
	case r.driver != "" && d.Slice.Spec.Driver != r.driver || d.Unusable() != "":
		f.fails = append(f.fails, StageDriver)
	case !v.selects(class.Spec.Selectors, d):
		f.fails = append(f.fails, StageClass)
	case !v.selects(r.Selectors, d):
		f.fails = append(f.fails, StageSelector)
	default:
		f.selected = true
		f.small = r.Mode == resourceapi.DeviceAllocationModeAll && slices.ContainsFunc(v.shortages(r.Alternative, d), shortage.always)
		if v.Features.DeviceTaints && slices.ContainsFunc(d.Taints, r.refuses) {
			f.fails = append(f.fails, StageTaint)
		}
		if !r.Admin && v.State.HeldWhole(d.ID) {
			f.fails = append(f.fails, StageInUse)
		} else if f.lacks = v.shortages(r.Alternative, d); len(f.lacks) > 0 {
			f.fails = append(f.fails, StageCapacity)
		}
	}
	return f
}

// selects reports whether the device passes all selectors. It does not if a selector
// fails.
func (v *View) selects(selectors []resourceapi.DeviceSelector, d *inventory.Device) bool {
	matches, err := v.Selectors.All(selectors, d)
	return err == nil && matches
}

// refuses reports whether the allocator considers the effect of the taint, and the request
// does not tolerate it.
func (r *request) refuses(taint resourceapi.DeviceTaint) bool {
	prevents := taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute
	return prevents && !slices.ContainsFunc(r.Tolerations, func(t resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, taint) })
}

// stage leaves only the devices that pass. It reports whether this stage blocks, because
// it is the first one that leaves too few.
func (r *request) stage(stage Stage, count *int, pass func(fit) bool) (blocks bool) {
	r.left = only(r.left, pass)
	*count = len(r.left)
	kept := len(only(r.left, r.wants))
	if r.counts.Blocks != "" || kept >= r.wanted {
		return false
	}
	r.counts.Blocks, r.kept = stage, kept
	r.shared = r.wanted > 1 && r.Mode != resourceapi.DeviceAllocationModeAll && slices.ContainsFunc(r.left, func(d fit) bool { return d.Shared() })
	return true
}

// only returns the devices that pass.
func only(list []fit, pass func(fit) bool) (passed []fit) {
	for _, d := range list {
		if pass(d) {
			passed = append(passed, d)
		}
	}
	return passed
}

// wants reports whether the request wants a device that it selects.
func (r *request) wants(d fit) bool { return !r.fitting || !d.small }

// failing returns the devices that do not pass the stage, except those that the request does
// not want.
func (r *request) failing(stage Stage) []fit {
	return only(r.devices, func(d fit) bool { return r.wants(d) && slices.Contains(d.fails, stage) })
}
