package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/dra-driver-numa/dra-driver-numa/demo"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// run leaves the demo's pods in place and removes what it observes them with.
func run(ctx context.Context, o options, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.kubectlNuma != "" {
		if err := checkProgram(o.kubectlNuma); err != nil {
			return err
		}
	}
	cluster, err := client.New(o.kubeconfig)
	if err != nil {
		return err
	}
	if err := ensureNamespace(ctx, cluster, o.namespace); err != nil {
		return err
	}
	if err := cluster.Apply(ctx, demo.Manifests, o.namespace); err != nil {
		return err
	}
	pods, err := waitRunning(ctx, cluster, o.namespace)
	if err != nil {
		return err
	}
	nodes, err := observe(ctx, cluster, o, pods)
	if err != nil {
		return err
	}
	if err := printTable(stdout, nodes); err != nil || o.kubectlNuma == "" {
		return err
	}
	if err := showStatus(ctx, stdout, o.kubectlNuma, o.kubeconfig); err != nil {
		return err
	}
	return printNext(stdout, o.kubectlNuma, o.namespace)
}

// ensureNamespace makes the namespace if it is missing, and lets it have the
// privileged pod that observes.
func ensureNamespace(ctx context.Context, cluster *client.Cluster, name string) error {
	_, err := cluster.Kubernetes.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
	}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// waitRunning waits until every pod of the namespace runs, and names one that
// does not with its reason.
func waitRunning(ctx context.Context, cluster *client.Cluster, namespace string) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	waiting := "no pod is there"
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := cluster.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		pods = list.Items
		for i := range pods {
			if !running(&pods[i]) {
				waiting = fmt.Sprintf("pod %s is %s: %s", pods[i].Name, pods[i].Status.Phase, reason(&pods[i]))
				return false, nil
			}
		}
		return len(pods) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for pods of namespace %s: %w: %s", namespace, err, waiting)
	}
	return pods, nil
}

func running(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}

// reason returns why a pod does not run, as far as its status says.
func reason(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil && status.State.Waiting.Message != "" {
			return status.State.Waiting.Message
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && condition.Message != "" {
			return condition.Message
		}
	}
	return "no reason given"
}

// observedNode is what the kernel of a node says of the demo's pods there.
type observedNode struct {
	name     string
	snapshot kernel.Snapshot
	// shared is a process without a claim: the observer.
	shared kernel.Process
	pods   []corev1.Pod
}

// observe asks the kernel of every node that a pod runs on, in the order of the pods.
func observe(ctx context.Context, cluster *client.Cluster, o options, pods []corev1.Pod) ([]observedNode, error) {
	var nodes []observedNode
	index := map[string]int{}
	for _, pod := range pods {
		at, ok := index[pod.Spec.NodeName]
		if !ok {
			at = len(nodes)
			index[pod.Spec.NodeName] = at
			nodes = append(nodes, observedNode{name: pod.Spec.NodeName})
		}
		nodes[at].pods = append(nodes[at].pods, pod)
	}
	for i := range nodes {
		if err := nodes[i].observe(ctx, cluster, o); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func (n *observedNode) observe(ctx context.Context, cluster *client.Cluster, o options) (err error) {
	observer, err := kernel.Start(ctx, cluster.Kubernetes, cluster.Config, o.namespace, n.name, o.image)
	if observer != nil {
		// Also when ctx is over.
		defer func() { err = errors.Join(err, observer.Remove(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		return err
	}
	if n.snapshot, err = observer.Snapshot(ctx); err != nil {
		return err
	}
	n.shared, err = observer.Self(n.snapshot)
	return err
}
