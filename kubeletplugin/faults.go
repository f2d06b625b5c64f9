package kubeletplugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// say takes what is wrong with the Node now; empty if nothing is. Any goroutine may call it. It
// reports whether that is new.
func (p *publisher) say(name, wrong string) (isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wrong == p.wrong[name] {
		return false
	}
	p.wrong[name] = wrong
	p.renew()
	return true
}

// tellWrong creates the events on the Node about what say took.
func (p *publisher) tellWrong(ctx context.Context) {
	p.mu.Lock()
	wrong := maps.Clone(p.wrong)
	p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		p.events.turn(ctx, name, wrong[name])
	}
}

// notes returns the note of a fault for each thing that has it, in the order of their names.
// Whys says what is known of them.
func notes[T any](name string, whys map[string]T) string {
	var parts []string
	for _, thing := range slices.Sorted(maps.Keys(whys)) {
		parts = append(parts, fmt.Sprintf(deviceclasses.FaultOf(name).Note, thing, whys[thing]))
	}
	return strings.Join(parts, "; ")
}

// seeUnexplained has the publisher tell of containers whose cpuset is another program's. The
// event names no container, so that there is one event and not one for each.
func (p *Plugin) seeUnexplained() {
	if p.sharedPool == nil {
		return
	}
	names := p.sharedPool.Unexplained()
	p.counters.unexplained.Store(int64(len(names)))
	wrong := ""
	if len(names) > 0 {
		wrong = deviceclasses.FaultOf(deviceclasses.FaultUnexplained).Note
	}
	if p.publisher.say(deviceclasses.FaultUnexplained, wrong) && wrong != "" {
		klog.Background().Info("Neither a claim nor this driver explains the cpusets of containers", "containers", len(names), "first", names[0])
	}
}

// ObserveRefusals takes the containers of claims that hooks did not let start, and puts
// an event on the claim's pods for each new one. One goroutine may call it. The time of the event
// is that of the refusal, so a restarted daemon creates no second one.
func (p *Plugin) ObserveRefusals(refusals []pin.Refusal) {
	for _, refusal := range News(&p.refusals, refusals) {
		p.counters.refusals.Add(1)
		p.tellClaim(refusal.Claim, deviceclasses.FaultRefused, refusal.At, refusal.Why)
	}
}

// ObserveIgnored takes the containers that run without the memory policy of their claim, and
// puts an event on the claim's pods for each new one. The first call tells of no claim whose status
// says so already. The next Observe reports the rest. The goroutine of Observe may call it.
func (p *Plugin) ObserveIgnored(ignored []pin.Ignored) {
	for _, container := range News(&p.ignored, ignored) {
		if !p.toldIgnored[types.UID(container.Claim.UID)] {
			p.tellClaim(container.Claim, deviceclasses.FaultPolicyIgnored, time.Now(), ignoredText(container.PolicyFault))
		}
	}
	p.toldIgnored = nil
}

// News returns what is there now and is not known yet. Then all that is there now is known.
func News[T comparable](known *[]T, now []T) []T {
	before := *known
	*known = slices.Clone(now)
	return slices.DeleteFunc(slices.Clone(now), func(thing T) bool { return slices.Contains(before, thing) })
}

// tellClaim has an event on the pods of a claim, if it has a grant, say that a fault begins.
func (p *Plugin) tellClaim(claim pin.ClaimRef, fault string, at time.Time, known ...any) {
	if grant, held := p.driver.Grant(types.UID(claim.UID)); held {
		p.podEvents.tell(grant, fault, false, at, known...)
	}
}
