// Package collect reads the facts of a cluster from its API server and, through it, from
// its nodes. It decides nothing, and writes nothing.
package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
)

// requestTimeout is the limit for one request. The API server may forward the request to a
// node that is down.
const requestTimeout = 10 * time.Second

// Facts reads all facts. Only the objects that decide where pods go must be readable.
// Anything else that cannot be read is in Unread. namespace is that of the driver; if it
// is empty, the chart's ClusterRoleBinding has it.
func Facts(ctx context.Context, client kubernetes.Interface, namespace string) (*diagnosis.Facts, error) {
	objects, err := live.Source{Client: client}.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("get version: %w", err)
	}
	c := collector{client: client, facts: &diagnosis.Facts{Objects: objects, Version: version.GitVersion, Time: time.Now()}}
	c.gates(ctx)
	c.installation(ctx, namespace)
	c.admission(ctx)
	c.policies(ctx)
	c.kubelets(ctx)
	return c.facts, nil
}

type collector struct {
	client kubernetes.Interface
	facts  *diagnosis.Facts
}

func (c *collector) unread(node, component, setting string, err error) {
	c.facts.Unread = append(c.facts.Unread, unread(node, component, setting, err))
}

func unread(node, component, setting string, err error) diagnosis.Unread {
	denied := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	return diagnosis.Unread{Node: node, Component: component, Setting: setting, Why: err.Error(), Denied: denied, Silent: errors.Is(err, errSilent)}
}

func (c *collector) gates(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	gates, err := live.Gates(ctx, c.client.Discovery().RESTClient())
	if err != nil {
		c.unread("", "kube-apiserver", "feature gates", err)
		return
	}
	c.facts.Gates = gates
}

// Driver reads which of the objects are the driver's pods: all that States needs. namespace
// is as for Facts.
func Driver(ctx context.Context, client kubernetes.Interface, objects *snapshot.Snapshot, namespace string) (*diagnosis.Facts, error) {
	c := collector{client: client, facts: &diagnosis.Facts{Objects: objects}}
	if namespace == "" {
		c.bindings(ctx)
	}
	if len(c.facts.Unread) == 0 {
		if err := c.facts.Installation.Locate(namespace); err != nil {
			return nil, err
		}
		c.daemonSets(ctx)
	}
	if len(c.facts.Unread) > 0 {
		unread := c.facts.Unread[0]
		return nil, fmt.Errorf("list %s of the driver: %s", unread.Setting, unread.Why)
	}
	return c.facts, nil
}

// installation lists the objects with the chart's labels: those of the cluster, and those
// of the driver's namespace. Objects of other namespaces are not the driver's.
func (c *collector) installation(ctx context.Context, namespace string) {
	found := &c.facts.Installation
	if roles, err := c.client.RbacV1().ClusterRoles().List(ctx, labelled(diagnosis.Daemon)); err != nil {
		c.unread("", diagnosis.DaemonName, "ClusterRoles", err)
	} else {
		found.ClusterRoles = pointers(roles.Items, func(o *rbacv1.ClusterRole) { o.ManagedFields = nil })
	}
	c.bindings(ctx)
	c.programs(ctx, namespace)
}

// programs lists the DaemonSets and the webhook of the driver's namespace.
func (c *collector) programs(ctx context.Context, namespace string) {
	found := &c.facts.Installation
	if found.Locate(namespace) != nil {
		return // a check of the installation reports it
	}
	c.daemonSets(ctx)
	if deployments, err := c.client.AppsV1().Deployments(found.Namespace).List(ctx, selected(diagnosis.WebhookSelector())); err != nil {
		c.unread("", diagnosis.WebhookName, "Deployments", err)
	} else {
		found.Deployments = pointers(deployments.Items, func(o *appsv1.Deployment) { o.ManagedFields = nil })
	}
}

func (c *collector) bindings(ctx context.Context) {
	bindings, err := c.client.RbacV1().ClusterRoleBindings().List(ctx, labelled(diagnosis.Daemon))
	if err != nil {
		c.unread("", diagnosis.DaemonName, "ClusterRoleBindings", err)
		return
	}
	c.facts.Installation.Bindings = pointers(bindings.Items, func(o *rbacv1.ClusterRoleBinding) { o.ManagedFields = nil })
}

func (c *collector) daemonSets(ctx context.Context) {
	sets, err := c.client.AppsV1().DaemonSets(c.facts.Installation.Namespace).List(ctx, labelled(diagnosis.Daemon))
	if err != nil {
		c.unread("", diagnosis.DaemonName, "DaemonSets", err)
		return
	}
	c.facts.Installation.DaemonSets = pointers(sets.Items, func(o *appsv1.DaemonSet) { o.ManagedFields = nil })
}

// labelled returns options for objects with the chart's labels for a program.
func labelled(program diagnosis.Program) metav1.ListOptions { return selected(program.Selector()) }

func selected(labels string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels, ResourceVersion: "0"}
}

// pointers returns pointers to the items of a list. lighten makes each item smaller.
func pointers[T any](items []T, lighten func(*T)) (list []*T) {
	for i := range items {
		lighten(&items[i])
		list = append(list, &items[i])
	}
	return list
}

// kubelets asks the kubelet of every node with the driver for its settings.
func (c *collector) kubelets(ctx context.Context) {
	answers, lacking := askNodes(ctx, c.facts, c.facts.Nodes(), "kubelet", "configz", c.kubelet)
	c.facts.Kubelets = answers
	c.facts.Unread = append(c.facts.Unread, lacking...)
}

// raw returns an answer that is no object. DoRaw of the request would say only "unknown"
// if the API server refuses it.
func raw(ctx context.Context, request *rest.Request) ([]byte, error) {
	answer := request.Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, err
	}
	return answer.Raw()
}

// configz asks the kubelet of a node for its settings.
func (c *collector) configz(ctx context.Context, node string) ([]byte, error) {
	return raw(ctx, c.client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("configz"))
}

func (c *collector) kubelet(ctx context.Context, node string) (kubelet diagnosis.Kubelet, err error) {
	text, err := c.configz(ctx, node)
	if err != nil {
		return kubelet, err
	}
	var answer struct {
		KubeletConfig *diagnosis.Kubelet `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return kubelet, fmt.Errorf("parse configz: %w", err)
	}
	if answer.KubeletConfig == nil {
		return kubelet, errors.New("parse configz: no kubeletconfig")
	}
	return *answer.KubeletConfig, nil
}
