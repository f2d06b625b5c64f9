package cdi

import (
	"path"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

// LockFile returns the path of the lock that belongs to the hook at hookPath. Every
// program of this driver takes it before it changes cpuset partitions of the host.
func LockFile(hookPath string) string { return hookPath + ".lock" }

// RecordsDir returns the path of the directory, next to the hook at hookPath, where the
// hook records which cgroup has which claims.
func RecordsDir(hookPath string) string { return path.Join(path.Dir(hookPath), "pins") }

// StopFile returns the path of a file, next to the hook at hookPath, that stops the hook
// from pinning containers while it exists. An administrator makes it. The hook looks
// beside the directory of the records.
func StopFile(hookPath string) string { return path.Join(path.Dir(hookPath), "stop-pinning") }

// pinHook returns the hook that pins a container which has the share z of the claim.
func pinHook(claim Claim, z *Zone, hookPath string) *specs.Hook {
	hook := &specs.Hook{
		HookName: "createRuntime",
		Path:     hookPath,
		Args: []string{
			"numa-pin", "pin",
			"--uid=" + claim.UID,
			"--claim=" + claim.Namespace + "/" + claim.Name,
			"--cpus=" + z.HookCPUs().String(),
			"--mems=" + z.Mems.String(),
			"--partition=" + z.Partition,
			"--scope=" + z.Scope,
			"--lock=" + LockFile(hookPath),
			"--records=" + RecordsDir(hookPath),
		},
	}
	if z.Partition != PartitionNone && !z.IdleCPUs.IsEmpty() {
		hook.Args = append(hook.Args, "--idle="+z.IdleCPUs.String())
	}
	return hook
}
