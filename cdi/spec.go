// Package cdi turns what a claim was given into a Container Device Interface
// spec and keeps one spec file per claim. The spec tells the container its CPUs
// and memory nodes in the environment and has the container runtime run the pin
// hook before the container's process starts; PCI functions it gives it as device
// nodes. It never decides which CPUs or functions a claim gets.
//
// The environment of a container that uses a claim has, as lists such as 0-3,8:
//
//	DRA_NUMA_CPUS         the claim's CPUs to run on; empty if it has memory only
//	DRA_NUMA_IDLE_CPUS    for a claim of one thread per core only: the siblings
//	                      of those, which nobody is to run on
//	DRA_NUMA_MEMS         the NUMA nodes of its memory
//	DRA_NUMA_SHARED_CPUS  for a mixed claim only: the CPUs of the node's shared
//	                      pool when the claim was prepared, where the container
//	                      may run as well; later claims take CPUs away from it
//	DRA_NUMA_PCI          the addresses of its PCI functions, 0000:3b:00.0,…
//	DRA_NUMA_INTERFACES   for a claim with such only: the network interfaces of
//	                      those functions, as the host calls them: eth1,…
//
// The first four are not there for a claim of PCI functions only, and the last two
// not for one of CPUs and memory only.
//
// A claim with several requests has each of these for the single request too,
// with the request's name in capitals behind: DRA_NUMA_CPUS_FAST_CPUS is of
// request fast-cpus. They are of the claim as a whole, whichever requests the
// container names. Of a container with several claims they are those of one of
// them, and sched_getaffinity(2) says where it may run. Nothing is decided by
// what a container says they are.
package cdi

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

const (
	// Kind is the CDI vendor and class of every device of this driver.
	Kind = deviceclasses.DriverName + "/claim"

	// specVersion is the oldest CDI version with everything used here that
	// containerd 1.7 and CRI-O 1.28 read.
	specVersion = "0.6.0"

	// noteKey is the annotation of a spec with the claim's Note.
	noteKey = deviceclasses.DriverName + "/grant"
)

// What the hook makes of a cgroup, as numa-pin spells it.
const (
	PartitionRoot     = deviceclasses.PartitionRoot
	PartitionIsolated = deviceclasses.PartitionIsolated
	PartitionNone     = deviceclasses.PartitionNone // only the container's own tasks are restricted
)

// Whose cgroup it is, as numa-pin spells it.
const (
	ScopeContainer = deviceclasses.ScopeContainer
	ScopePod       = deviceclasses.ScopePod
)

// Claim is what one resource claim was given.
type Claim struct {
	UID, Namespace, Name string
	Shares               []Share

	// Note is kept in the spec for whoever reads it back with [Store.Notes].
	// Runtimes ignore it, but refuse a spec with more than 256 KiB of them.
	Note string
}

// Share is what one allocation result of a claim was given.
type Share struct {
	Request string // as in the allocation result: "main" or "main/sub"
	Device  string
	Kind    ShareKind // a *Zone or a *Function; never nil
}

// ShareKind is what a share gives a container: [*Zone] or [*Function].
type ShareKind interface {
	// validate refuses what would end up elsewhere in a container, in its environment or
	// in an argument vector.
	validate() error
	// edits are what the runtime does for a container that has the share. Env is that of
	// the whole claim, which the container gets anyway.
	edits(claim Claim, hookPath string, env []string) specs.ContainerEdits
	// addTo adds it to what a container is told of its shares.
	addTo(c *content)
}

// Render returns the CDI spec of a claim: one device per share, which runs the
// hook at hookPath or has the device nodes of a PCI function.
func Render(claim Claim, hookPath string) (*specs.Spec, error) {
	if err := claim.Validate(); err != nil {
		return nil, err
	}
	spec := &specs.Spec{
		Version:        specVersion,
		Kind:           Kind,
		ContainerEdits: specs.ContainerEdits{Env: environment(claim.Shares)},
	}
	if claim.Note != "" {
		spec.Annotations = map[string]string{noteKey: claim.Note}
	}
	for i := range claim.Shares {
		share := &claim.Shares[i]
		spec.Devices = append(spec.Devices, specs.Device{
			Name:           deviceName(claim.UID, share.Request, share.Device),
			ContainerEdits: share.Kind.edits(claim, hookPath, spec.ContainerEdits.Env),
		})
	}
	return spec, nil
}

// DeviceID is the fully qualified CDI name of one share of a claim. It carries
// the claim's UID because runtimes cache specs: a name is never used twice.
func DeviceID(claimUID, request, device string) string {
	return Kind + "=" + deviceName(claimUID, request, device)
}

func deviceName(claimUID, request, device string) string {
	return claimUID + "_" + strings.ReplaceAll(request, "/", ".") + "_" + device
}

// LockFile is the lock that the hook at a path shares with everybody who works
// on cpuset partitions of the host.
func LockFile(hookPath string) string { return hookPath + ".lock" }

// RecordsDir is the folder beside the hook at a path where it writes down which
// cgroup has which claims.
func RecordsDir(hookPath string) string { return path.Join(path.Dir(hookPath), "pins") }

// environment lists what the whole claim has and, when it has several requests,
// each of them.
func environment(shares []Share) []string {
	var all content
	var requests []string
	for i := range shares {
		shares[i].Kind.addTo(&all)
		requests = append(requests, shares[i].mainRequest())
	}
	env := all.environment("")
	slices.Sort(requests)
	if requests = slices.Compact(requests); len(requests) < 2 {
		return env
	}
	for _, request := range requests {
		var own content
		for i := range shares {
			if share := &shares[i]; share.mainRequest() == request {
				share.Kind.addTo(&own)
			}
		}
		// Request names have no underscore, so different names stay different.
		env = append(env, own.environment("_"+strings.ReplaceAll(strings.ToUpper(request), "-", "_"))...)
	}
	return env
}

// mainRequest is the request without its subrequest: one of those is chosen, so
// the main name says all.
func (s *Share) mainRequest() string {
	main, _, _ := strings.Cut(s.Request, "/")
	return main
}

// Validate refuses names that Kubernetes would not have let pass: they end up
// in an argument vector, an environment and a file name.
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
