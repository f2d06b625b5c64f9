package collect

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/bundle"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// Bundle reads the facts of a cluster and what explains them: the states and the files of
// the nodes, the driver's configuration, events, and the logs of the driver's containers.
// namespace is as for Facts.
func Bundle(ctx context.Context, client kubernetes.Interface, exec Exec, namespace string, now time.Time) (bundle.Bundle, error) {
	facts, err := Facts(ctx, client, namespace)
	if err != nil {
		return bundle.Bundle{}, err
	}
	c := collector{client: client, facts: facts}
	c.configs(ctx)
	c.replicaSets(ctx)
	c.budgets(ctx)
	result := bundle.Bundle{Gathered: now.UTC().Truncate(time.Second), Facts: facts, Events: c.events(ctx)}
	c.nodes(ctx, exec, &result)
	result.Logs = c.logs(ctx)
	return result, nil
}

// nodes asks the nodes for everything that only they know. If the user may not run
// programs in the driver's pods, it asks once.
func (c *collector) nodes(ctx context.Context, exec Exec, result *bundle.Bundle) {
	var unread []diagnosis.Unread
	nodes := c.facts.Nodes()
	c.facts.States, unread = HostStates(ctx, exec, c.facts, nodes)
	c.facts.Missing = append(c.facts.Missing, unread...)
	if len(unread) > 0 && unread[0].Node == "" {
		return
	}
	result.Machines, unread = Machines(ctx, exec, c.facts, nodes)
	c.facts.Missing = append(c.facts.Missing, unread...)
	result.Configs, unread = Configs(ctx, exec, c.facts, nodes)
	c.facts.Missing = append(c.facts.Missing, unread...)
}

func (c *collector) missing(node, component, setting string, err error) {
	c.facts.Missing = append(c.facts.Missing, unread(node, component, setting, err))
}

// configs reads the ConfigMaps of the chart in the driver's namespace.
func (c *collector) configs(ctx context.Context) {
	installed := &c.facts.Installation
	if installed.Namespace == "" {
		return
	}
	list, err := c.client.CoreV1().ConfigMaps(installed.Namespace).List(ctx, labelled(diagnosis.Daemon))
	if err != nil {
		c.missing("", diagnosis.DaemonName, "ConfigMaps", err)
		return
	}
	installed.ConfigMaps = pointers(list.Items, func(o *corev1.ConfigMap) { o.ManagedFields = nil })
}

// replicaSets reads which ReplicaSets make the webhook's pods.
func (c *collector) replicaSets(ctx context.Context) {
	installed := &c.facts.Installation
	if len(installed.Deployments) == 0 {
		return
	}
	list, err := c.client.AppsV1().ReplicaSets(installed.Namespace).List(ctx, selected(diagnosis.WebhookSelector()))
	if err != nil {
		c.missing("", diagnosis.WebhookName, "ReplicaSets", err)
		return
	}
	for i := range list.Items {
		set := &list.Items[i]
		if slices.ContainsFunc(installed.Deployments, func(d *appsv1.Deployment) bool { return d.UID != "" && metav1.IsControlledBy(set, d) }) {
			installed.ReplicaSets = append(installed.ReplicaSets, set)
		}
	}
}

func (c *collector) budgets(ctx context.Context) {
	if err := (live.Source{Client: c.client}).AddBudgets(ctx, c.facts.Objects); err != nil {
		c.missing("", "kube-apiserver", bundle.BudgetsSetting, err)
	}
}

// events returns the events about nodes, and the events that this driver reported.
func (c *collector) events(ctx context.Context) (events []*corev1.Event) {
	list, err := c.client.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		c.missing("", "kube-apiserver", bundle.EventsSetting, err)
		return nil
	}
	for i := range list.Items {
		event := &list.Items[i]
		if event.InvolvedObject.Kind == "Node" || event.ReportingController == driver.Name || event.Source.Component == driver.Name {
			events = append(events, event)
		}
	}
	return events
}
