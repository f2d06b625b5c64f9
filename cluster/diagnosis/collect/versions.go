package collect

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Versions reads only what [diagnosis.VersionsOf] needs: the version of the API server,
// what the chart installed, the driver's pods, and the nodes. Only the version must be
// readable. Anything else that cannot be read is in Unread. namespace is as for Facts.
func Versions(ctx context.Context, client kubernetes.Interface, namespace string) (*diagnosis.Facts, error) {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("get version: %w", err)
	}
	c := collector{client: client, facts: &diagnosis.Facts{Objects: &snapshot.Snapshot{}, Version: version.GitVersion, Time: time.Now()}}
	if namespace == "" {
		c.bindings(ctx)
	}
	c.programs(ctx, namespace)
	if namespace = c.facts.Installation.Namespace; namespace != "" {
		if pods, err := client.CoreV1().Pods(namespace).List(ctx, labelled(diagnosis.Daemon)); err != nil {
			c.unread("", diagnosis.DaemonName, "Pods", err)
		} else {
			c.facts.Objects.Pods = pointers(pods.Items, func(o *corev1.Pod) { o.ManagedFields = nil })
		}
	}
	if nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"}); err != nil {
		c.unread("", "kubelet", "Nodes", err)
	} else {
		c.facts.Objects.Nodes = pointers(nodes.Items, func(o *corev1.Node) { o.ManagedFields = nil })
	}
	return c.facts, nil
}
