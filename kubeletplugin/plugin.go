// Package kubeletplugin connects the driver to the kubelet and the API server: it
// registers, answers prepare and unprepare calls, publishes the node's ResourceSlices,
// reads them back and says whether the node is ready. It only translates, and decides
// nothing about CPUs.
//
// It is larger than other packages because all of the daemon's communication with the
// kubelet is here. So is its communication with the API server, except for the labels of
// the node, which the command reads. The parts depend on each other: a fault of a
// claim becomes a taint, an event, a condition and bad health of its device.
package kubeletplugin

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	metadatav1beta1 "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	helper "k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// sharedPoolTimeout bounds how long a container waits until other containers have left its
// CPUs. The kubelet waits 45 s for the whole call.
const sharedPoolTimeout = 5 * time.Second

// Options says how the plugin reaches the kubelet, the API server, the container
// runtime and the rest of the daemon.
type Options struct {
	Client      kubernetes.Interface
	PluginDir   string   // for dra.sock and metadata; the same path on the host and in the container
	RegistryDir string   // where the kubelet looks for plugins; must exist
	CDIDir      string   // where the container runtime looks for CDI specs
	KubeletRoot string   // where the kubelet's managers keep their state; for messages, the plugin reads nothing there
	State       *os.Root // where the plugin keeps what it remembers across restarts, and the keeper writes for it

	// Claims are the answers of ReadClaims about the claims on record.
	Claims map[types.UID]*resourceapi.ResourceClaim
	// Readiness receives whether the ResourceSlices are published.
	Readiness *Readiness
	// SharedPool is nil if the driver does not ask the container runtime to move other
	// containers.
	SharedPool SharedPool
	// Rehearsed says why the daemon could not prepare a made-up claim, or returns nil if it
	// could. It must not wait. Until it returns nil, the daemon is not ready, and prepares
	// claims all the same. If Rehearsed is nil, there was no rehearsal.
	Rehearsed func() error
	// Paused means that the NodeConfig pauses publishing: see WhyPaused.
	Paused bool
	// ModeReason says why the node has its mode of exclusivity, for people.
	ModeReason string
	// Fatal is called from a background goroutine, perhaps more than once, when
	// the plugin cannot go on. It must not call Stop itself.
	Fatal func(error)
}

// SharedPool keeps containers without a claim off the CPUs of claims, where the kernel does
// not do that.
type SharedPool interface {
	// Refresh makes all containers run where they should run now. It may be called
	// concurrently, and costs nothing when nothing has changed.
	Refresh(ctx context.Context) error
	// Connected is false while Refresh cannot reach the container runtime.
	Connected() bool
	// Refused is true if the container runtime did not carry out the last Refresh.
	Refused() bool
	// Unexplained returns the containers whose cpuset neither a claim nor the SharedPool gave them.
	Unexplained() []string
}

// Plugin is a running kubelet plugin.
type Plugin struct {
	driver     *driver.Driver
	sharedPool SharedPool
	helper     *helper.Helper
	publisher  *publisher
	statuses   *claimStatuses
	podEvents  *podEvents
	unpinned   *unpinned
	leftovers  *leftovers
	health     *health
	counters   counters
	sockets    sockets
	looks      looks
	cdiDir     string
	cancel     context.CancelFunc
	writing    sync.WaitGroup

	recovered  map[types.UID]*resourceapi.ResourceClaim // from Options; nil after the first Observe
	partitions faultWatch
	blocked    blockedWatch
	refusals   []pin.Refusal // that pods have an event about
	ignored    []pin.Ignored // the same

	toldIgnored map[types.UID]bool // claims that the daemon of before has told of; nil after the first look
}

