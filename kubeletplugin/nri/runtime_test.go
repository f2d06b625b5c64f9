package nri

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// fakeRuntime is NRI's own side of a runtime, the one in containerd, over
// containers that are only messages. What containerd 2.4 does with answers is
// done here as there (internal/nri, internal/cri/nri).
type fakeRuntime struct {
	t       testing.TB
	version string // of containerd
	nri     *adaptation.Adaptation

	mu         sync.Mutex // held for each exchange, as in containerd
	containers map[string]*api.Container
	calls      [][]*api.ContainerUpdate // that the plugin asked for by itself
	broken     map[string]bool          // containers that cannot be updated
	holding    chan struct{}            // an update waits until it is closed, if not nil
	reached    chan struct{}            // an update that waits says so
}

func newRuntime(t testing.TB, socket string) *fakeRuntime {
	t.Helper()
	return newContainerd(t, "v2.4.2", socket)
}

func newContainerd(t testing.TB, version, socket string) *fakeRuntime {
	t.Helper()
	r := &fakeRuntime{t: t, version: version, containers: map[string]*api.Container{}, broken: map[string]bool{}, reached: make(chan struct{}, 1)}
	r.start(socket)
	return r
}

func (r *fakeRuntime) start(socket string) {
	r.t.Helper()
	// By default the runtime drops a plugin after 2 seconds, which a busy machine may need.
	adaptation.SetPluginRegistrationTimeout(time.Minute)
	adaptation.SetPluginRequestTimeout(time.Minute)
	dir := r.t.TempDir()
	var err error
	r.nri, err = adaptation.New(containerd, r.version, r.synchronize, r.updateContainers,
		adaptation.WithSocketPath(socket), adaptation.WithPluginPath(dir), adaptation.WithPluginConfigPath(dir))
	if err == nil {
		err = r.nri.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.nri.Stop)
}

func (r *fakeRuntime) synchronize(ctx context.Context, tell adaptation.SyncCB) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	updates, err := tell(ctx, nil, slices.Collect(maps.Values(r.containers)))
	if err != nil {
		return err
	}
	_, _ = r.apply(updates) // containerd only logs what fails
	return nil
}

func (r *fakeRuntime) updateContainers(_ context.Context, updates []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
	r.mu.Lock()
	holding := r.holding
	r.calls = append(r.calls, updates)
	r.mu.Unlock()
	if holding != nil {
		r.reached <- struct{}{}
		<-holding
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.apply(updates)
}

// apply passes over containers that do not exist, without a word.
func (r *fakeRuntime) apply(updates []*api.ContainerUpdate) (failed []*api.ContainerUpdate, err error) {
	for _, update := range updates {
		c, exists := r.containers[update.ContainerId]
		switch {
		case !exists:
		case r.broken[update.ContainerId]:
			failed = append(failed, update)
			err = errors.New("NRI update of some containers failed")
		default:
			cpu := update.GetLinux().GetResources().GetCpu()
			withCPUs(c, cpu.GetCpus(), cpu.GetMems())
		}
	}
	return failed, err
}

// withCPUs is a spec's cpuset after an update: what is empty changes nothing.
func withCPUs(c *api.Container, cpus, mems string) *api.Container {
	if c.Linux == nil {
		c.Linux = &api.LinuxContainer{Resources: &api.LinuxResources{Cpu: &api.LinuxCPU{}}}
	}
	if cpus != "" {
		c.Linux.Resources.Cpu.Cpus = cpus
	}
	if mems != "" {
		c.Linux.Resources.Cpu.Mems = mems
	}
	return c
}

// adjusted asks the plugins what a new container should be.
func (r *fakeRuntime) adjusted(c *api.Container) (*api.ContainerAdjustment, error) {
	defer r.nri.BlockPluginSync().Unblock()
	r.mu.Lock()
	defer r.mu.Unlock()
	answer, err := r.nri.CreateContainer(r.t.Context(), &api.CreateContainerRequest{Pod: &api.PodSandbox{Id: "pod"}, Container: c})
	if err != nil {
		return nil, err
	}
	cpu := answer.GetAdjust().GetLinux().GetResources().GetCpu()
	withCPUs(c, cpu.GetCpus(), cpu.GetMems())
	return answer.GetAdjust(), nil
}

// add is the rest of a container's creation.
func (r *fakeRuntime) add(c *api.Container) {
	r.t.Helper()
	defer r.nri.BlockPluginSync().Unblock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[c.Id] = c
	if err := r.nri.PostCreateContainer(r.t.Context(), &api.PostCreateContainerRequest{Pod: &api.PodSandbox{Id: "pod"}, Container: c}); err != nil {
		r.t.Error(err)
	}
}

func (r *fakeRuntime) create(id string, devices ...string) *api.ContainerAdjustment {
	r.t.Helper()
	c := containerMessage(id, devices...)
	adjustment, err := r.adjusted(c)
	if err != nil {
		r.t.Fatalf("create container %s: %v", id, err)
	}
	r.add(c)
	return adjustment
}

func containerMessage(id string, devices ...string) *api.Container {
	c := withCPUs(&api.Container{Id: id, PodSandboxId: "pod", Name: id}, "", "")
	for _, device := range devices {
		c.CDIDevices = append(c.CDIDevices, &api.CDIDevice{Name: device})
	}
	return c
}

// update is the kubelet's change of a container; the result is what the runtime
// goes on with.
func (r *fakeRuntime) update(id string, asked *api.LinuxResources) *api.LinuxResources {
	r.t.Helper()
	defer r.nri.BlockPluginSync().Unblock()
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	answer, err := r.nri.UpdateContainer(r.t.Context(), &api.UpdateContainerRequest{Pod: &api.PodSandbox{Id: "pod"}, Container: c, LinuxResources: asked})
	if err != nil {
		r.t.Fatalf("update container %s: %v", id, err)
	}
	if last := answer.Update[len(answer.Update)-1]; last != nil {
		asked = last.GetLinux().GetResources()
	}
	withCPUs(c, asked.GetCpu().GetCpus(), asked.GetCpu().GetMems())
	if err := r.nri.PostUpdateContainer(r.t.Context(), &api.PostUpdateContainerRequest{Pod: &api.PodSandbox{Id: "pod"}, Container: c}); err != nil {
		r.t.Error(err)
	}
	return asked
}

func (r *fakeRuntime) stop(id string) {
	r.t.Helper()
	defer r.nri.BlockPluginSync().Unblock()
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	delete(r.containers, id)
	if _, err := r.nri.StopContainer(r.t.Context(), &api.StopContainerRequest{Pod: &api.PodSandbox{Id: "pod"}, Container: c}); err != nil {
		r.t.Error(err)
	}
}

// state is "cpus/mems" of each container.
func (r *fakeRuntime) state() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := map[string]string{}
	for id, c := range r.containers {
		state[id] = c.Linux.Resources.Cpu.Cpus + "/" + c.Linux.Resources.Cpu.Mems
	}
	return state
}

