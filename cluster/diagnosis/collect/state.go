package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// StateSetting is the name of a node's state in Unread.
const StateSetting = "state of the node"

// States asks the driver's pods for the states of their nodes. Nodes that do not answer
// are in unread.
func States(ctx context.Context, exec Exec, facts *diagnosis.Facts, nodes []string) (states map[string]*nodestate.State, unread []diagnosis.Unread) {
	return askPods(ctx, exec, facts, nodes, StateSetting, func(ctx context.Context, p program) (*nodestate.State, error) {
		return decoded(p.run(ctx, "state", stateFlags()...))
	})
}

// HostStates is States with nodestate.State.Host.
func HostStates(ctx context.Context, exec Exec, facts *diagnosis.Facts, nodes []string) (states map[string]*nodestate.State, unread []diagnosis.Unread) {
	return statesWith(ctx, exec, facts, nodes, "host", "nri-socket")
}

// CacheStates is States with nodestate.State.Resctrl.
func CacheStates(ctx context.Context, exec Exec, facts *diagnosis.Facts, nodes []string) (states map[string]*nodestate.State, unread []diagnosis.Unread) {
	return statesWith(ctx, exec, facts, nodes, "caches", "resctrl")
}

// statesWith asks for one more part, which needs one more flag of the daemon.
func statesWith(ctx context.Context, exec Exec, facts *diagnosis.Facts, nodes []string, part, flag string) (states map[string]*nodestate.State, unread []diagnosis.Unread) {
	return askPods(ctx, exec, facts, nodes, StateSetting, func(ctx context.Context, p program) (*nodestate.State, error) {
		return decoded(p.run(ctx, "state --"+part, append(stateFlags(), flag)...))
	})
}

func decoded(text []byte, err error) (*nodestate.State, error) {
	if err != nil {
		return nil, err
	}
	return nodestate.Decode(text)
}

// stateFlags are the flags of the daemon that say where the state of a node is.
func stateFlags() []string { return []string{"kubelet-root", "cdi-dir", "cgroup-root", "machine-root"} }

// program is the daemon's program in a container on a node.
type program struct {
	exec      Exec
	pod       *corev1.Pod
	container string
}

// askPods asks the driver's pod of each node. Nodes that do not answer are in unread.
func askPods[T any](ctx context.Context, exec Exec, facts *diagnosis.Facts, nodes []string, setting string, ask func(context.Context, program) (T, error)) (answers map[string]T, unread []diagnosis.Unread) {
	if facts.Installation.Namespace == "" {
		return nil, []diagnosis.Unread{{Component: diagnosis.DaemonName, Setting: setting, Why: "the namespace of the driver is not known"}}
	}
	pods := make(map[string][]*corev1.Pod)
	for _, pod := range facts.DaemonPods() {
		pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], pod)
	}
	return askNodes(ctx, facts, nodes, diagnosis.DaemonName, setting, func(ctx context.Context, node string) (answer T, err error) {
		pod, container := responder(pods[node])
		if pod == nil {
			return answer, errors.New("no pod of the driver runs on the node")
		}
		return ask(ctx, program{exec, pod, container})
	})
}

// run runs a subcommand, such as "state --host", with those of the flags that the daemon
// has.
func (p program) run(ctx context.Context, subcommand string, flags ...string) ([]byte, error) {
	words := strings.Fields(subcommand)
	command := append([]string{"/dra-numa"}, words...)
	for _, container := range p.pod.Spec.Containers {
		if container.Name != diagnosis.DriverContainer {
			continue
		}
		for _, flag := range flags {
			if value, given := diagnosis.Argument(container, flag); given {
				command = append(command, "--"+flag+"="+value)
			}
		}
	}
	text, err := p.exec(ctx, p.pod, p.container, command)
	if err != nil {
		return nil, fmt.Errorf("run dra-numa %s in pod %s/%s, container %s: %w", words[0], p.pod.Namespace, p.pod.Name, p.container, err)
	}
	return text, nil
}

// responder returns a running container that has the daemon's program, of the daemon's pods
// of a node. This is the daemon's container or, if that does not run, the keeper's.
func responder(pods []*corev1.Pod) (pod *corev1.Pod, container string) {
	for _, name := range []string{diagnosis.DriverContainer, diagnosis.KeeperContainer} {
		for _, pod := range pods {
			if slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
				return status.Name == name && status.State.Running != nil
			}) {
				return pod, name
			}
		}
	}
	return nil, ""
}
