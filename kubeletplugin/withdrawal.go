package kubeletplugin

import (
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// withdrawalPause is from one withdrawal of devices to the next: those that follow are
// published together.
const withdrawalPause = time.Second

// withdrawn returns the published devices less what the wanted ones lack of them: devices,
// capacity, and being free of taints. Nothing in it is new, so only so many withdrawals can
// follow each other. A device that loses one thing and gets another is left out.
func withdrawn(published, wanted []resourceapi.Device) (rest []resourceapi.Device) {
	now := make(map[string]*resourceapi.Device, len(wanted))
	for i := range wanted {
		now[wanted[i].Name] = &wanted[i]
	}
	for _, device := range published {
		next := now[device.Name]
		switch {
		case next == nil:
		case !lacks(next, &device):
			rest = append(rest, device)
		case !lacks(&device, next):
			rest = append(rest, *next)
		}
	}
	return rest
}

// lacks reports whether a device gives claims less than another one of the same name.
func lacks(device, other *resourceapi.Device) bool {
	if isTainted(device) && !isTainted(other) {
		return true
	}
	for name, capacity := range other.Capacity {
		if now, has := device.Capacity[name]; !has || now.Value.Cmp(capacity.Value) < 0 {
			return true
		}
	}
	return false
}

// isTainted reports whether the scheduler gives the device to no claim.
func isTainted(device *resourceapi.Device) bool {
	return slices.ContainsFunc(device.Taints, func(taint resourceapi.DeviceTaint) bool { return taint.Effect != resourceapi.DeviceTaintEffectNone })
}

// next returns the devices to publish now instead of the last ones. What is taken back is not
// paced, because claims would get it meanwhile. Anything else is: then they are the wanted
// devices only if the pace allows it. Their order alone has a pace of its own.
func (p *publisher) next(wanted []resourceapi.Device) []resourceapi.Device {
	if equality.Semantic.DeepEqual(wanted, p.last) {
		return p.last
	}
	if driver.SameDevices(wanted, p.last) {
		if p.orderPace.TryAccept() {
			return wanted
		}
		p.reorder.Reset(orderPeriod)
		return p.last
	}
	less := withdrawn(p.last, wanted)
	if !equality.Semantic.DeepEqual(less, wanted) && p.pace.TryAccept() {
		return wanted
	}
	if equality.Semantic.DeepEqual(less, p.last) {
		return p.last
	}
	if rest := withdrawalPause - time.Since(p.withdrew); rest > 0 {
		time.AfterFunc(rest, p.renew)
		return p.last
	}
	p.withdrew = time.Now()
	return less
}
