package nri

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"k8s.io/klog/v2"
)

// handlers answers the runtime over one connection. The runtime waits for each answer
// and does nothing else meanwhile, so no handler calls the runtime. The plugin learns
// what a container has from later reports of the runtime, never from its own answers:
// an answer may be lost, or the container may never be created.
type handlers struct {
	plugin  *Plugin
	session *session
}

var (
	_ stub.ConfigureInterface           = handlers{}
	_ stub.SynchronizeInterface         = handlers{}
	_ stub.CreateContainerInterface     = handlers{}
	_ stub.PostCreateContainerInterface = handlers{}
	_ stub.UpdateContainerInterface     = handlers{}
	_ stub.PostUpdateContainerInterface = handlers{}
	_ stub.StopContainerInterface       = handlers{}
	_ stub.RemoveContainerInterface     = handlers{}
)

// Configure takes the name and version of the runtime.
func (h handlers) Configure(_ context.Context, _, runtime, version string) (api.EventMask, error) {
	h.session.runtime = runtime + " " + version
	h.session.policies = setsPolicies(runtime, version, h.session.stub.RuntimeNRIVersion())
	return 0, nil // subscribes to every event that handlers has a method for
}

// Synchronize takes the existing containers, and repairs those whose cpuset is not as
// it should be. The runtime does not report the result of these repairs. So the first
// refresh sends again what is still wrong on record.
func (h handlers) Synchronize(_ context.Context, _ []*api.PodSandbox, messages []*api.Container) ([]*api.ContainerUpdate, error) {
	containers := make(map[string]*container, len(messages))
	for _, message := range messages {
		containers[message.GetId()] = newContainer(message)
	}
	h.plugin.narrowed.retain(containers)
	var updates []*api.ContainerUpdate
	for _, due := range h.plugin.repairs(containers) {
		updates = append(updates, due.aim.update(due.container.id))
	}
	h.plugin.updates.Add(uint64(len(updates)))
	h.plugin.begin(h.session, containers)
	return updates, nil
}

// CreateContainer puts the cpuset, the memory policy and the environment into the OCI
// spec. A CDI spec cannot say what several requests or claims give one container.
func (h handlers) CreateContainer(_ context.Context, _ *api.PodSandbox, message *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	c := newContainer(message)
	if c.unknown {
		return nil, nil, nil
	}
	pinned, claimed := h.plugin.pinned(c)
	aim := adjust(pinned, claimed, h.plugin.narrowed.has(c.id), h.plugin.shared())
	if h.plugin.restricts(c, aim) {
		h.plugin.narrowed.add(c.id)
	}
	adjustment := &api.ContainerAdjustment{}
	for _, variable := range pinned.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		adjustment.AddEnv(name, value)
	}
	if aim.cpus != "" {
		adjustment.SetLinuxCPUSetCPUs(aim.cpus)
	}
	if aim.mems != "" {
		adjustment.SetLinuxCPUSetMems(aim.mems)
	}
	if pinned.MemoryPolicy != "" && !pinned.PolicyMems.IsEmpty() {
		mode, err := memoryMode(pinned.MemoryPolicy, pinned.PolicyMems.Size())
		if err != nil {
			return nil, nil, fmt.Errorf("claims %q: %w", pinned.Claims, err)
		}
		// Without the flag, the kernel takes the nodes for places in the cpuset, and moves them when
		// the task joins another one: 0 and 2 become 0 alone where only these two are allowed.
		adjustment.SetLinuxMemoryPolicy(mode, pinned.PolicyMems.String(), api.MpolFlag_MPOL_F_STATIC_NODES)
	}
	return adjustment, nil, nil
}

// PostCreateContainer records the container. Claims may have changed while it was being
// created, when it could not be updated, so it may need a refresh.
func (h handlers) PostCreateContainer(_ context.Context, _ *api.PodSandbox, message *api.Container) error {
	h.observe(message)
	return nil
}

// UpdateContainer accepts every requested change, except one of the cpuset of a
// container that must keep its own.
func (h handlers) UpdateContainer(ctx context.Context, _ *api.PodSandbox, message *api.Container, asked *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	c := newContainer(message)
	aim := h.plugin.aim(c, h.plugin.shared())
	if aim == (placement{}) {
		return nil, nil
	}
	if h.plugin.restricts(c, aim) {
		h.plugin.narrowed.add(c.id)
	}
	answer := aim.update(message.GetId())
	for key, list := range map[string]string{"cpuset.cpus": aim.cpus, "cpuset.mems": aim.mems} {
		if _, given := asked.GetUnified()[key]; given && list != "" {
			answer.AddLinuxUnified(key, list)
		}
	}
	if wish := placementOf(asked.GetCpu()); refused(wish.cpus, aim.cpus) || refused(wish.mems, aim.mems) {
		klog.FromContext(ctx).Info("Rejected a change of the cpuset of a container", "container", c.name,
			"cpus", aim.cpus, "mems", aim.mems, "askedCPUs", wish.cpus, "askedMems", wish.mems)
	}
	return []*api.ContainerUpdate{answer}, nil
}

func refused(wish, aim string) bool { return wish != "" && aim != "" && wish != aim }

// PostUpdateContainer records what the container has now.
func (h handlers) PostUpdateContainer(_ context.Context, _ *api.PodSandbox, message *api.Container) error {
	h.observe(message)
	return nil
}

// StopContainer forgets the container.
func (h handlers) StopContainer(_ context.Context, _ *api.PodSandbox, message *api.Container) ([]*api.ContainerUpdate, error) {
	h.forget(message)
	return nil, nil
}

// RemoveContainer forgets the container.
func (h handlers) RemoveContainer(_ context.Context, _ *api.PodSandbox, message *api.Container) error {
	h.forget(message)
	return nil
}

// observe records a container, but only for the connection in use: reports of an older
// connection are outdated.
func (h handlers) observe(message *api.Container) {
	h.plugin.mu.Lock()
	defer h.plugin.mu.Unlock()
	if h.plugin.session == h.session {
		h.plugin.containers[message.GetId()] = newContainer(message)
		h.session.wake()
	}
}

func (h handlers) forget(message *api.Container) {
	h.plugin.mu.Lock()
	delete(h.plugin.containers, message.GetId())
	h.plugin.mu.Unlock()
	h.plugin.narrowed.remove(message.GetId())
}

// begin makes s the connection in use, unless it has ended.
func (p *Plugin) begin(s *session, containers map[string]*container) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.ended {
		p.session, p.containers = s, containers
		s.wake()
	}
}
