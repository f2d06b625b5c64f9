// Package cdi turns what a claim was given into a Container Device Interface
// spec and keeps one spec file per claim. The spec tells the container its CPUs
// and memory nodes in the environment and has the container runtime run the pin
// hook before the container's process starts. It never decides which CPUs a
// claim gets.
package cdi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	// Kind is the CDI vendor and class of every device of this driver.
	Kind = "dra.numa/claim"

	// Partition is what a container with CPUs of a claim becomes: the kernel
	// keeps all other tasks off them and balances load inside.
	Partition = "root"

	// specVersion is the oldest CDI version with everything used here that
	// containerd 1.7 and CRI-O 1.28 read.
	specVersion = "0.6.0"

	// noteKey is the annotation of a spec with the claim's Note.
	noteKey = "dra.numa/grant"
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
	CPUs    cpuset.Set // empty: the share has memory only
	Mems    cpuset.Set // NUMA nodes
}

// Render returns the CDI spec of a claim: one device per share, which runs the
// hook at hookPath.
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
	for _, share := range claim.Shares {
		spec.Devices = append(spec.Devices, specs.Device{
			Name:           deviceName(claim.UID, share.Request, share.Device),
			ContainerEdits: specs.ContainerEdits{Hooks: []*specs.Hook{pinHook(claim, share, hookPath)}},
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

func pinHook(claim Claim, share Share, path string) *specs.Hook {
	return &specs.Hook{
		HookName: "createRuntime",
		Path:     path,
		Args: []string{
			"numa-pin", "pin",
			"--claim=" + claim.Namespace + "/" + claim.Name,
			"--cpus=" + share.CPUs.String(),
			"--mems=" + share.Mems.String(),
			"--partition=" + Partition,
			"--lock=" + LockFile(path),
		},
	}
}

// LockFile is the lock that the hook at a path shares with everybody who works
// on cpuset partitions of the host.
func LockFile(hookPath string) string { return hookPath + ".lock" }

// environment lists the CPUs and memory nodes of the whole claim and, when it
// has several requests, of each of them.
func environment(shares []Share) []string {
	var all Share
	byRequest := make(map[string]Share)
	for _, share := range shares {
		all = all.united(share)
		request, _, _ := strings.Cut(share.Request, "/") // one subrequest is chosen, the main name says all
		byRequest[request] = byRequest[request].united(share)
	}
	env := all.environment("")
	if len(byRequest) < 2 {
		return env
	}
	for _, request := range slices.Sorted(maps.Keys(byRequest)) {
		// Request names have no underscore, so different names stay different.
		suffix := "_" + strings.ReplaceAll(strings.ToUpper(request), "-", "_")
		env = append(env, byRequest[request].environment(suffix)...)
	}
	return env
}

func (s Share) united(other Share) Share {
	s.CPUs = s.CPUs.Union(other.CPUs)
	s.Mems = s.Mems.Union(other.Mems)
	return s
}

func (s Share) environment(suffix string) []string {
	return []string{
		"DRA_NUMA_CPUS" + suffix + "=" + s.CPUs.String(),
		"DRA_NUMA_MEMS" + suffix + "=" + s.Mems.String(),
	}
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
	for _, share := range c.Shares {
		if err := share.validate(); err != nil {
			return fmt.Errorf("claim %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	return nil
}

func (s Share) validate() error {
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
	return nil
}
