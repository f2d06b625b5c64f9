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
	// healthResend keeps the lease alive: the kubelet takes what it has not
	// heard again within healthLease for unknown.
	healthResend = 10 * time.Second
	healthLease  = 30 * time.Second

	healthMessageLength = 1024 // in bytes
)

// health is what kubelets are told of the node's devices. Any number of
// watchers may come and go; each hears of every change and, in between, that
// somebody still looks.
type health struct {
	mu      sync.Mutex
	devices []helper.DeviceHealth
	looked  time.Time     // when devices were found to be so
	changed chan struct{} // closed at the next change
}

func newHealth() *health { return &health{changed: make(chan struct{})} }

// set is what was found now.
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

// report is empty when nobody has looked for so long that nothing can be said.
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

// watch reports until ctx ends.
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

// deviceHealth is the health of every device that is published, and of those
// that are not any more but of which a claim holds something.
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

// cut is the text, or as much of it as has a length in bytes.
func cut(text string, length int) string {
	return strings.ToValidUTF8(text[:min(len(text), length)], "")
}
