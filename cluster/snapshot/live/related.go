package live

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// AddWarnings adds the events of type Warning about objects of a kind in a namespace. If
// the name is not "", it adds only those about one object.
func (s Source) AddWarnings(ctx context.Context, objects *snapshot.Snapshot, kind, namespace, name string) error {
	return s.addEvents(ctx, objects, fields.Set{"type": corev1.EventTypeWarning}, kind, namespace, name)
}

// AddEvents is AddWarnings for events of any type. Events about Nodes are in the namespace
// default.
func (s Source) AddEvents(ctx context.Context, objects *snapshot.Snapshot, kind, namespace, name string) error {
	return s.addEvents(ctx, objects, fields.Set{}, kind, namespace, name)
}

// AddPodEvents adds the events that say why pods of a namespace do not start, and which of
// them are over: all about one pod or, if the name is "", the warnings and the events that
// an image is pulled.
func (s Source) AddPodEvents(ctx context.Context, objects *snapshot.Snapshot, namespace, name string) error {
	if name != "" {
		return s.AddEvents(ctx, objects, "Pod", namespace, name)
	}
	if err := s.AddWarnings(ctx, objects, "Pod", namespace, ""); err != nil {
		return err
	}
	return s.addEvents(ctx, objects, fields.Set{"reason": "Pulling"}, "Pod", namespace, "")
}

func (s Source) addEvents(ctx context.Context, objects *snapshot.Snapshot, selected fields.Set, kind, namespace, name string) error {
	selected["involvedObject.kind"] = kind
	if name != "" {
		selected["involvedObject.name"] = name
	}
	list, err := s.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.SelectorFromSet(selected).String()})
	if err != nil {
		if namespace == metav1.NamespaceAll {
			return fmt.Errorf("list Events: %w", err)
		}
		return fmt.Errorf("list Events of namespace %s: %w", namespace, err)
	}
	return addItems(objects, list)
}

// AddWorkload adds a workload and, for a Deployment, its ReplicaSets.
func (s Source) AddWorkload(ctx context.Context, objects *snapshot.Snapshot, kind, namespace, name string) error {
	apps, batch := s.Client.AppsV1(), s.Client.BatchV1()
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
	var list runtime.Object
	var err error
	switch kind {
	case "Deployment":
		list, err = apps.Deployments(namespace).List(ctx, only)
	case "ReplicaSet":
		list, err = apps.ReplicaSets(namespace).List(ctx, only)
	case "StatefulSet":
		list, err = apps.StatefulSets(namespace).List(ctx, only)
	case "DaemonSet":
		list, err = apps.DaemonSets(namespace).List(ctx, only)
	case "Job":
		list, err = batch.Jobs(namespace).List(ctx, only)
	}
	if err != nil {
		return fmt.Errorf("list %ss of namespace %s: %w", kind, namespace, err)
	}
	if err := addItems(objects, list); err != nil || kind != "Deployment" {
		return err
	}
	sets, err := apps.ReplicaSets(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list ReplicaSets of namespace %s: %w", namespace, err)
	}
	return addItems(objects, sets)
}

// AddBudgets adds the PodDisruptionBudgets of all namespaces.
func (s Source) AddBudgets(ctx context.Context, objects *snapshot.Snapshot) error {
	list, err := s.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	return addItems(objects, list)
}

// addItems adds the objects of a list that the snapshot does not have.
func addItems(objects *snapshot.Snapshot, list runtime.Object) error {
	added := &snapshot.Snapshot{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		object.SetManagedFields(nil)
		return added.Add(object, "the cluster")
	})
	if err != nil {
		return err
	}
	objects.Underlay(added)
	return nil
}
