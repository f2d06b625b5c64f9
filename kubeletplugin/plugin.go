// Package kubeletplugin connects the driver to the kubelet and the API server:
// it registers, answers prepare and unprepare calls, publishes the node's
// ResourceSlices, reads them back and says whether the node is ready. It
// translates and decides nothing about CPUs.
package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	helper "k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// Options says where the plugin meets the kubelet and what it publishes.
type Options struct {
	Client      kubernetes.Interface
	NodeName    string
	PluginDir   string // for dra.sock; the same path on the host and here
	RegistryDir string // where the kubelet looks for plugins; must exist
	KubeletRoot string // where the kubelet's managers keep their state
	Resources   resourceslice.DriverResources
	Exclusivity driver.Exclusivity // of the node; the status of claims says it

	// Fatal is called from a background goroutine, perhaps more than once, when
	// the plugin cannot go on. It must not call Stop itself.
	Fatal func(error)
}

// Plugin is a running kubelet plugin.
type Plugin struct {
	helper    *helper.Helper
	publisher *publisher
	statuses  *claimStatuses
	writing   sync.WaitGroup
}

// Start registers the driver with the kubelet and begins to publish. From then
// on the kubelet may prepare claims, so the driver's checkpoint must have been
// loaded. The plugin ends with ctx or Stop.
func Start(ctx context.Context, d *driver.Driver, options Options) (*Plugin, error) {
	guards := &guards{options.KubeletRoot, newNodeSlices(options.Client, options.NodeName)}
	statuses := newClaimStatuses(options.Client, options.Exclusivity)
	server, err := helper.Start(ctx, &claimServer{driver: d, guards: guards, statuses: statuses, fatal: options.Fatal},
		helper.DriverName(driver.Name),
		helper.KubeClient(options.Client),
		helper.NodeName(options.NodeName),
		helper.PluginDataDirectoryPath(options.PluginDir),
		helper.RegistrarDirectoryPath(options.RegistryDir),
		helper.Serialize(false),     // the driver has a lock of its own
		helper.HealthService(false), // nothing watches zones yet, so nothing is claimed about them
	)
	if err != nil {
		return nil, fmt.Errorf("start kubelet plugin: %w", err)
	}
	publisher := newPublisher(options, guards, server.PublishResources)
	publisher.start(ctx)
	plugin := &Plugin{helper: server, publisher: publisher, statuses: statuses}
	plugin.writing.Go(func() { statuses.run(ctx) })
	return plugin, nil
}

// Stop ends all background work and removes the sockets. The ResourceSlices
// stay: the kubelet removes them if no plugin comes back within 30 seconds.
func (p *Plugin) Stop() {
	p.publisher.cancel()
	p.helper.Stop() // also ends a call to publish that waits for the API server
	p.publisher.running.Wait()
	p.statuses.queue.ShutDown()
	p.writing.Wait()
}

// Handler serves /healthz and /readyz; the latter says why the node is not
// ready.
func (p *Plugin) Handler() http.Handler { return p.publisher.readiness.handler() }

// claimServer answers the kubelet. It may be called concurrently.
type claimServer struct {
	driver   *driver.Driver
	guards   *guards
	statuses *claimStatuses
	fatal    func(error)
}

var _ helper.DRAPlugin = (*claimServer)(nil)

// PrepareResourceClaims prepares each claim by itself: one that cannot be
// prepared does not hold up the others. While a guard stands, no claim gets what
// it does not have already.
func (s *claimServer) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]helper.PrepareResult, error) {
	results := make(map[types.UID]helper.PrepareResult, len(claims))
	for _, claim := range claims {
		prepared, err := s.prepare(claim)
		if err != nil {
			err = fmt.Errorf("prepare claim %s/%s: %w", claim.Namespace, claim.Name, err)
			results[claim.UID] = helper.PrepareResult{Err: err}
			continue
		}
		results[claim.UID] = helper.PrepareResult{Devices: kubeletDevices(prepared)}
		s.statuses.set(claim, prepared)
		klog.FromContext(ctx).Info("Prepared claim", "claim", klog.KObj(claim), "claimUID", claim.UID)
	}
	return results, nil
}

func (s *claimServer) prepare(claim *resourceapi.ResourceClaim) ([]driver.PreparedDevice, error) {
	if err := s.guards.check(); err != nil && !s.holds(claim.UID) {
		return nil, err
	}
	return s.driver.Prepare(claim)
}

func (s *claimServer) holds(claimUID types.UID) bool {
	return slices.ContainsFunc(s.driver.Grants(), func(grant driver.Grant) bool { return grant.UID == claimUID })
}

// UnprepareResourceClaims releases each claim by itself.
func (s *claimServer) UnprepareResourceClaims(ctx context.Context, claims []helper.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		err := s.driver.Unprepare(claim.UID)
		if err != nil {
			err = fmt.Errorf("unprepare claim %s: %w", claim.NamespacedName, err)
		} else {
			s.statuses.forget(claim.UID)
			klog.FromContext(ctx).Info("Unprepared claim", "claim", claim.NamespacedName, "claimUID", claim.UID)
		}
		results[claim.UID] = err
	}
	return results, nil
}

// HandleError hears of errors in the background. Those of publishing are only
// logged: reading back shows what became of the slices, and is repeated.
func (s *claimServer) HandleError(ctx context.Context, err error, msg string) {
	if errors.Is(err, helper.ErrRecoverable) {
		klog.FromContext(ctx).Error(err, msg)
		return
	}
	s.fatal(fmt.Errorf("%s: %w", msg, err))
}

// WatchHealthStatus is never called, because the health service is off.
func (s *claimServer) WatchHealthStatus(context.Context, chan<- helper.DeviceHealthReport) error {
	return helper.ErrHealthNotSupported
}

func kubeletDevices(prepared []driver.PreparedDevice) []helper.Device {
	devices := make([]helper.Device, 0, len(prepared))
	for _, device := range prepared {
		devices = append(devices, helper.Device{
			Requests:     []string{device.Request},
			PoolName:     device.Pool,
			DeviceName:   device.Device,
			CDIDeviceIDs: device.CDIDeviceIDs,
			ShareID:      device.ShareID,
		})
	}
	return devices
}
