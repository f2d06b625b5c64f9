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
)

// otherSlices has the ResourceSlices of other drivers on the node, by driver. A kubelet
// deletes all slices of its node when it starts, so a driver without slices may only be
// restarting. Its last slices count until it publishes again.
type otherSlices map[string][]*resourceapi.ResourceSlice

// look takes all slices of the node and returns those of other drivers that count.
func (o otherSlices) look(all []*resourceapi.ResourceSlice) (published []*resourceapi.ResourceSlice) {
	now := otherSlices{}
	for _, slice := range all {
		if slice.Spec.Driver != driver.Name {
			now[slice.Spec.Driver] = append(now[slice.Spec.Driver], slice)
		}
	}
	for name, slices := range now {
		o[name] = slices
	}
	for _, slices := range o {
		published = append(published, slices...)
	}
	return published
}

// leaveOut returns the devices that no other driver publishes, without memory and
// hugepages if another driver gives them out. An event on the Node says what it leaves
// out.
func (p *publisher) leaveOut(ctx context.Context, devices []resourceapi.Device) []resourceapi.Device {
	var warnings []string
	if others := p.guards.memoryRivals(); len(others) > 0 {
		devices = driver.WithoutMemory(devices)
		warnings = append(warnings, fmt.Sprintf("memory and hugepages of all zones are left out: driver %q gives them out", others[0]))
	}
	kept, conflicts := p.withoutConflicts(devices, p.others.look(p.slices.all()))
	for _, conflict := range conflicts {
		warnings = append(warnings, conflict.String())
	}
	p.events.notify(ctx, &p.leftOut, strings.Join(warnings, "; "))
	return kept
}
