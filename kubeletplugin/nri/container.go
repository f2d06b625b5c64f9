package nri

import (
	"fmt"
	"slices"

	"github.com/containerd/nri/pkg/api"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// container is what the plugin knows about a container that the runtime can update. A
// value is never changed, only replaced.
type container struct {
	id      string
	name    string   // for messages: namespace/pod/container, as far as the runtime says it, and id
	devices []string // the names of all its CDI devices

	// unknown says that the container has CPUs of a claim, but that the runtime does
	// not say of which claim. Only the hook pins such a container.
	unknown bool

	has placement // as the runtime reports it
	// unsure says that an update of the container failed, or that two updates
	// overlapped: has may be wrong.
	unsure bool
}

func newContainer(message *api.Container) *container {
	c := &container{id: message.GetId(), name: nameOf(message), has: placementOf(message.GetLinux().GetResources().GetCpu())}
	for _, device := range message.GetCDIDevices() {
		c.devices = append(c.devices, device.GetName())
	}
	c.unknown = len(c.devices) == 0 && slices.ContainsFunc(message.GetHooks().GetCreateRuntime(), isPinHook)
	return c
}

// nameOf names a container for messages. The labels are the kubelet's, never the pod's.
func nameOf(message *api.Container) string {
	labels := message.GetLabels()
	pod := labels[kubelettypes.KubernetesPodNameLabel]
	if pod == "" {
		return message.GetId()
	}
	return fmt.Sprintf("%s/%s/%s (%s)", labels[kubelettypes.KubernetesPodNamespaceLabel], pod, message.GetName(), message.GetId())
}

// isPinHook recognizes our hook in an OCI spec. Only CDI specs and the host's
// configuration add hooks, never a pod. Runtimes before NRI 0.10, such as containerd
// 2.1, show no other sign of a claim.
func isPinHook(hook *api.Hook) bool {
	return len(hook.GetArgs()) >= 2 && hook.GetArgs()[0] == "numa-pin" && hook.GetArgs()[1] == "pin"
}

// placementOf converts the runtime's lists to the kernel's form. A list that cannot be
// parsed becomes empty.
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

// aim returns what the container should have.
func (p *Plugin) aim(c *container, rest shared) placement {
	if c.unknown {
		return placement{}
	}
	pinned, claimed := p.pinned(c)
	return adjust(pinned, claimed, p.narrowed.has(c.id), rest)
}

func (p *Plugin) pinned(c *container) (driver.Pinned, bool) {
	if len(c.devices) == 0 {
		return driver.Pinned{}, false
	}
	return p.options.Core.Pinned(c.devices)
}

// settled returns the container after a change that the runtime has carried out.
func (c *container) settled(change placement) *container {
	after := *c
	after.has, after.unsure = c.has.with(change), false
	return &after
}

// doubted returns the container when it is not known what it has.
func (c *container) doubted() *container {
	after := *c
	after.unsure = true
	return &after
}

// restricts reports whether the aim restricts a container without CPUs of a claim.
func (p *Plugin) restricts(c *container, aim placement) bool {
	if aim.cpus == "" || c.unknown {
		return false
	}
	pinned, _ := p.pinned(c)
	return pinned.CPUs.IsEmpty()
}
