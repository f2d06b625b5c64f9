package kubeletplugin

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	helper "k8s.io/dynamic-resource-allocation/kubeletplugin"
)

const (
	// healthResend keeps the lease alive. The kubelet treats the health of a device as
	// unknown if it is not reported again within healthLease.
	healthResend = 10 * time.Second
	healthLease  = 30 * time.Second

	healthMessageLength = 1024 // in bytes
)

// health holds the health of the node's devices for the kubelet. Any number of watchers
// may come and go. Each watcher gets every change. Between changes it gets the same
// report again, as a sign that the devices are still being checked.
type health struct {
	mu      sync.Mutex
	devices []helper.DeviceHealth
	looked  time.Time     // when the devices were last checked
	changed chan struct{} // closed at the next change
}

func newHealth() *health { return &health{changed: make(chan struct{})} }

// set takes the health of the devices as it is now.
func (h *health) set(devices []helper.DeviceHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked = time.Now()
	if slices.Equal(devices, h.devices) {
		return
	}
	h.devices = devices
	close(h.changed)
	h.changed = make(chan struct{})
}

// report returns no devices if the last check is too old to say anything. The channel
// is closed at the next change.
func (h *health) report() (report helper.DeviceHealthReport, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.looked) > healthResend {
		return report, h.changed
	}
	report.Devices = slices.Clone(h.devices)
	for i := range report.Devices {
		report.Devices[i].LastUpdated = h.looked
	}
	return report, h.changed
}

// watch sends reports until ctx ends.
func (h *health) watch(ctx context.Context, reports chan<- helper.DeviceHealthReport) error {
	resend := time.NewTicker(healthResend)
	defer resend.Stop()
	for {
		report, changed := h.report()
		if len(report.Devices) > 0 {
			select {
			case <-ctx.Done():
				return nil
			case reports <- report:
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-resend.C:
		}
	}
}

// deviceHealth returns the health of every published device. It also returns that of
// devices that have problems but are no longer published, because claims still hold
// something of them.
func deviceHealth(pool string, published []resourceapi.Device, problems map[string][]string) []helper.DeviceHealth {
	names := make([]string, 0, len(published))
	for i := range published {
		names = append(names, published[i].Name)
	}
	for name := range problems {
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	devices := make([]helper.DeviceHealth, 0, len(names))
	for _, name := range names {
		device := helper.DeviceHealth{
			PoolName: pool, DeviceName: name, Health: helper.HealthStatusHealthy, HealthCheckTimeout: healthLease,
		}
		if why := problems[name]; len(why) > 0 {
			device.Health = helper.HealthStatusUnhealthy
			device.Message = cut(strings.Join(why, "; "), healthMessageLength)
		}
		devices = append(devices, device)
	}
	return devices
}

// cut shortens the text to at most length bytes, and drops what is not valid UTF-8.
func cut(text string, length int) string {
	return strings.ToValidUTF8(text[:min(len(text), length)], "")
}