func (r *fakeRuntime) sent() (calls []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, call := range r.calls {
		var ids []string
		for _, update := range call {
			ids = append(ids, update.ContainerId)
		}
		slices.Sort(ids)
		calls = append(calls, strings.Join(ids, " "))
	}
	return calls
}

// hold makes updates wait until release.
func (r *fakeRuntime) hold() (release func()) {
	holding := make(chan struct{})
	r.set(func() { r.holding = holding })
	return func() {
		r.set(func() { r.holding = nil })
		close(holding)
	}
}

func (r *fakeRuntime) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// fakeCore is who holds what: claims by their CDI device.
type fakeCore struct {
	mu       sync.Mutex
	claims   map[string]driver.Pinned
	restrict bool
}

func (c *fakeCore) Pinned(devices []string) (all driver.Pinned, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, device := range devices {
		if pinned, held := c.claims[device]; held {
			ok = true
			pinned.CPUs, pinned.Mems = pinned.CPUs.Union(all.CPUs), pinned.Mems.Union(all.Mems)
			all = pinned
		}
	}
	return all, ok
}

func (c *fakeCore) SharedPool() (cpuset.Set, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pool := online()
	for _, claim := range c.claims {
		pool = pool.Difference(claim.CPUs)
	}
	return pool, c.restrict
}

// Grantable is all but the first core.
func (c *fakeCore) Grantable() cpuset.Set { return online().Difference(cpuset.New(0, 1)) }

// hold replaces the claims; while there are any, others are to be restricted.
func (c *fakeCore) hold(claims map[string]driver.Pinned) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims, c.restrict = claims, len(claims) > 0
}

// coreWith returns a core that has these claims.
func coreWith(claims map[string]driver.Pinned) *fakeCore {
	core := &fakeCore{}
	core.hold(claims)
	return core
}

// holdInKernel replaces the claims; the kernel keeps others off.
func (c *fakeCore) holdInKernel(claims map[string]driver.Pinned) {
	c.hold(claims)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restrict = false
}

func online() cpuset.Set { return cpuset.New(0, 1, 2, 3, 4, 5, 6, 7) }

// claimA holds CPUs 2 and 3, claimB 4 to 7.
var (
	claimA = driver.Pinned{CPUs: cpuset.New(2, 3), Mems: cpuset.New(0), Claims: []string{"ns/a"}}
	claimB = driver.Pinned{CPUs: cpuset.New(4, 5, 6, 7), Mems: cpuset.New(1), Claims: []string{"ns/b"}}
)

// run starts a plugin, which ends with the test.
func run(ctx context.Context, t testing.TB, socket string, core Core) *Plugin {
	t.Helper()
	return startPlugin(ctx, t, New(Options{Socket: socket, Core: core}))
}

// startPlugin runs a plugin, which ends with the test.
func startPlugin(ctx context.Context, t testing.TB, p *Plugin) *Plugin {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		p.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("Run does not end with its context")
		}
	})
	return p
}

// connected is a runtime with a plugin.
func connected(t testing.TB, core Core) (*fakeRuntime, *Plugin) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "nri.sock")
	r := newRuntime(t, socket)
	return r, connect(t, socket, core)
}

func connect(t testing.TB, socket string, core Core) *Plugin {
	t.Helper()
	p := run(t.Context(), t, socket, core)
	eventually(t, "connected", p.Connected)
	return p
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not %s within a minute", what)
		}
	}
}

// heldRefresh starts a Refresh whose update the runtime holds until release.
func heldRefresh(ctx context.Context, r *fakeRuntime, p *Plugin) (answer <-chan error, release func()) {
	release = r.hold()
	answers := make(chan error, 1)
	go func() { answers <- p.Refresh(ctx) }()
	<-r.reached
	return answers, release
}

func refresh(t testing.TB, p *Plugin) {
	t.Helper()
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// settle returns when the plugin has carried out the refreshes that it starts by itself.
func settle(t testing.TB, p *Plugin) {
	t.Helper()
	eventually(t, "awake", func() bool { return len(p.connection().awake) == 0 })
	refresh(t, p) // after one that has begun
}

func wantState(t testing.TB, r *fakeRuntime, want map[string]string) {
	t.Helper()
	if got := r.state(); !maps.Equal(got, want) {
		t.Errorf("containers have %v, want %v", got, want)
	}
}

func ids(prefix string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%s%03d", prefix, i))
	}
	return ids
}
