package collect

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// admission reads what decides whether the driver's namespace may have the driver's pods.
func (c *collector) admission(ctx context.Context) {
	installed := &c.facts.Installation
	if installed.Namespace == "" {
		return
	}
	namespace, err := c.client.CoreV1().Namespaces().Get(ctx, installed.Namespace, metav1.GetOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err): // a check of the installation finds no driver
	case err != nil:
		c.unread("", diagnosis.DaemonName, "Namespace", err)
	default:
		installed.PodSecurity = namespace.Labels[diagnosis.PodSecurityLabel]
	}
	if installed.LacksPods() {
		c.refusals(ctx)
	}
}

// refusals lists the events about pods that the API server refuses, the newest last.
func (c *collector) refusals(ctx context.Context) {
	installed := &c.facts.Installation
	events, err := c.client.CoreV1().Events(installed.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("reason", diagnosis.RefusedPod).String(),
	})
	if err != nil {
		c.unread("", diagnosis.DaemonName, "events of pods that are refused", err)
		return
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return snapshot.LastSeen(&a).Compare(snapshot.LastSeen(&b)) })
	for i := range events.Items {
		installed.AddRefusal(&events.Items[i])
	}
}