// Start registers the driver with the kubelet and begins to publish. From then on the
// kubelet may prepare claims, so the driver must have recovered first. The plugin ends
// with ctx or Stop.
func Start(ctx context.Context, d *driver.Driver, options Options) (*Plugin, error) {
	nodeName := d.Config().NodeName
	guards := &guards{
		options.State.FS(), d.Config().BootID, options.KubeletRoot,
		newNodeSlices(options.Client, nodeName), newRivals(options.State, options.RegistryDir, d.Config()),
	}
	events := eventPace() // of node and pods together
	p := &Plugin{
		driver: d, sharedPool: options.SharedPool,
		statuses:  newClaimStatuses(options.Client, d.Config()),
		podEvents: newPodEvents(options.Client, nodeName, events),
		health:    newHealth(),
		sockets:   socketsOf(options),
		looks:     looks{began: time.Now()},
		cdiDir:    options.CDIDir,
		recovered: options.Claims, toldIgnored: toldIgnored(options.Claims),
	}
	p.unpinned = newUnpinned(options.Client, nodeName, func(grant ledger.Grant, container string, at time.Time) {
		p.podEvents.tell(grant, deviceclasses.FaultNotPinned, false, at, container)
	})
	p.leftovers = newLeftovers(options.Client, d)
	p.publisher = newPublisher(options.Client, nodeName, options.Readiness, guards, events, d.WithoutConflicts, func(ctx context.Context, resources resourceslice.DriverResources) error {
		return p.helper.PublishResources(ctx, resources)
	})
	p.publisher.fatal = options.Fatal
	p.publisher.rehearsed = options.Rehearsed
	p.publisher.whyPaused = func() string { return WhyPaused(options.Paused, options.PluginDir) }
	p.publisher.noLists = func() { d.SetGates(func(gates *driver.Gates) { gates.NUMANodeLists = false }) }
	p.publisher.suspects = d.Suspects
	p.publisher.mode = &modeNews{state: options.State, mode: d.Config().Exclusivity, why: options.ModeReason}
	told := toldFaults(options.Claims, d.Grants(), nodeName)
	p.partitions.told = told
	p.unpinned.resume(told)
	p.statuses.observe(told, sharedPoolAway)
	p.show(told)
	var err error
	p.helper, err = helper.Start(ctx, &claimServer{
		Plugin: p, client: options.Client, guards: guards, fatal: options.Fatal,
		releases: newReleases(),
	},
		helper.DriverName(driver.Name),
		helper.KubeClient(options.Client),
		helper.NodeName(nodeName),
		helper.PluginDataDirectoryPath(options.PluginDir),
		helper.RegistrarDirectoryPath(options.RegistryDir),
		helper.Serialize(false), // the driver has a lock of its own
		helper.EnableDeviceMetadata(true, []schema.GroupVersion{metadatav1beta1.SchemeGroupVersion}),
		helper.CDIDirectory(options.CDIDir),
	)
	if err != nil {
		return nil, fmt.Errorf("start kubelet plugin: %w", err)
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.publisher.start(ctx)
	p.writing.Go(func() { p.statuses.run(ctx) })
	p.writing.Go(func() { p.podEvents.run(ctx) })
	p.writing.Go(func() { p.unpinned.run(ctx) })
	p.writing.Go(func() { p.leftovers.run(ctx) })
	return p, nil
}

// Observe takes the current state of the recorded cgroups. It publishes what has
// changed there and in the driver's machine. One goroutine must call it about once a
// second: without these calls the kubelet gets no health reports. It does not wait for
// the API server.
func (p *Plugin) Observe(live []pin.Live) {
	now := time.Now()
	partitions, turns := p.partitions.look(now, live)
	p.leftovers.recorded.Store(new(maps.Clone(partitions)))
	if !p.driver.Config().MadeUp {
		for _, claimUID := range p.unpinned.observe(p.driver.Grants(), partitions) {
			partitions[claimUID] = []cgroupState{{ofAll: true, fault: deviceclasses.FaultNotPinned, why: whyNotPinned}}
		}
	}
	partitions.withIgnored(p.ignored)
	p.counters.see(live, partitions)
	p.statuses.observe(partitions, p.sharedPoolState())
	p.statuses.share(p.driver.List())
	p.seeUnexplained()
	released := p.statuses.forgetReleased(func(claimUID types.UID) bool {
		_, held := p.driver.Grant(claimUID)
		return held
	})
	if err := removeSpecsOf(released, p.cdiDir); err != nil {
		klog.Background().Error(err, "Keeping metadata of claims that are gone", "claimUIDs", released)
	}
	p.statuses.recover(p.recovered, p.driver.Grants()) // after observe, so that a status that is still right is not written again
	p.recovered = nil
	for _, turned := range turns {
		for _, claim := range turned.claims {
			p.tellPods(claim, turned, now)
		}
	}
	p.show(partitions)
}

// LookAtGuards checks in the background whether something else gives out the CPUs of the
// node. It must be called every few seconds: the policies of the kubelet's managers change
// when the kubelet restarts. A claim is prepared only after another look.
func (p *Plugin) LookAtGuards() { p.publisher.lookAtGuards() }

func (p *Plugin) sharedPoolState() sharedPoolState {
	switch {
	case p.sharedPool == nil || !p.sharedPool.Connected():
		return sharedPoolAway
	case p.sharedPool.Refused():
		return sharedPoolRefused
	}
	return sharedPoolKept
}

// tellPods puts an event on the pods of a claim if the claim has exclusive CPUs in the
// cgroup that has turned.
func (p *Plugin) tellPods(claim pin.Claim, turned turn, at time.Time) {
	grant, _ := p.driver.Grant(types.UID(claim.UID))
	var cpus cpuset.Set
	for _, share := range grant.Shares {
		if share.KernelExclusive() && gives(claim.Pinning, share) {
			cpus = cpus.Union(share.CPUs())
		}
	}
	if !cpus.IsEmpty() {
		p.podEvents.tell(grant, deviceclasses.FaultPartitionInvalid, !turned.lost, at, cpus, turned.why, turned.lasted.Round(time.Second)+time.Second)
	}
}

// show publishes the devices and reports their health.
func (p *Plugin) show(partitions partitionStates) {
	publication := p.driver.Publish(func(claimUID types.UID, share ledger.Share) string {
		return partitions.of(claimUID, share).whys[deviceclasses.FaultPartitionInvalid]
	}, p.blocked.look(time.Now(), p.driver.Blocked()))
	if publication.Renewed {
		p.publisher.set(publication.Devices)
		p.counters.devices.Store(&publication.Devices)
	}
	p.publisher.say(deviceclasses.FaultHugepages, notes(deviceclasses.FaultHugepages, publication.MissingHugepages))
	p.publisher.say(deviceclasses.FaultUnmet, notes(deviceclasses.FaultUnmet, publication.Unmet))
	p.health.set(deviceHealth(p.driver.Config().NodeName, publication.Devices, publication.Problems))
}

// RefreshSharedPool moves other containers off the CPUs of new claims before the containers
// of these claims start. It waits for sharedPoolTimeout at most. If the runtime is not
// connected, the claim's status says so.
func (p *Plugin) RefreshSharedPool(ctx context.Context) {
	if p.sharedPool == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, sharedPoolTimeout)
	defer cancel()
	if err := p.sharedPool.Refresh(bounded); err != nil && p.sharedPool.Connected() {
		klog.FromContext(ctx).Error(err, "Other containers may still run on the CPUs of claims")
	}
}

// Stop ends all background work and removes the sockets. The ResourceSlices
// stay: the kubelet removes them if no plugin comes back within 30 seconds.
func (p *Plugin) Stop() {
	p.cancel()
	p.helper.Stop() // also ends a call to publish that waits for the API server
	p.publisher.running.Wait()
	p.writing.Wait()
	p.sockets.close()
}
