package kubeletplugin

import (
	"context"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// leaveOut returns the devices that no other driver publishes, without memory and
// hugepages if another driver gives them out. An event on the Node says what it leaves
// out.
func (p *publisher) leaveOut(ctx context.Context, devices []resourceapi.Device) []resourceapi.Device {
	var warnings []string
	others := p.guards.rivals.look(p.slices.all())
	if len(others.memory) > 0 {
		devices = driver.WithoutMemory(devices)
		warnings = append(warnings, fmt.Sprintf("memory and hugepages of all zones are left out: driver %q gives them out", others.memory[0]))
	}
	kept, conflicts := p.withoutConflicts(devices, others.functions)
	for _, conflict := range conflicts {
		warnings = append(warnings, conflict.String())
	}
	p.events.turn(ctx, deviceclasses.FaultLeftOut, strings.Join(warnings, "; "))
	return kept
}

// tellSuspects has an event on the Node name the drivers that may give out CPUs of claims.
func (p *publisher) tellSuspects(ctx context.Context) {
	if p.suspects == nil {
		return
	}
	suspects := make(map[string]driver.Suspect)
	for _, suspect := range p.suspects(p.slices.all()) {
		suspects[suspect.Driver] = suspect
	}
	p.events.turn(ctx, deviceclasses.FaultSuspect, notes(deviceclasses.FaultSuspect, suspects))
}
