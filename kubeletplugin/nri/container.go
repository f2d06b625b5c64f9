package nri

import (
	"slices"

	"github.com/containerd/nri/pkg/api"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// container is what is known of a container that the runtime can update. Its
// fields do not change: something new is a new value in its place.
type container struct {
	id      string
	devices []string // the names of all its CDI devices

	// unknown says that it has CPUs of a claim, and the runtime does not say of
	// which. Such a container is the hook's alone.
	unknown bool

	has placement // as the runtime says
	// unsure says that an update of it failed, or met another: has may be wrong.
	unsure bool
}

func newContainer(message *api.Container) *container {
	c := &container{id: message.GetId(), has: placementOf(message.GetLinux().GetResources().GetCpu())}
	for _, device := range message.GetCDIDevices() {
		c.devices = append(c.devices, device.GetName())
	}
	c.unknown = len(c.devices) == 0 && slices.ContainsFunc(message.GetHooks().GetCreateRuntime(), isPinHook)
	return c
}

// isPinHook recognizes our hook in an OCI spec. Only CDI specs and the host's
// configuration put hooks there, never a pod. Runtimes before NRI 0.10, as
// containerd 2.1, tell of a claim nothing else.
func isPinHook(hook *api.Hook) bool {
	return len(hook.GetArgs()) >= 2 && hook.GetArgs()[0] == "numa-pin" && hook.GetArgs()[1] == "pin"
}

// placementOf is what a runtime says, in the words of the kernel. A list that
// cannot be read is none.
func placementOf(cpu *api.LinuxCPU) placement {
	return placement{cpus: canonical(cpu.GetCpus()), mems: canonical(cpu.GetMems())}
}

func canonical(list string) string {
	set, err := cpuset.Parse(list)
	if err != nil {
		return ""
	}
	return set.String()
}

// aim is what the container should have.
func (p *Plugin) aim(c *container, rest shared) placement {
	if c.unknown {
		return placement{}
	}
	pinned, claimed := p.pinned(c)
	return adjust(pinned, claimed, rest)
}

func (p *Plugin) pinned(c *container) (driver.Pinned, bool) {
	if len(c.devices) == 0 {
		return driver.Pinned{}, false
	}
	return p.options.Core.Pinned(c.devices)
}

// settled is the container after a change that the runtime carried out.
func (c *container) settled(change placement) *container {
	after := *c
	after.has, after.unsure = c.has.with(change), false
	return &after
}

// doubted is the container when nobody knows what it has.
func (c *container) doubted() *container {
	after := *c
	after.unsure = true
	return &after
}
