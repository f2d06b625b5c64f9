package funnel

import (
	"cmp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Finding is an obstacle without its sentence.
type Finding struct {
	Stage  Stage
	Why    Cause
	HeldBy []Holder // of what is missing; of each device, the largest holder is first

	request *request // nil if the finding is not about a request
	// alternative is set in the first finding of each alternative of a request of which
	// none fits: 1 for the closest alternative.
	alternative int
}

// FitAlone reports whether each request fits alone, if it could choose first.
func (f *Facts) FitAlone() bool { return !slices.ContainsFunc(f.requests, blocked) }

// blocked reports whether none of the alternatives fits.
func blocked(alternatives []*request) bool {
	return !slices.ContainsFunc(alternatives, func(r *request) bool { return r.counts.Blocks == "" })
}

// Judge returns what has to change before the node has devices for all requests. Of
// alternatives, the one that gets furthest comes first. others are about alternatives of
// requests that have another one which fits.
func (f *Facts) Judge() (obstacles, others []Finding) {
	for _, alternatives := range f.requests {
		alternatives = slices.Clone(alternatives)
		slices.SortStableFunc(alternatives, func(a, b *request) int { return b.counts.Blocks.order() - a.counts.Blocks.order() })
		for i, r := range alternatives {
			found := f.judge(r)
			if !blocked(alternatives) {
				others = append(others, found...)
				continue
			}
			if r.Name != requests.Base(r.Name) {
				found[0].alternative = i + 1
			}
			obstacles = append(obstacles, found...)
		}
	}
	if len(obstacles) == 0 && f.Apart != nil {
		obstacles = append(obstacles, Finding{Stage: StageTogether, Why: f.Apart})
	}
	return obstacles, others
}

// judge returns the findings of the stage that blocks a request, then those of other stages
// about devices that the request selects. Each has to go before the device can be used.
func (f *Facts) judge(r *request) (list []Finding) {
	blocks := r.counts.Blocks
	if blocks == "" {
		return nil
	}
	others := slices.DeleteFunc([]Stage{StageTaint, StageInUse, StageCapacity}, func(s Stage) bool { return s == blocks || blocks.order() < StageTaint.order() })
	for _, stage := range append([]Stage{blocks}, others...) {
		for _, found := range f.judgeStage(r, stage) {
			found.Stage, found.request = stage, r
			list = append(list, found)
		}
	}
	return list
}

func (f *Facts) judgeStage(r *request, stage Stage) []Finding {
	out := r.failing(stage)
	switch stage {
	case StageDriver:
		return []Finding{{Why: r.judgeDriver(out)}}
	case StageClass:
		return []Finding{{Why: otherClass{r}}}
	case StageSelector:
		return []Finding{{Why: rejected{r}}}
	case StageConstraint:
		return []Finding{{Why: r.broken.judge()}}
	case StageCapacity:
		return f.judgeCapacity(r, out)
	}
	if len(out) == 0 {
		return nil
	}
	if stage == StageTaint {
		return []Finding{{Why: tainted{r}}}
	}
	used := Finding{Why: inUse{out}}
	for _, d := range out {
		used.HeldBy = append(used.HeldBy, f.holdersOf(d.Device, "")...)
	}
	return []Finding{used}
}

func (r *request) judgeDriver(out []fit) Cause {
	i := slices.IndexFunc(out, func(d fit) bool { return d.Unusable() != "" && (r.driver == "" || d.Slice.Spec.Driver == r.driver) })
	switch {
	case i >= 0 && out[i].Incomplete != "":
		return incompletePool{out[i].Incomplete}
	case i >= 0:
		return invalidPool{out[i].Invalid}
	case len(r.devices) == 0:
		return noDevices{}
	case r.driver == "":
		return fewDevices{len(r.devices)}
	case len(out) < len(r.devices):
		return noMoreDevices{r.driver}
	}
	return noDriver{r.driver, r.Class}
}

func (c *constraint) judge() Cause {
	if c.distinct {
		return tooAlike{c}
	}
	if i := slices.IndexFunc(c.requests, func(r finds) bool { return len(r.values) == 0 }); i >= 0 {
		return noAttribute{c, i}
	}
	return noValue{c}
}

// lack is a capacity or counter, and the devices on which it is not sufficient.
type lack struct {
	shortage // of the first of the devices that have the capacity at all
	all      []shortage
	request  *request
}

// judgeCapacity has a finding for each capacity that is not sufficient, with the holders
// of the rest.
func (f *Facts) judgeCapacity(r *request, out []fit) (findings []Finding) {
	parts := r.parts()
	if len(parts) > 1 {
		findings = append(findings, Finding{Why: split{r, parts}})
	}
	var lacks []*lack
	for _, d := range out {
		for _, s := range withoutFollowing(d.lacks) {
			if s.missing && len(parts) > 1 {
				continue // other devices have it
			}
			i := slices.IndexFunc(lacks, func(l *lack) bool { return l.name == s.name })
			if i < 0 {
				i = len(lacks)
				lacks = append(lacks, &lack{shortage: s, request: r})
			}
			if lacks[i].missing {
				lacks[i].shortage = s
			}
			lacks[i].all = append(lacks[i].all, s)
		}
	}
	if len(parts) == 1 && slices.ContainsFunc(lacks, func(l *lack) bool { return !l.missing }) {
		lacks = slices.DeleteFunc(lacks, func(l *lack) bool { return l.missing }) // another device has everything, and less than is asked
	}
	for _, l := range lacks {
		found := Finding{Why: l.judge()}
		switch {
		case l.counter && l.gate == "":
			found.HeldBy = f.counterHolders(l.all[0].device, l.name)
		case !l.counter:
			for _, s := range l.all {
				found.HeldBy = append(found.HeldBy, f.holdersOf(s.device, l.name)...)
			}
		}
		findings = append(findings, found)
	}
	return findings
}

func (l *lack) judge() Cause {
	switch {
	case l.missing:
		return noCapacity{l}
	case l.gate != "":
		return gateOff{l.gate}
	case l.counter:
		return fewCounters{l}
	case l.only != nil && l.limit == nil:
		return fixedAmount{l}
	case !l.named:
		return defaultAmount{l}
	}
	return tooMuch{l}
}

// withoutFollowing leaves out capacities that are short only because another one is. The
// other one limits the number of requests that a device can have, and the device has the
// maximum of the capacity for each of them. So the capacity only limits each request by
// itself, as the bandwidth of a cache does.
func withoutFollowing(list []shortage) []shortage {
	return slices.DeleteFunc(slices.Clone(list), func(s shortage) bool {
		return s.limit == nil && s.most != nil && slices.ContainsFunc(list, func(other shortage) bool {
			each, times := other.each(), other.value.Value()
			return each > 0 && s.value.Value() >= times/each*s.most.Value()
		})
	})
}

// each returns the amount that every request takes, if there is no choice; else 0.
func (s shortage) each() int64 {
	if s.only == nil {
		return 0
	}
	return s.only.Value()
}

// part is a request that one device can have: the capacities of a larger request that
// these devices have.
type part struct {
	names   []resourceapi.QualifiedName
	devices []*inventory.Device
}

// parts divides what the request asks for among selected devices, as few as possible. It
// returns nil if a capacity is on none of them. There are several if the capacities are on
// different devices, such as the CPUs of a level-3 cache and the memory of its NUMA node.
func (r *request) parts() (parts []part) {
	if r.Capacity == nil {
		return nil
	}
	left, selected := sortedNames(r.Capacity.Requests), only(r.devices, func(d fit) bool { return d.selected })
	for len(left) > 0 {
		var most part
		for _, d := range selected {
			names := slices.DeleteFunc(slices.Clone(left), func(name resourceapi.QualifiedName) bool {
				_, has := d.Capacity[name]
				return !has
			})
			switch {
			case len(names) > len(most.names):
				most = part{names, []*inventory.Device{d.Device}}
			case len(names) > 0 && slices.Equal(names, most.names):
				most.devices = append(most.devices, d.Device)
			}
		}
		if len(most.names) == 0 {
			return nil
		}
		parts = append(parts, most)
		left = slices.DeleteFunc(left, func(name resourceapi.QualifiedName) bool { return slices.Contains(most.names, name) })
	}
	return parts
}

// holdersOf returns who holds some of a capacity of the device, the largest first. With
// the name "", it returns who holds the device.
func (f *Facts) holdersOf(d *inventory.Device, name string) (list []Holder) {
	holds := slices.Clone(f.holds[d.ID])
	amount := func(h Hold) int64 {
		held := h.Capacity[resourceapi.QualifiedName(name)]
		return held.MilliValue()
	}
	slices.SortStableFunc(holds, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(amount(b), amount(a)), cmp.Compare(a.Claim, b.Claim))
	})
	for _, hold := range holds {
		holder := hold.Holder
		holder.Device, holder.Resource = d.Name, name
		if name != "" {
			held := hold.Capacity[resourceapi.QualifiedName(name)]
			if held.IsZero() {
				continue
			}
			holder.Amount = spelling.Text(held)
		}
		list = append(list, holder)
	}
	return list
}

// counterHolders returns who holds devices that consume the counter of the device's
// pool. The counter is set/name.
func (f *Facts) counterHolders(d *inventory.Device, counter string) (list []Holder) {
	set, name, _ := strings.Cut(counter, "/")
	for i := range f.devices {
		other := &f.devices[i]
		if other.Slice.Spec.Pool != d.Slice.Spec.Pool || other.Slice.Spec.Driver != d.Slice.Spec.Driver {
			continue
		}
		for _, consumed := range other.ConsumesCounters {
			amount, has := consumed.Counters[name]
			if consumed.CounterSet != set || !has {
				continue
			}
			for _, holder := range f.holdersOf(other, "") {
				holder.Resource, holder.Amount = counter, spelling.Text(amount.Value)
				list = append(list, holder)
			}
		}
	}
	return list
}
