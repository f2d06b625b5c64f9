package kubeletplugin

import (
	"context"
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

// otherSlices is what other drivers publish on the node, by driver. One all of whose
// slices are gone may only be starting again: a kubelet deletes them when it
// starts. What it published last counts for as long as it publishes nothing.
type otherSlices map[string][]*resourceapi.ResourceSlice

// look is told all slices of the node and returns those that count.
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

// leaveOut returns the devices that no other driver publishes. It says on the
// Node, once for each change, which are left out.
func (p *publisher) leaveOut(ctx context.Context, devices []resourceapi.Device) []resourceapi.Device {
	kept, conflicts := p.withoutConflicts(devices, p.others.look(p.slices.all()))
	var warnings []string
	for _, conflict := range conflicts {
		warnings = append(warnings, conflict.String())
	}
	text := strings.Join(warnings, "; ")
	if text == p.leftOut {
		return kept
	}
	kind, reason, note := corev1.EventTypeWarning, reasonLeftOut, text
	if text == "" {
		kind, reason, note = corev1.EventTypeNormal, reasonNotLeftOut, "No device is left out any more"
	}
	klog.FromContext(ctx).Info("Other drivers publish devices of this node", "pool", p.nodeName, "leftOut", warnings)
	if err := p.events.create(ctx, kind, reason, note); err != nil {
		klog.FromContext(ctx).Error(err, "Put event on the node", "node", p.nodeName)
		return kept // to be told again
	}
	p.leftOut = text
	return kept
}
