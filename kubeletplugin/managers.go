package kubeletplugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// manager is a resource manager of the kubelet. Unless its policy is none, it decides
// on the CPUs or the memory of containers, and it does not know about claims.
type manager struct {
	name   string
	state  string // file in the kubelet's root directory that names the policy in force
	effect string
	remedy string // what to set in the kubelet's configuration
}

var managers = [...]manager{
	{"CPU manager", "cpu_manager_state", "which rewrites the cpuset of every container", "cpuManagerPolicy: none"},
	{"memory manager", "memory_manager_state", "which binds containers to NUMA nodes of its own choice", "memoryManagerPolicy: None"},
}

// checkManagers returns an error if one of the kubelet's managers must not run together
// with this driver. The error names all such managers in one line, because each of them
// takes a restart of the kubelet. A manager without a state file has never run.
func checkManagers(kubeletRoot string) error {
	var reasons []string
	for _, manager := range managers {
		path := filepath.Join(kubeletRoot, manager.state)
		policy, err := readPolicy(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && strings.EqualFold(policy, "none"):
		case err != nil:
			reasons = append(reasons, fmt.Sprintf("read policy of the kubelet's %s: %v", manager.name, err))
		default:
			reasons = append(reasons, fmt.Sprintf("kubelet's %s policy is %q, %s: set %s, stop the kubelet, delete %s and start the kubelet again",
				manager.name, policy, manager.effect, manager.remedy, path))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return guardError(strings.Join(reasons, "; "))
}

// readPolicy reads the policy from a manager's checkpoint, which the kubelet always
// replaces as a whole. Since Kubernetes 1.37, the actual checkpoint is a string of JSON
// in the field data. The other fields are there only for older kubelets
// (pkg/kubelet/cm/cpumanager/state/checkpoint.go, CPUManagerCheckpointV4).
func readPolicy(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var checkpoint struct {
		PolicyName string `json:"policyName"`
		Data       string `json:"data"`
	}
	if err := json.Unmarshal(text, &checkpoint); err != nil {
		return "", fmt.Errorf("parse %s: %w", path, err)
	}
	if checkpoint.Data != "" {
		if err := json.Unmarshal([]byte(checkpoint.Data), &checkpoint); err != nil {
			return "", fmt.Errorf("parse data of %s: %w", path, err)
		}
	}
	if checkpoint.PolicyName == "" {
		return "", fmt.Errorf("parse %s: no policyName", path)
	}
	return checkpoint.PolicyName, nil
}
