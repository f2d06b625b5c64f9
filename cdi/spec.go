// Package cdi renders what a claim holds as a Container Device Interface (CDI) spec, and
// keeps one spec file per claim. The spec tells the container its CPUs and NUMA nodes in
// environment variables. For CPUs and memory, it makes the container runtime run the pin
// hook before the container's process starts. For PCI functions, it gives the container
// device nodes. The package never decides which CPUs or functions a claim gets.
//
// A container that uses a claim has these environment variables. CPUs and NUMA nodes
// are lists such as 0-3,8:
//
//	DRA_NUMA_CPUS         the CPUs that the container runs on; empty if it has memory
//	                      only
//	DRA_NUMA_IDLE_CPUS    only with one thread per core: the sibling threads of those
//	                      CPUs, which stay idle
//	DRA_NUMA_MEMS         the NUMA nodes that its memory must come from; empty if it
//	                      may come from any, because the claim has no memory
//	DRA_NUMA_SHARED_CPUS  only if the claim is mixed: the CPUs of the node's shared
//	                      pool when the claim was prepared. The container may run
//	                      on them too. Later claims take CPUs away from the pool
//	DRA_NUMA_PCI          the addresses of its PCI functions: 0000:3b:00.0,…
//	DRA_NUMA_INTERFACES   only if those functions have network interfaces: the names
//	                      of the interfaces on the host: eth1,…
//	DRA_NUMA_CACHES       the ids of the level-3 caches that it has ways of: 0,…
//
// A container that has only PCI functions does not have the first four variables. A
// container that has only CPUs and memory does not have the last three.
//
// A CDI spec gives these variables only to containers of claims with one request. If a
// claim has several requests, a container gets the variables of the requests that it
// names. Their names end with the request's name in capitals: DRA_NUMA_CPUS_FAST_CPUS
// is for the request fast-cpus. The driver sets the variables without that ending over
// NRI, for all claims of the container together; see [Environment]. Without NRI, they
// are missing, or those of one of its claims. sched_getaffinity(2) says where a
// container may run. A container can change its variables: no decision depends on them.
package cdi

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

const (
	// Kind is the CDI vendor and class of every device of this driver.
	Kind = deviceclasses.DriverName + "/claim"

	// specVersion is the oldest CDI version that has everything used here.
	// containerd 1.7 and CRI-O 1.28 read it.
	specVersion = "0.6.0"
	// joinVersion is the oldest CDI version with groups of resctrl, which few claims need.
	joinVersion = "0.7.0"

	// noteKey is the key of the spec's annotation that holds the claim's Note.
	noteKey = deviceclasses.DriverName + "/grant"
)

// The values of numa-pin's flag --partition: the kind of partition that the hook makes.
const (
	PartitionRoot     = deviceclasses.PartitionRoot
	PartitionIsolated = deviceclasses.PartitionIsolated
	PartitionNone     = deviceclasses.PartitionNone // only the container's own tasks are restricted
)

// The values of numa-pin's flag --scope: whose cgroup gets the CPUs.
const (
	ScopeContainer = deviceclasses.ScopeContainer
	ScopePod       = deviceclasses.ScopePod
)

// Claim is what one ResourceClaim holds.
type Claim struct {
	UID, Namespace, Name string
	Shares               []Share

	// Pods are the UIDs of the pods that the scopes of the shares were decided for. The hook
	// makes no partition of another pod's cgroup. Empty: of any pod's.
	Pods []types.UID
	// QuotaPods are the pods that have no CPU limit of their own.
	QuotaPods []QuotaPod

	// Note is stored in the spec as an annotation. [Store.Notes] reads it back.
	// Runtimes ignore it, but refuse a spec with more than 256 KiB of annotations.
	Note string
}

// QuotaPod is a pod without a CPU limit of its own (spec.resources).
type QuotaPod struct {
	UID types.UID `json:"uid"`
	// MilliCPU is what the CPU limits of its containers add up to, in thousandths of a CPU; 0:
	// not each of them has one, so that Kubernetes gives the pod no quota.
	MilliCPU int64 `json:"milliCPU"`
}

// Share is what one allocation result of a claim holds.
type Share struct {
	Request string // as in the allocation result: "main" or "main/sub"
	Device  string
	Kind    ShareKind // a *Zone, a *Function or a *Cache; never nil
}

// ShareKind is what a share gives a container: [*Zone], [*Function] or [*Cache].
type ShareKind interface {
	// validate refuses values that are not safe in a device node, in the container's
	// environment or in the arguments of the hook.
	validate() error
	// edits returns what the runtime does for a container that has the share, except for
	// its environment.
	edits(claim Claim, hook Hook) specs.ContainerEdits
	// addTo adds it to what a container is told of its shares.
	addTo(c *content)
}

