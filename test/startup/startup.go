// Package startup says how long the parts of a pod's start take on its node: from the
// moment at which the kubelet sees the pod with its node, to the moment at which its first
// container runs. It reads the logs of kubelet and containerd, because the pod's status has
// whole seconds only.
package startup

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Parts are the parts of a start, in their order.
func Parts() []string {
	return []string{"until the kubelet asks for the sandbox", "sandbox", "until the container is created", "until the container runs"}
}

// Sample is what one start took.
type Sample struct {
	Milliseconds []float64          `json:"milliseconds"` // by part
	Counts       map[string]float64 `json:"counts"`       // by what is counted, while the pod starts
}

// Pair is two starts, one after the other, of the same pod without and with a claim.
type Pair struct {
	Without Sample `json:"without"`
	With    Sample `json:"with"`
}

// Run is all starts on one node.
type Run struct {
	Kubernetes string `json:"kubernetes"` // version of the kubelet
	Kernel     string `json:"kernel"`     // release of the node's kernel
	Runtime    string `json:"runtime"`    // container runtime and its version
	Claim      string `json:"claim"`      // what the claim asks for
	Load       string `json:"load"`       // load averages of the machine before
	LoadAfter  string `json:"loadAfter"`
	Nodes      []Node `json:"nodes"` // the same node with other pods
}

// Node is what was measured beside other pods, which have no claims.
type Node struct {
	Pods  int    `json:"pods"`
	Pairs []Pair `json:"pairs"`
	// IdleShare is the CPU time of the driver, as a share of that of the kubelet, while nothing
	// changes.
	IdleShare float64 `json:"idleShare"`
}

// Total returns the time of the whole start in milliseconds.
func (s Sample) Total() (sum float64) {
	for _, part := range s.Milliseconds {
		sum += part
	}
	return sum
}

// kubeletTime begins the lines of klog. The year is not in them.
const kubeletTime = "0102 15:04:05.000000"

var (
	seen         = regexp.MustCompile(`^I(\d{4} \d\d:\d\d:\d\d\.\d{6}) .* "SyncLoop ADD" source="api" pods=\[(.*)\]`)
	runtimeTime  = regexp.MustCompile(`^time="([^"]*)"`)
	sandboxID    = regexp.MustCompile(`returns sandbox id \\"([0-9a-f]+)\\"`)
	containerID  = regexp.MustCompile(`returns container id \\"([0-9a-f]+)\\"`)
	podOfSandbox = `RunPodSandbox for name:\"%s\" uid:`
)

// Read returns what the parts of a pod's start took in milliseconds. The pod has one
// container. The kubelet's clock is in UTC. The error says what a log lacks.
func Read(kubelet, containerd, namespace, name string) ([]float64, error) {
	var times [5]time.Time
	for line := range strings.Lines(kubelet) {
		if found := seen.FindStringSubmatch(line); found != nil && strings.Contains(found[2], `"`+namespace+"/"+name+`"`) {
			at, err := time.Parse(kubeletTime, found[1])
			if err != nil {
				return nil, err
			}
			times[0] = at
		}
	}
	if times[0].IsZero() {
		return nil, fmt.Errorf("the kubelet's log does not say when it saw pod %s/%s", namespace, name)
	}
	pod := fmt.Sprintf(podOfSandbox, name)
	var sandbox, container string
	for line := range strings.Lines(containerd) {
		text := runtimeTime.FindStringSubmatch(line)
		if text == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, text[1])
		if err != nil {
			return nil, err
		}
		returns := strings.Contains(line, " returns ")
		switch {
		case strings.Contains(line, pod) && !returns:
			times[1] = at
		case strings.Contains(line, pod):
			if id := sandboxID.FindStringSubmatch(line); id != nil {
				times[2], sandbox = at, id[1]
			}
		case sandbox != "" && strings.Contains(line, `CreateContainer within sandbox \"`+sandbox) && returns:
			if id := containerID.FindStringSubmatch(line); id != nil {
				times[3], container = at, id[1]
			}
		case container != "" && strings.Contains(line, `StartContainer for \"`+container) && returns:
			times[4] = at
		}
	}
	times[0] = times[0].AddDate(times[1].Year(), 0, 0) // klog has no year
	var parts []float64
	for i := 1; i < len(times); i++ {
		if times[i].IsZero() || times[i].Before(times[i-1]) {
			return nil, fmt.Errorf("the logs do not have each step of pod %s/%s: %v", namespace, name, times)
		}
		parts = append(parts, float64(times[i].Sub(times[i-1]))/float64(time.Millisecond))
	}
	return parts, nil
}
