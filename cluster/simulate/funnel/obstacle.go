package funnel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// Obstacle is one reason why a pod does not fit on a node, or does not start there.
type Obstacle struct {
	Stage Stage `json:"stage"`
	// Request is the request that cannot be met, as claim/request; "" if the obstacle is
	// not about a request.
	Request  string `json:"request,omitempty"`
	Sentence string `json:"sentence"`
	// Hint is one thing to change, or "".
	Hint string `json:"hint,omitempty"`
	// HeldBy are the holders of what is missing. Of each device, the largest holder is
	// first.
	HeldBy []Holder `json:"heldBy,omitempty"`
	// Absent is the kind of devices that the request needs and that no node has, as [Kind]
	// returns it.
	Absent string `json:"-"`
}

// Holder is a claim or a pod that has a part of what is missing.
type Holder struct {
	// Device is the name of the device; "" for a resource of the node itself.
	Device string `json:"device,omitempty"`
	// Resource is a capacity or a counter of the device, or a resource of the node; ""
	// means the whole device. Amount is how much of it the holder has.
	Resource string `json:"resource,omitempty"`
	Amount   string `json:"amount,omitempty"`
	// Claim is namespace/name of the claim that holds the device; "" if Device is "".
	Claim string `json:"claim,omitempty"`
	// Pods are the pods that use the claim, or the pod that takes the resource, as
	// namespace/name. If no pod uses an allocated claim, there are none.
	Pods []string `json:"pods,omitempty"`
	// Assumed means that the holder only holds this if pods that wait for a node are
	// placed first.
	Assumed bool `json:"assumed,omitempty"`
}

// String returns a sentence without its full stop.
func (h Holder) String() string {
	what := h.Device
	if h.Resource != "" {
		what = h.Amount + " " + h.Resource
		if h.Device != "" {
			what += " of " + h.Device
		}
	}
	who, verb := "pod "+strings.Join(h.Pods, ", "), "holds"
	if h.Device == "" {
		verb = "takes"
	}
	switch {
	case len(h.Pods) == 0:
		return fmt.Sprintf("claim %s holds %s, and no pod uses the claim", h.Claim, what)
	case h.Assumed:
		verb = "would " + strings.TrimSuffix(verb, "s")
	case len(h.Pods) > 1:
		verb = strings.TrimSuffix(verb, "s")
	}
	if len(h.Pods) > 1 {
		who = "pods " + listText(h.Pods)
	}
	if h.Claim != "" {
		return fmt.Sprintf("%s %s %s through claim %s", who, verb, what, h.Claim)
	}
	return fmt.Sprintf("%s %s %s", who, verb, what)
}

// finding is what a stage says of the devices that it rules out.
type finding struct {
	sentence, hint string
	holders        []Holder
	absent         string
}

// explain sets the obstacles of a request that is blocked: what the stage that blocks
// says, then what other stages say of devices that the request selects. The stages are
// asked about all these devices, because each obstacle has to go before the device can
// be used.
func (v *View) explain(f *funnel) {
	blocks := f.counts.Blocks
	if blocks == "" {
		return
	}
	add := func(stage Stage, findings ...finding) {
		for _, found := range findings {
			if stage == blocks {
				found.sentence, found.hint = f.counted(found.sentence), cmp.Or(found.hint, f.countHint)
			}
			f.obstacles = append(f.obstacles, Obstacle{
				stage, f.counts.Claim + "/" + f.Name, fmt.Sprintf("request %s: %s", f.Name, found.sentence), found.hint, found.holders, found.absent,
			})
		}
	}
	if f.why != nil {
		add(blocks, *f.why)
	}
	if blocks.order() >= StageTaint.order() {
		if out := f.selectedExcept(v.byTaint(f.Tolerations)); len(out) > 0 {
			add(StageTaint, explainTaints(out))
		}
		if out := f.selectedExcept(v.unused(f)); len(out) > 0 {
			add(StageInUse, v.explainInUse(out))
		}
		add(StageCapacity, v.explainCapacity(f, f.selectedExcept(func(d *inventory.Device) bool { return !v.unused(f)(d) || len(v.shortages(f.Alternative, d)) == 0 }))...)
	}
	slices.SortStableFunc(f.obstacles, func(a, b Obstacle) int { return order(b.Stage == blocks) - order(a.Stage == blocks) })
	f.counts.Sentence, f.counts.Hint = f.obstacles[0].Sentence, f.obstacles[0].Hint
}

