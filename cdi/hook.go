package cdi

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// Hook says where on the host the hook's program and its files are. The two folders
// differ, because the daemon writes in the second one, and must not be able to replace a
// program that the runtime runs as root.
type Hook struct {
	Path string // of the program
	Dir  string // of the lock, the records and the file that stops pinning
	None bool   // there is no hook, and containers are not pinned

	// LiftQuota has the hook lift the CPU quotas of containers that the CPUs of their claims fit
	// in, and those of their pods.
	LiftQuota bool
}

// LockFile returns the path of the hook's lock. Every program of this driver takes it
// before it changes cpuset partitions of the host.
func (h Hook) LockFile() string { return path.Join(h.Dir, "numa-pin.lock") }

// RecordsDir returns the path of the directory where the hook records which cgroup has
// which claims.
func (h Hook) RecordsDir() string { return path.Join(h.Dir, "pins") }

// StopFile returns the path of a file that stops the hook from pinning containers while
// it exists. An administrator creates it. The hook looks for it next to the
// directory of the records.
func (h Hook) StopFile() string { return path.Join(h.Dir, "stop-pinning") }

// HookCalls returns how the container runtime runs the hooks in the spec of a claim in the
// directory: the arguments of each. The first argument is the name of the program.
func HookCalls(dir fs.FS, claimUID string) (calls [][]string, err error) {
	text, err := fs.ReadFile(dir, fileName(claimUID))
	if err != nil {
		return nil, err
	}
	var spec specs.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("read CDI spec of claim %s: %w", claimUID, err)
	}
	for _, device := range spec.Devices {
		for _, hook := range device.ContainerEdits.Hooks {
			if hook == nil || len(hook.Args) == 0 {
				return nil, fmt.Errorf("CDI spec of claim %s has a hook without arguments", claimUID)
			}
			calls = append(calls, hook.Args)
		}
	}
	return calls, nil
}

// useHook returns the hook that records that a container uses the claim.
func useHook(claim Claim, h Hook, more ...string) *specs.Hook {
	args := []string{"numa-pin", "use", "--uid=" + claim.UID, "--claim=" + claim.Namespace + "/" + claim.Name}
	args = append(append(args, more...), "--lock="+h.LockFile(), "--records="+h.RecordsDir())
	return &specs.Hook{HookName: "createRuntime", Path: h.Path, Args: args}
}

// mempolicyHook returns the hook that looks whether a container has the memory policy of the
// share z. Not every runtime has set it when createRuntime hooks run.
func mempolicyHook(claim Claim, z *Zone, h Hook) *specs.Hook {
	return &specs.Hook{
		HookName: "poststart",
		Path:     h.Path,
		Args: []string{
			"numa-pin", "mempolicy", "--uid=" + claim.UID, "--claim=" + claim.Namespace + "/" + claim.Name,
			"--want=" + z.MemoryPolicy, "--lock=" + h.LockFile(), "--records=" + h.RecordsDir(),
		},
	}
}

// pinHook returns the hook that pins a container which has the share z of the claim.
func pinHook(claim Claim, z *Zone, h Hook) *specs.Hook {
	hook := &specs.Hook{
		HookName: "createRuntime",
		Path:     h.Path,
		Args: []string{
			"numa-pin", "pin",
			"--uid=" + claim.UID,
			"--claim=" + claim.Namespace + "/" + claim.Name,
			"--cpus=" + z.HookCPUs().String(),
			"--mems=" + z.Mems.String(),
			"--partition=" + z.Partition,
			"--scope=" + z.Scope,
			"--lock=" + h.LockFile(),
			"--records=" + h.RecordsDir(),
		},
	}
	if h.LiftQuota && !z.HookCPUs().IsEmpty() && len(claim.QuotaPods) > 0 {
		hook.Args = append(hook.Args, "--lift-quota="+joined(claim.QuotaPods, QuotaPod.String))
	}
	if z.Partition == PartitionNone {
		return hook
	}
	if z.Scope == ScopePod && len(claim.Pods) > 0 {
		hook.Args = append(hook.Args, "--pods="+joined(claim.Pods, func(uid types.UID) string { return string(uid) }))
	}
	if !z.IdleCPUs.IsEmpty() {
		hook.Args = append(hook.Args, "--idle="+z.IdleCPUs.String())
	}
	return hook
}

// String returns the pod as the hook reads it: UID=MilliCPU.
func (p QuotaPod) String() string { return fmt.Sprintf("%s=%d", p.UID, p.MilliCPU) }

func joined[T any](pods []T, text func(T) string) string {
	var list []string
	for _, pod := range pods {
		list = append(list, text(pod))
	}
	return strings.Join(list, ",")
}
