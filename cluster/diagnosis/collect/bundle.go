package collect

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/bundle"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

const (
	logLines = 2000    // of each container
	logBytes = 1 << 20 // of each container, at most
)

// Bundle reads the facts of a cluster and what explains them: the states of the nodes,
// the driver's configuration, events, and the logs of the driver's containers.
func Bundle(ctx context.Context, client kubernetes.Interface, exec Exec, now time.Time) (bundle.Bundle, error) {
	facts, err := Facts(ctx, client)
	if err != nil {
		return bundle.Bundle{}, err
	}
	c := collector{client: client, facts: facts}
	c.configs(ctx)
	states, lacking := States(ctx, exec, facts, facts.Nodes())
	facts.States, facts.Missing = states, append(facts.Missing, lacking...)
	result := bundle.Bundle{Gathered: now.UTC().Truncate(time.Second), Facts: facts, Events: c.events(ctx)}
	for _, pod := range c.driverPods() {
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			result.Logs = append(result.Logs, c.logs(ctx, pod, status)...)
		}
	}
	return result, nil
}

func (c *collector) missing(node, component, setting string, err error) {
	c.facts.Missing = append(c.facts.Missing, unread(node, component, setting, err))
}

// configs reads the ConfigMaps of the chart, in the namespaces of its DaemonSets.
func (c *collector) configs(ctx context.Context) {
	installed := &c.facts.Installation
	for _, set := range installed.DaemonSets {
		ours := metav1.ListOptions{LabelSelector: diagnosis.NameLabel + "=" + diagnosis.DaemonName, ResourceVersion: "0"}
		list, err := c.client.CoreV1().ConfigMaps(set.Namespace).List(ctx, ours)
		if err != nil {
			c.missing("", diagnosis.DaemonName, "ConfigMaps", err)
			return
		}
		installed.ConfigMaps = append(installed.ConfigMaps, pointers(list.Items, func(o *corev1.ConfigMap) { o.ManagedFields = nil })...)
	}
}

// events returns the events about nodes, and the events that this driver reported.
func (c *collector) events(ctx context.Context) (events []*corev1.Event) {
	list, err := c.client.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		c.missing("", "kube-apiserver", "events", err)
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

func (c *collector) driverPods() (pods []*corev1.Pod) {
	for _, pod := range c.facts.Objects.Pods {
		if name := pod.Labels[diagnosis.NameLabel]; name == diagnosis.DaemonName || name == diagnosis.WebhookName {
			pods = append(pods, pod)
		}
	}
	return pods
}

// logs returns the log of the container. If the container was restarted, it also
// returns the log from before the restart.
func (c *collector) logs(ctx context.Context, pod *corev1.Pod, status corev1.ContainerStatus) (logs []bundle.Log) {
	for _, previous := range []bool{false, true} {
		if previous && status.RestartCount == 0 {
			continue
		}
		options := &corev1.PodLogOptions{Container: status.Name, Previous: previous, TailLines: ptr.To[int64](logLines), LimitBytes: ptr.To[int64](logBytes)}
		asking, cancel := context.WithTimeout(ctx, requestTimeout)
		text, err := c.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(asking)
		cancel()
		if err != nil {
			c.missing(pod.Spec.NodeName, "Pod "+pod.Name, "log of "+status.Name, err)
			continue
		}
		logs = append(logs, bundle.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: status.Name, Previous: previous, Text: text})
	}
	return logs
}
