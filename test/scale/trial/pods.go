package trial

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

const namespace = "default"

// placed is when pods were created and had a node. Pods that fit nowhere are only in
// timedOut.
type placed struct {
	created, bound map[string]time.Time
	timedOut       map[string]bool
}

// podLabel is on the pods of a trial. Its value is the name of their batch.
const podLabel = "scale.test/pod"

// batch are pods that are created one after the other.
type batch struct {
	name     string // their label's value, and what their names begin with
	template string // of their claims
	pods     int
	fit      bool
}

// batches are the pods that are measured.
func (l Load) batches() []batch {
	return []batch{{"too-much", shape.TemplateTooMuch, l.TooMuch, false}, {"pod", shape.Template, l.Pods, true}}
}

// place creates the pods as fast as the API server takes them, and waits until all that
// fit have a node.
func (c *Cluster) place(ctx context.Context, s shape.Shape, batches ...batch) (placed, error) {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p := placed{created: map[string]time.Time{}, bound: map[string]time.Time{}, timedOut: map[string]bool{}}
	none, err := c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: podLabel})
	if err != nil {
		return p, err
	}
	var mu sync.Mutex // of p.created
	creating := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		p.created[name] = time.Now()
	}
	var calls []call
	var names []string
	fit := 0
	for _, b := range batches {
		names = append(names, b.name)
		if b.fit {
			fit += b.pods
		}
		calls = append(calls, c.podCreations(s, b, creating)...)
	}
	selector := fmt.Sprintf("%s in (%s)", podLabel, strings.Join(names, ","))
	events := &following[*corev1.Pod]{client: c.Client.CoreV1().Pods(namespace), selector: selector, version: none.ResourceVersion}
	defer events.stop()
	created := make(chan error, 1)
	running.Go(func() { created <- parallel(ctx, calls) })
	return p, c.await(ctx, events, created, fit, p)
}

// podCreations call creating before they create a pod that fits.
func (c *Cluster) podCreations(s shape.Shape, b batch, creating func(name string)) (calls []call) {
	for i := range b.pods {
		name := fmt.Sprintf("%s-%d", b.name, i)
		create := creation(c.Client.CoreV1().Pods(namespace), s.Pod(name, map[string]string{podLabel: b.name}, b.template))
		calls = append(calls, func(ctx context.Context) error {
			if b.fit {
				creating(name)
			}
			return create(ctx)
		})
	}
	return calls
}

// await reads the events until so many pods have a node and all pods are created. The
// scheduler's last word about a pod is part of the error.
func (c *Cluster) await(ctx context.Context, events *following[*corev1.Pod], created <-chan error, pods int, p placed) error {
	word, done := "", false
	for len(p.bound) < pods || !done {
		coming, err := events.events(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-created:
			if err != nil {
				return err
			}
			done = true
		case event, open := <-coming:
			pod, err := events.object(event, open)
			switch {
			case err != nil:
				return err
			case pod == nil:
				continue
			}
			if said := p.note(pod, time.Now()); said != "" {
				word = said
			}
		case <-time.After(c.Stall):
			return fmt.Errorf("%d of %d pods have a node, and nothing happens for %s: %s", len(p.bound), pods, c.Stall, word)
		}
	}
	return nil
}

// following watches objects of a trial. The API server ends a watch whose reader is slow,
// which one on a busy machine is at times. It goes on at once where it was. RetryWatcher of
// client-go would pause for a second, in which pods would seem to wait.
type following[T metav1.Object] struct {
	client   watcher
	selector string
	version  string // of the last object that was seen
	open     watch.Interface
}

// watcher is what every typed client has.
type watcher interface {
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// events returns what comes from a watch, which it begins if there is none.
func (f *following[T]) events(ctx context.Context) (_ <-chan watch.Event, err error) {
	if f.open == nil {
		f.open, err = f.client.Watch(ctx, metav1.ListOptions{LabelSelector: f.selector, ResourceVersion: f.version})
		if err != nil {
			return nil, err
		}
	}
	return f.open.ResultChan(), nil
}

// object returns that of an event, or nil if the watch has ended.
func (f *following[T]) object(event watch.Event, open bool) (o T, err error) {
	if !open {
		f.stop()
		return o, nil
	}
	o, ok := event.Object.(T)
	if !ok {
		return o, fmt.Errorf("watch %T: %w", o, apierrors.FromObject(event.Object))
	}
	f.version = o.GetResourceVersion()
	return o, nil
}

func (f *following[T]) stop() {
	if f.open != nil {
		f.open.Stop()
		f.open = nil
	}
}

// note records the state of a pod, and returns what the scheduler says of it.
func (p placed) note(pod *corev1.Pod, now time.Time) (word string) {
	if _, known := p.bound[pod.Name]; pod.Spec.NodeName != "" && !known {
		p.bound[pod.Name] = now
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			word = condition.Message
			if strings.Contains(word, "timed out") {
				p.timedOut[pod.Name] = true
			}
		}
	}
	return word
}

// removePods deletes the pods, and waits until their claims are gone too. No kubelet has
// to agree: the pods have no time to end.
func (c *Cluster) removePods(ctx context.Context) error {
	pods, claims := c.Client.CoreV1().Pods(namespace), c.Client.ResourceV1().ResourceClaims(namespace)
	err := pods.DeleteCollection(ctx, atOnce, metav1.ListOptions{LabelSelector: podLabel})
	if err != nil {
		return err
	}
	left, since := -1, time.Now()
	for {
		podList, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		claimList, err := claims.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		now := len(podList.Items) + len(claimList.Items)
		switch {
		case now == 0:
			return nil
		case now != left:
			left, since = now, time.Now()
		case time.Since(since) > c.Stall:
			return fmt.Errorf("%d pods and %d claims are still there after %s", len(podList.Items), len(claimList.Items), c.Stall)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