func order(first bool) int {
	if first {
		return 1
	}
	return 0
}

// counted says in front of the sentence how many devices are missing, if that is more
// than one of one.
func (f *funnel) counted(sentence string) string {
	if f.kept > 0 || f.wanted > 1 {
		return fmt.Sprintf("%s wanted, %d left: %s", devices(f.wanted), f.kept, sentence)
	}
	return sentence
}

// selectedExcept returns the devices that the request selects and that do not pass.
func (f *funnel) selectedExcept(pass func(*inventory.Device) bool) (out []*inventory.Device) {
	for _, d := range f.selected {
		if !pass(d) {
			out = append(out, d)
		}
	}
	return out
}

// obstaclesOf returns the obstacles of all requests of a claim that cannot be met. A
// request with alternatives is blocked only if all of them are. Then the alternative
// that gets furthest comes first.
func obstaclesOf(funnels []*funnel) (list []Obstacle) {
	for len(funnels) > 0 {
		base := requests.Base(funnels[0].Name)
		end := 1
		for end < len(funnels) && requests.Base(funnels[end].Name) == base {
			end++
		}
		alternatives := slices.Clone(funnels[:end])
		funnels = funnels[end:]
		if slices.ContainsFunc(alternatives, func(f *funnel) bool { return f.counts.Blocks == "" }) {
			continue
		}
		slices.SortStableFunc(alternatives, func(a, b *funnel) int { return b.counts.Blocks.order() - a.counts.Blocks.order() })
		for i, f := range alternatives {
			for j, o := range f.obstacles {
				switch {
				case f.Name == base:
				case i == 0 && j == 0:
					o.Sentence = fmt.Sprintf("no alternative of request %s fits; the closest one is %s", base, o.Sentence)
				case j == 0:
					o.Sentence = "another alternative is " + o.Sentence
				}
				if !slices.ContainsFunc(list, func(seen Obstacle) bool { return sameConstraint(seen, o) }) {
					list = append(list, o)
				}
			}
		}
	}
	return list
}

// sameConstraint reports whether two obstacles are about the same constraint. A
// constraint blocks all requests that it covers, and says the same of each.
func sameConstraint(a, b Obstacle) bool {
	_, bodyA, _ := strings.Cut(a.Sentence, ": ")
	_, bodyB, _ := strings.Cut(b.Sentence, ": ")
	return a.Stage == StageConstraint && b.Stage == StageConstraint && bodyA == bodyB
}

// holdersOf returns who holds some of a capacity of the device, the largest first. With
// the capacity "", it returns who holds the device.
func (v *View) holdersOf(d *inventory.Device, capacity string) (list []Holder) {
	holds := v.Holds()[d.ID]
	amount := func(h inventory.Hold) int64 {
		held := h.Capacity[resourceapi.QualifiedName(capacity)]
		return held.MilliValue()
	}
	slices.SortStableFunc(holds, func(a, b inventory.Hold) int {
		return cmp.Or(cmp.Compare(amount(b), amount(a)), cmp.Compare(a.Claim.String(), b.Claim.String()))
	})
	for _, hold := range holds {
		holder := Holder{Device: d.Name, Resource: capacity, Claim: hold.Claim.String()}
		if capacity != "" {
			held := hold.Capacity[resourceapi.QualifiedName(capacity)]
			if held.IsZero() {
				continue
			}
			holder.Amount = held.String()
		}
		list = append(list, holder)
	}
	return list
}

// counterHolders returns who holds devices that consume the counter of the device's
// pool. The counter is set/name.
func (v *View) counterHolders(d *inventory.Device, counter string) (list []Holder) {
	set, name, _ := strings.Cut(counter, "/")
	for i := range v.Devices {
		other := &v.Devices[i]
		if other.Slice.Spec.Pool != d.Slice.Spec.Pool || other.Slice.Spec.Driver != d.Slice.Spec.Driver {
			continue
		}
		for _, consumed := range other.ConsumesCounters {
			amount, has := consumed.Counters[name]
			if consumed.CounterSet != set || !has {
				continue
			}
			for _, holder := range v.holdersOf(other, "") {
				holder.Resource, holder.Amount = counter, amount.Value.String()
				list = append(list, holder)
			}
		}
	}
	return list
}

// ClaimName returns the name of a holder's claim.
func (h Holder) ClaimName() types.NamespacedName {
	namespace, name, _ := strings.Cut(h.Claim, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
