package kubeletplugin

import (
	"context"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

const (
	reasonLeftOut    = "NUMADeviceLeftOut"
	reasonNotLeftOut = "NUMADevicesPublished"

	reasonSuspect   = "NUMACPUDriverSuspected"
	reasonNoSuspect = "NUMACPUDriverGone"
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
	p.events.notify(ctx, &p.leftOut, strings.Join(warnings, "; "))
	return kept
}

// tellSuspects has an event on the Node name the drivers that may give out CPUs of claims.
func (p *publisher) tellSuspects(ctx context.Context) {
	if p.suspects == nil {
		return
	}
	var texts []string
	for _, suspect := range p.suspects(p.slices.all()) {
		texts = append(texts, fmt.Sprintf("driver %q publishes %s: if it gives containers CPUs of this node, claims of both drivers can get the same ones. Then name it in otherCPUDrivers, or reserve its CPUs", suspect.Driver, suspect))
	}
	p.events.notify(ctx, &p.suspect, strings.Join(texts, "; "))
}
