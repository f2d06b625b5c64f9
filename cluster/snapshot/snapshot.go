// Package snapshot holds the objects of a cluster that decide where pods go, at one
// moment. It reads them from files; package live reads them from a cluster. It decides
// nothing.
package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Source is where a snapshot comes from: files, a cluster, or both.
type Source interface {
	// Snapshot returns all objects. The caller owns them.
	Snapshot(ctx context.Context) (*Snapshot, error)
}

// Snapshot is what the scheduler would know. The zero value is empty. Every object has
// a name, a UID and, if its kind has namespaces, a namespace. Defaults that an API
// server sets are set if they change placements.
type Snapshot struct {
	// Namespace is that of added objects that name none; "" means default.
	Namespace string
	// KeepTexts has Read keep the texts of pods and workloads. See Text.
	KeepTexts bool

	Nodes      []*corev1.Node
	Classes    []*resourceapi.DeviceClass
	Slices     []*resourceapi.ResourceSlice
	Claims     []*resourceapi.ResourceClaim
	Templates  []*resourceapi.ResourceClaimTemplate
	TaintRules []*resourceapi.DeviceTaintRule
	// RuleVersion is the version of TaintRules that the cluster serves, such as v1beta2,
	// or NotServed. It is "" if that is not known.
	RuleVersion string
	// Budgets say how many pods may be evicted. A snapshot of a cluster has them if they
	// were asked for.
	Budgets []*policyv1.PodDisruptionBudget
	// Pods are in the order in which they were read. Pods without a node are waiting
	// for one.
	Pods []*corev1.Pod
	// Events say why pods do not start, or do not exist. A snapshot of a cluster has those
	// that were asked for.
	Events []*corev1.Event
	// Workloads are in the order in which they were read. A snapshot of a cluster has those
	// that were asked for.
	Workloads []*Workload

	// Unseen is what is missing because the reader may not list it.
	Unseen []Unseen

	// Ignored is the number of objects of every other kind, by kind.
	Ignored map[string]int

	seen  map[identity]string // where each object was read
	texts map[identity][]byte
}

// identity identifies an object.
type identity struct{ kind, namespace, name string }

func identityOf(object metav1.Object) identity {
	return identity{kindOf(object), object.GetNamespace(), object.GetName()}
}

// madeUpUID returns a UID for an object that has none.
func madeUpUID(id identity) types.UID { return types.UID(id.String()) }

func (i identity) String() string {
	if i.namespace == "" {
		return i.kind + " " + i.name
	}
	return i.kind + " " + i.namespace + "/" + i.name
}

