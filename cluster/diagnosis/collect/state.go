package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// StateSetting is the name of a node's state in Unread.
const StateSetting = "state of the node"

// States asks the driver's pods for the states of their nodes. Nodes that do not answer
// are in unread.
func States(ctx context.Context, exec Exec, facts *diagnosis.Facts, nodes []string) (states map[string]*nodestate.State, unread []diagnosis.Unread) {
	if facts.Installation.Namespace == "" {
		return nil, []diagnosis.Unread{{Component: diagnosis.DaemonName, Setting: StateSetting, Why: "the namespace of the driver is not known"}}
	}
	return askNodes(nodes, diagnosis.DaemonName, StateSetting, func(node string) (*nodestate.State, error) {
		return state(ctx, exec, facts, node)
	})
}

func state(ctx context.Context, exec Exec, facts *diagnosis.Facts, node string) (*nodestate.State, error) {
	pod, container := responder(facts, node)
	if pod == nil {
		return nil, errors.New("no pod of the driver runs on the node")
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	text, err := exec(ctx, pod, container, stateCommand(pod))
	if err != nil {
		return nil, fmt.Errorf("run dra-numa state in pod %s/%s, container %s: %w", pod.Namespace, pod.Name, container, err)
	}
	return nodestate.Decode(text)
}

// responder returns a running container on the node that has the daemon's program. This
// is the daemon's container or, if that does not run, the keeper's.
func responder(facts *diagnosis.Facts, node string) (pod *corev1.Pod, container string) {
	for _, name := range []string{diagnosis.DriverContainer, diagnosis.KeeperContainer} {
		for _, pod := range facts.DaemonPods() {
			if pod.Spec.NodeName == node && slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
				return status.Name == name && status.State.Running != nil
			}) {
				return pod, name
			}
		}
	}
	return nil, ""
}

// stateCommand returns the command for the state of a node, with the same paths as the
// daemon's flags.
func stateCommand(pod *corev1.Pod) []string {
	command := []string{"/dra-numa", "state"}
	for _, container := range pod.Spec.Containers {
		if container.Name != diagnosis.DriverContainer {
			continue
		}
		for _, flag := range []string{"kubelet-root", "cdi-dir", "cgroup-root", "machine-root"} {
			if value, given := diagnosis.Argument(container, flag); given {
				command = append(command, "--"+flag+"="+value)
			}
		}
	}
	return command
}
