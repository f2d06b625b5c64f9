package kubeletplugin

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

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
// hugepages if another driver gives them out. Each time the devices
// that it leaves out change, it creates an event on the Node.
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
	text := strings.Join(warnings, "; ")
	if text == p.leftOut {
		return kept
	}
	kind, reason, note := corev1.EventTypeWarning, reasonLeftOut, text
	if text == "" {
		kind, reason, note = corev1.EventTypeNormal, reasonNotLeftOut, "No device is left out any longer"
	}
	klog.FromContext(ctx).Info("Devices left out because of other drivers have changed", "pool", p.nodeName, "leftOut", warnings)
	if err := p.events.create(ctx, kind, reason, note); err != nil {
		klog.FromContext(ctx).Error(err, "Creating an event on the Node failed, trying again", "node", p.nodeName)
		return kept // leftOut stays as it was, so the next call tries again
	}
	p.leftOut = text
	return kept
}
