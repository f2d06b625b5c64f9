package keeperfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// PoliciesName is the name of the file in the driver's directory that the keeper writes and the
// daemon reads.
const PoliciesName = "kubelet-policies"

// The checkpoints of the managers in the kubelet's root directory. The kubelet replaces
// them as a whole.
const (
	CPUManagerFile    = "cpu_manager_state"
	MemoryManagerFile = "memory_manager_state"
)

const (
	// stateBytes bounds how much of a checkpoint is read. With the policy static, it has
	// about 100 bytes for each container.
	stateBytes = 4 << 20
	// nameBytes bounds the name of a policy. The kubelet's names have up to 10 letters.
	nameBytes = 32
)

// ErrUnknown says that the keeper of this boot has not written the file yet. The file is not
// synced: after a power failure, it may be damaged until the keeper runs.
var ErrUnknown = errors.New("the keeper has not yet said which policies the kubelet's managers have")

// Policies are those of the kubelet's CPU and memory managers, as the keeper found them. The
// kubelet keeps them in files of its root directory, where the secrets of all pods are, too. So
// only the keeper, which has no access to the API server, reads that directory, and it passes
// nothing on but the names of the policies.
type Policies struct {
	Boot   string `json:"boot"` // id of the boot in which the keeper looked: the kubelet of another one may have other policies
	CPU    Policy `json:"cpuManager"`
	Memory Policy `json:"memoryManager"`
}

// Policy is that of one manager. Without a name and a problem, the manager has no
// checkpoint: it has never run.
type Policy struct {
	Name    string `json:"policy,omitempty"`
	Problem string `json:"problem,omitempty"` // why the checkpoint has no name that can be read
}

// ReadPolicies reads the policies from the kubelet's root directory.
func ReadPolicies(kubelet fs.FS, boot string) Policies {
	return Policies{boot, read(kubelet, CPUManagerFile), read(kubelet, MemoryManagerFile)}
}

func read(kubelet fs.FS, file string) Policy {
	text, err := readFile(kubelet, file)
	if errors.Is(err, fs.ErrNotExist) {
		return Policy{}
	}
	if err != nil {
		return Policy{Problem: err.Error()}
	}
	name, err := parse(text)
	if err != nil {
		return Policy{Problem: err.Error()}
	}
	return Policy{Name: name}
}

func readFile(kubelet fs.FS, name string) ([]byte, error) {
	// A link would lead to other content, and opening a pipe may take forever.
	info, err := fs.Lstat(kubelet, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file (%s)", info.Mode().Type())
	}
	file, err := kubelet.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // opened for reading
	text, err := io.ReadAll(io.LimitReader(file, stateBytes+1))
	if err == nil && len(text) > stateBytes {
		err = fmt.Errorf("more than %d bytes", stateBytes)
	}
	return text, err
}

// parse returns the policy in a checkpoint. Since Kubernetes 1.37, the actual checkpoint is
// a string of JSON in the field data. The other fields are there only for older kubelets
// (pkg/kubelet/cm/cpumanager/state/checkpoint.go, CPUManagerCheckpointV4). An error has
// nothing of the text.
func parse(text []byte) (string, error) {
	var checkpoint struct {
		PolicyName string `json:"policyName"`
		Data       string `json:"data"`
	}
	if json.Unmarshal(text, &checkpoint) != nil {
		return "", errors.New("not a checkpoint of the kubelet")
	}
	if checkpoint.Data != "" && json.Unmarshal([]byte(checkpoint.Data), &checkpoint) != nil {
		return "", errors.New("its field data is not a checkpoint of the kubelet")
	}
	notLetter := func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }
	switch name := checkpoint.PolicyName; {
	case name == "":
		return "", errors.New("no policyName")
	case len(name) > nameBytes || strings.ContainsFunc(name, notLetter):
		return "", fmt.Errorf("policyName is not a word of at most %d letters", nameBytes)
	}
	return checkpoint.PolicyName, nil
}

// Encode returns the content of the file.
func (p Policies) Encode() []byte {
	text, _ := json.Marshal(p) // strings only: no error
	return append(text, '\n')
}

// LoadPolicies returns what the keeper of this boot wrote to the driver's directory. The error is
// ErrUnknown if there is no such file, or one of another boot, or one that cannot be read.
func LoadPolicies(dir fs.FS, boot string) (p Policies, err error) {
	text, err := fs.ReadFile(dir, PoliciesName)
	if errors.Is(err, fs.ErrNotExist) {
		return Policies{}, ErrUnknown
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return Policies{}, fmt.Errorf("%w: read %s: %w", ErrUnknown, PoliciesName, err)
	}
	if p.Boot != boot {
		return Policies{}, ErrUnknown
	}
	return p, nil
}
