package kubeletplugin

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
)

// manager is a resource manager of the kubelet. Unless its policy is none, it decides
// on the CPUs or the memory of containers, and it does not know about claims.
type manager struct {
	name   string
	state  string // file in the kubelet's root directory that names the policy in force
	effect string
	remedy string // what to set in the kubelet's configuration
	policy func(keeperfile.Policies) keeperfile.Policy
}

var managers = [...]manager{
	{
		"CPU manager", keeperfile.CPUManagerFile, "which rewrites the cpuset of every container", "cpuManagerPolicy: none",
		func(p keeperfile.Policies) keeperfile.Policy { return p.CPU },
	},
	{
		"memory manager", keeperfile.MemoryManagerFile, "which binds containers to NUMA nodes of its own choice", "memoryManagerPolicy: None",
		func(p keeperfile.Policies) keeperfile.Policy { return p.Memory },
	},
}

// checkManagers returns an error if one of the kubelet's managers must not run together
// with this driver, by what the keeper wrote to the driver's directory. The error names all
// such managers in one line, because each of them takes a restart of the kubelet. A manager
// without a state file has never run. kubeletRoot is only for the message.
func checkManagers(dir fs.FS, boot, kubeletRoot string) error {
	said, err := keeperfile.LoadPolicies(dir, boot)
	if err != nil {
		return err
	}
	var reasons []string
	for _, manager := range managers {
		path := filepath.Join(kubeletRoot, manager.state)
		switch policy := manager.policy(said); {
		case policy.Problem != "":
			reasons = append(reasons, fmt.Sprintf("read policy of the kubelet's %s: %s: %s", manager.name, path, policy.Problem))
		case policy.Name == "", strings.EqualFold(policy.Name, "none"):
		default:
			reasons = append(reasons, fmt.Sprintf("kubelet's %s policy is %q, %s: set %s, stop the kubelet, delete %s and start the kubelet again",
				manager.name, policy.Name, manager.effect, manager.remedy, path))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return guardError{ReasonKubeletManager, strings.Join(reasons, "; ")}
}