// Render returns the CDI spec of a claim, with one device per share. The device of a
// [Zone] runs the hook. The device of a [Function] has its device nodes. That of a [Cache]
// puts the container into a group of resctrl, or has only environment variables.
func Render(claim Claim, hook Hook) (*specs.Spec, error) {
	if err := claim.Validate(); err != nil {
		return nil, err
	}
	spec := &specs.Spec{Version: specVersion, Kind: Kind}
	if claim.Note != "" {
		spec.Annotations = map[string]string{noteKey: claim.Note}
	}
	requests := requestsOf(claim.Shares)
	var env []string
	if len(requests) == 1 {
		env = Environment(claim.Shares)
		spec.ContainerEdits.Env = env
	}
	for i := range claim.Shares {
		share := &claim.Shares[i]
		if len(requests) > 1 {
			env = requestEnvironment(claim.Shares, share.mainRequest())
		}
		edits := share.Kind.edits(claim, hook)
		if edits.IntelRdt != nil {
			spec.Version = joinVersion
		}
		if len(requests) > 1 || len(edits.Hooks)+len(edits.DeviceNodes) == 0 {
			edits.Env = env // runtimes refuse a CDI device without edits
		}
		spec.Devices = append(spec.Devices, specs.Device{Name: share.name(claim.UID), ContainerEdits: edits})
	}
	return spec, nil
}

// DeviceID returns the fully qualified CDI name of one share of a claim. It contains
// the claim's UID, so no name is used twice: runtimes cache specs.
func DeviceID(claimUID, request, device string) string {
	return Kind + "=" + deviceName(claimUID, request, device)
}

// DeviceID returns the fully qualified CDI name that the share's device has in the spec. It is
// that of DeviceID, except for a [Function] that is lost.
func (s *Share) DeviceID(claimUID string) string { return Kind + "=" + s.name(claimUID) }

func (s *Share) name(claimUID string) string {
	name := deviceName(claimUID, s.Request, s.Device)
	if f, isFunction := s.Kind.(*Function); isFunction && f.Lost {
		name += "_lost"
	}
	return name
}

func deviceName(claimUID, request, device string) string {
	return claimUID + "_" + strings.ReplaceAll(request, "/", ".") + "_" + device
}

// Environment returns the variables for these shares together, without a request's name
// at the end, as name=value. The shares are those of one container.
func Environment(shares []Share) []string {
	var all content
	for i := range shares {
		shares[i].Kind.addTo(&all)
	}
	return all.environment("")
}

// requestEnvironment returns the variables for all shares of a request together, with
// the request's name at the end.
func requestEnvironment(shares []Share, request string) []string {
	var own content
	for i := range shares {
		if share := &shares[i]; share.mainRequest() == request {
			share.Kind.addTo(&own)
		}
	}
	// Request names have no underscore, so different names stay different.
	return own.environment("_" + strings.ReplaceAll(strings.ToUpper(request), "-", "_"))
}

// requestsOf returns the requests of the shares, each once.
func requestsOf(shares []Share) (requests []string) {
	for i := range shares {
		requests = append(requests, shares[i].mainRequest())
	}
	slices.Sort(requests)
	return slices.Compact(requests)
}

// mainRequest returns the name of the request without its subrequest. The scheduler
// chooses one subrequest of a request, so the main name is enough.
func (s *Share) mainRequest() string {
	main, _, _ := strings.Cut(s.Request, "/")
	return main
}

// Validate refuses a claim without shares, and names that Kubernetes would not accept:
// they become part of the hook's arguments, the environment and a file name.
func (c Claim) Validate() error {
	for _, name := range []struct {
		what, value string
		problems    func(string) []string
	}{
		{"uid", c.UID, validation.IsDNS1123Label},
		{"namespace", c.Namespace, validation.IsDNS1123Label},
		{"name", c.Name, validation.IsDNS1123Subdomain},
	} {
		if problems := name.problems(name.value); len(problems) > 0 {
			return fmt.Errorf("claim %s %q: %s", name.what, name.value, problems[0])
		}
	}
	pods := slices.Clone(c.Pods)
	for _, pod := range c.QuotaPods {
		pods = append(pods, pod.UID)
	}
	for _, pod := range pods {
		if problems := validation.IsDNS1123Label(string(pod)); len(problems) > 0 {
			return fmt.Errorf("claim %s/%s: uid of pod %q: %s", c.Namespace, c.Name, pod, problems[0])
		}
	}
	if len(c.Shares) == 0 {
		return fmt.Errorf("claim %s/%s: no shares", c.Namespace, c.Name)
	}
	for i := range c.Shares {
		if err := c.Shares[i].validate(); err != nil {
			return fmt.Errorf("claim %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	return nil
}

func (s *Share) validate() error {
	main, sub, isSub := strings.Cut(s.Request, "/")
	parts := []string{main}
	if isSub {
		parts = append(parts, sub)
	}
	for _, part := range parts {
		if problems := validation.IsDNS1123Label(part); len(problems) > 0 {
			return fmt.Errorf("request %q: %s", s.Request, problems[0])
		}
	}
	if problems := validation.IsDNS1123Label(s.Device); len(problems) > 0 {
		return fmt.Errorf("device %q: %s", s.Device, problems[0])
	}
	return s.Kind.validate()
}
