package scheduler

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// settleTimeout is for the scheduler to judge a pod of every scenario.
const settleTimeout = 15 * time.Minute

const namespace = "default"

// parallel runs the calls, several at a time.
func parallel(t *testing.T, calls []func(context.Context) error) {
	t.Helper()
	const workers = 8
	queue := make(chan func(context.Context) error)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for call := range queue {
				if err := call(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, call := range calls {
		queue <- call
	}
	close(queue)
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// creator is what every typed client has.
type creator[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
}

func creations[T any](client creator[T], objects []T) (calls []func(context.Context) error) {
	for _, object := range objects {
		calls = append(calls, func(ctx context.Context) error {
			_, err := client.Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	return calls
}

// create makes everything but the pods, the nodes first, and waits until those who
// have to know of it are likely to.
func create(t *testing.T, client kubernetes.Interface, trials []*trial) {
	t.Helper()
	var nodes, calls []func(context.Context) error
	resources := client.ResourceV1()
	for _, tr := range trials {
		nodes = append(nodes, creations(client.CoreV1().Nodes(), tr.Nodes)...)
		calls = append(calls, creations(resources.DeviceClasses(), tr.Classes)...)
		calls = append(calls, creations(resources.ResourceSlices(), tr.Slices)...)
		calls = append(calls, creations(resources.ResourceClaimTemplates(namespace), tr.Templates)...)
		calls = append(calls, creations(resources.ResourceClaims(namespace), tr.Claims)...)
		calls = append(calls, creations(resources.DeviceTaintRules(), tr.TaintRules)...)
		calls = append(calls, func(ctx context.Context) error { return tr.CreateOthers(ctx, client) })
	}
	start := time.Now()
	for _, calls := range [][]func(context.Context) error{nodes, calls} {
		parallel(t, calls)
		time.Sleep(3 * time.Second)
	}
	t.Logf("%d objects in %s", len(nodes)+len(calls), time.Since(start).Round(time.Second))
}

// createPods makes one pod of every scenario that has so many, and returns their names.
func createPods(t *testing.T, client kubernetes.Interface, trials []*trial, step int) (names []string) {
	t.Helper()
	var calls []func(context.Context) error
	for _, tr := range trials {
		if step < len(tr.Pods) {
			calls = append(calls, creations(client.CoreV1().Pods(namespace), tr.Pods[step:step+1])...)
			names = append(names, tr.Pods[step].Name)
		}
	}
	parallel(t, calls)
	return names
}

// waitForScheduler returns the pods once the scheduler has judged each.
func waitForScheduler(t *testing.T, client kubernetes.Interface, names []string) map[string]*corev1.Pod {
	t.Helper()
	start := time.Now()
	for {
		list, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods := byName(list.Items)
		var open []string
		for _, name := range names {
			if !judged(pods[name]) {
				open = append(open, name)
			}
		}
		if len(open) == 0 {
			t.Logf("%d pods in %s", len(names), time.Since(start).Round(time.Second))
			return pods
		}
		if time.Since(start) > settleTimeout {
			t.Fatalf("%d pods are not judged after %s, such as %s: %s", len(open), settleTimeout, open[0], message(pods[open[0]]))
		}
		time.Sleep(time.Second)
	}
}

// judged holds for a pod with a node, and for one for which the nodes were
// looked at: not for one that waits for its claims to be made.
func judged(pod *corev1.Pod) bool {
	if pod == nil || pod.Spec.NodeName != "" {
		return pod != nil
	}
	condition := scheduled(pod)
	return condition.Status == corev1.ConditionFalse && (condition.Reason == corev1.PodReasonSchedulerError ||
		strings.Contains(condition.Message, "nodes are available") && !strings.Contains(condition.Message, "not created yet"))
}

func scheduled(pod *corev1.Pod) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition
		}
	}
	return corev1.PodCondition{}
}

func message(pod *corev1.Pod) string {
	condition := scheduled(pod)
	return condition.Reason + " " + condition.Message
}

func listClaims(t *testing.T, client kubernetes.Interface) map[string]*resourceapi.ResourceClaim {
	t.Helper()
	list, err := client.ResourceV1().ResourceClaims(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return byName(list.Items)
}

// byName returns a pointer to each item of a list, by name.
func byName[T any, P interface {
	*T
	metav1.Object
}](items []T) map[string]P {
	all := make(map[string]P)
	for i := range items {
		item := P(&items[i])
		all[item.GetName()] = item
	}
	return all
}

func sortedNames[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
