// Package live reads a snapshot from the API server of a cluster, with lists and
// watches. It decides nothing, and writes nothing.
package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Source is a snapshot.Source that reads a cluster. Its user needs the verb list on
// every kind of a snapshot, in all namespaces; Visible needs less.
type Source struct {
	Client kubernetes.Interface
}

// listing is a kind and the function that lists it.
type listing struct {
	kind string // plural, for errors
	page pager.ListPageFunc
	// within lists the objects of a namespace. It is nil if the kind has no namespaces.
	within pager.ListPageFunc
}

// Snapshot lists the objects of the cluster. The API server answers from memory, and
// does not have to read a large cluster from its store. The lists are from slightly
// different moments, some milliseconds ago. Pods are in the order in which the
// scheduler takes them: by priority, then by age.
func (s Source) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	return s.snapshot(ctx, "")
}

// Visible is Snapshot for a user who may not list everything. Of a kind that the user may
// not list in all namespaces, it lists the objects of this namespace, which the user must
// be allowed to. The snapshot says what it lacks.
func (s Source) Visible(ctx context.Context, namespace string) (*snapshot.Snapshot, error) {
	return s.snapshot(ctx, namespace)
}

// snapshot lists the objects. If the namespace is "", everything must be visible.
func (s Source) snapshot(ctx context.Context, namespace string) (*snapshot.Snapshot, error) {
	objects := &snapshot.Snapshot{}
	for _, l := range s.listings(namespace, &objects.RuleVersion) {
		err := s.list(ctx, l.page, objects)
		if apierrors.IsForbidden(err) && namespace != "" {
			unseen := snapshot.Unseen{Kind: l.kind}
			if err = nil; l.within != nil {
				unseen.Except = namespace
				err = s.list(ctx, l.within, objects)
			}
			objects.Unseen = append(objects.Unseen, unseen)
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", l.kind, err)
		}
	}
	slices.SortStableFunc(objects.Pods, inTurn)
	return objects, nil
}

// listings returns what a snapshot needs. Listing DeviceTaintRules sets their version.
func (s Source) listings(namespace string, ruleVersion *string) []listing {
	core, resources := s.Client.CoreV1(), s.Client.ResourceV1()
	return []listing{
		{"Nodes", page(core.Nodes().List), nil},
		{"DeviceClasses", page(resources.DeviceClasses().List), nil},
		{"ResourceSlices", page(resources.ResourceSlices().List), nil},
		{"ResourceClaims", page(resources.ResourceClaims(metav1.NamespaceAll).List), page(resources.ResourceClaims(namespace).List)},
		{"ResourceClaimTemplates", page(resources.ResourceClaimTemplates(metav1.NamespaceAll).List), page(resources.ResourceClaimTemplates(namespace).List)},
		{"DeviceTaintRules", s.taintRules(ruleVersion), nil},
		{"Pods", page(core.Pods(metav1.NamespaceAll).List), page(core.Pods(namespace).List)},
	}
}

// page converts the list function of a typed client to the form that the pager calls.
func page[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) pager.ListPageFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}
}

func (s Source) list(ctx context.Context, page pager.ListPageFunc, objects *snapshot.Snapshot) error {
	// Version 0 means any version that the server has in memory. If the server has to
	// read its store anyway, it answers in pages.
	list, _, err := pager.New(page).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		object.SetManagedFields(nil) // they are a third of the size of a pod, and nothing reads them
		return objects.Add(object, "the cluster")
	})
}

// inTurn compares pods as the scheduler's queue does (plugin PrioritySort). The age of
// a pod is its creation time, in seconds.
func inTurn(a, b *corev1.Pod) int {
	return cmp.Or(
		cmp.Compare(priority(b), priority(a)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