// Waiting returns the pods that wait for a node, in the order of Pods. The scheduler
// skips pods that are being deleted.
func (s *Snapshot) Waiting() (pods []*corev1.Pod) {
	for _, pod := range s.Pods {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !Finished(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// Finished reports whether the pod will never run again. Then it takes nothing from its
// node.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Node returns the node, or nil.
func (s *Snapshot) Node(name string) *corev1.Node { return find(s.Nodes, "", name) }

// Pod returns the pod, or nil.
func (s *Snapshot) Pod(namespace, name string) *corev1.Pod {
	return find(s.Pods, namespace, name)
}

// Claim returns the claim, or nil.
func (s *Snapshot) Claim(namespace, name string) *resourceapi.ResourceClaim {
	return find(s.Claims, namespace, name)
}

// Template returns the template, or nil.
func (s *Snapshot) Template(namespace, name string) *resourceapi.ResourceClaimTemplate {
	return find(s.Templates, namespace, name)
}

// Workload returns the workload, or nil.
func (s *Snapshot) Workload(kind, namespace, name string) *Workload {
	for _, workload := range s.Workloads {
		if identityOf(workload) == (identity{kind, namespace, name}) {
			return workload
		}
	}
	return nil
}

// EventsAbout returns the events about an object, the oldest first.
func (s *Snapshot) EventsAbout(object metav1.Object) (events []*corev1.Event) {
	id := identityOf(object)
	for _, event := range s.Events {
		about := event.InvolvedObject
		known := about.UID == "" || about.UID == object.GetUID() || object.GetUID() == madeUpUID(id)
		if known && id == (identity{about.Kind, about.Namespace, about.Name}) {
			events = append(events, event)
		}
	}
	slices.SortStableFunc(events, func(a, b *corev1.Event) int { return LastSeen(a).Compare(LastSeen(b)) })
	return events
}

// LastSeen returns when the event was last seen.
func LastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	}
	return event.EventTime.Time
}

func find[T metav1.Object](objects []T, namespace, name string) (found T) {
	for _, object := range objects {
		if object.GetName() == name && object.GetNamespace() == namespace {
			return object
		}
	}
	return found
}

// IgnoredKinds returns the kinds that were ignored, sorted by name, each with the
// number of its objects.
func (s *Snapshot) IgnoredKinds() (texts []string) {
	for _, kind := range slices.Sorted(maps.Keys(s.Ignored)) {
		texts = append(texts, fmt.Sprintf("%d %s", s.Ignored[kind], kind))
	}
	return texts
}

func (s *Snapshot) ignore(kind string) {
	if s.Ignored == nil {
		s.Ignored = make(map[string]int)
	}
	s.Ignored[kind]++
}

// AnnotationPlaced marks pods and claims that a simulation has placed. Such an object takes the
// place of the one from which it was made, whichever of them is added first.
const AnnotationPlaced = "cli.dra.numa/placed"

// Add adds an object of one of the kinds above, and sets its defaults. DeviceTaintRules
// can have an older version. The snapshot owns the object from now on. A second object with
// the same kind, namespace and name is an error. The error says where the first object is
// from.
func (s *Snapshot) Add(object metav1.Object, where string) error {
	object, err := current(object)
	if err != nil {
		return err
	}
	kind := kindOf(object)
	if object.GetName() == "" && object.GetGenerateName() != "" {
		// An API server appends random letters. Here the names sort in the order in
		// which the objects are read, because the scheduler tries slices in the order
		// of their names.
		object.SetName(fmt.Sprintf("%s%05d", object.GetGenerateName(), len(s.seen)))
	}
	if object.GetName() == "" {
		return fmt.Errorf("%s without metadata.name", kind)
	}
	if namespaced(object) && object.GetNamespace() == "" {
		object.SetNamespace(cmp.Or(s.Namespace, metav1.NamespaceDefault))
	}
	id := identityOf(object)
	if slice, is := object.(*resourceapi.ResourceSlice); is {
		limitSlice(&slice.Spec)
		if err := checkSlice(&slice.Spec); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	if first, twice := s.seen[id]; twice {
		if s.settle(object) {
			return nil
		}
		return fmt.Errorf("%s occurs twice, first in %s", id, first)
	}
	s.see(id, where)
	if object.GetUID() == "" {
		object.SetUID(madeUpUID(id))
	}
	s.keep(object)
	return nil
}

// settle decides between an object and the one with the same name, if one of them is placed. Of
// two that are placed, it keeps the later one.
func (s *Snapshot) settle(object metav1.Object) (settled bool) {
	switch o := object.(type) {
	case *corev1.Pod:
		defaultPod(o)
		return settle(s.Pods, o)
	case *resourceapi.ResourceClaim:
		defaultClaim(&o.Spec)
		limitAllocation(o.Status.Allocation)
		return settle(s.Claims, o)
	}
	return false
}

func settle[T metav1.Object](list []T, object T) bool {
	i := slices.IndexFunc(list, func(other T) bool { return identityOf(other) == identityOf(object) })
	if IsPlaced(object) {
		list[i] = object
		return true
	}
	return IsPlaced(list[i])
}

// IsPlaced reports whether a simulation has placed the object.
func IsPlaced(object metav1.Object) bool {
	return object.GetAnnotations()[AnnotationPlaced] != ""
}

// Where returns where the object is from, as it was passed to Add, or "" if that is
// unknown.
func (s *Snapshot) Where(object metav1.Object) string { return s.seen[identityOf(object)] }

// Text returns the JSON text of a pod or workload as it was read, also with fields that are
// not in its Go type, or nil.
func (s *Snapshot) Text(object metav1.Object) []byte { return s.texts[identityOf(object)] }

func (s *Snapshot) keepText(id identity, text []byte) {
	if s.texts == nil {
		s.texts = make(map[identity][]byte)
	}
	s.texts[id] = text
}

func (s *Snapshot) see(id identity, where string) {
	if s.seen == nil {
		s.seen = make(map[identity]string)
	}
	s.seen[id] = where
}

func (s *Snapshot) keep(object metav1.Object) {
	switch o := object.(type) {
	case *corev1.Node:
		defaultNode(o)
		s.Nodes = append(s.Nodes, o)
	case *corev1.Pod:
		defaultPod(o)
		s.Pods = append(s.Pods, o)
	case *resourceapi.DeviceClass:
		s.Classes = append(s.Classes, o)
	case *resourceapi.ResourceSlice:
		s.Slices = append(s.Slices, o)
	case *resourceapi.ResourceClaim:
		defaultClaim(&o.Spec)
		limitAllocation(o.Status.Allocation)
		s.Claims = append(s.Claims, o)
	case *resourceapi.ResourceClaimTemplate:
		defaultClaim(&o.Spec.Spec)
		s.Templates = append(s.Templates, o)
	case *resourceapi.DeviceTaintRule:
		s.TaintRules = append(s.TaintRules, o)
	case *policyv1.PodDisruptionBudget:
		s.Budgets = append(s.Budgets, o)
	case *corev1.Event:
		s.Events = append(s.Events, o)
	case *Workload:
		for _, template := range o.Templates {
			limitPod(&template.Spec)
		}
		s.Workloads = append(s.Workloads, o)
	}
}
