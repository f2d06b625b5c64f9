package kubeletplugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// podEventTries spans about two minutes. An event that the API server does not
// accept in that time is dropped.
const podEventTries = 10

// podEvent is an event that every pod of a claim gets.
type podEvent struct {
	claim              types.NamespacedName
	claimUID           types.UID
	kind, reason, note string
	at                 time.Time
}

// podEvents creates events on pods in the background, so that Observe does not wait for
// the API server.
type podEvents struct {
	client   kubernetes.Interface
	nodeName string
	pace     pace
	queue    workqueue.TypedRateLimitingInterface[podEvent]
}

func newPodEvents(client kubernetes.Interface, nodeName string, pace pace) *podEvents {
	return &podEvents{client: client, nodeName: nodeName, pace: pace, queue: newQueue[podEvent]()}
}

// tell queues the events of a fault of a claim that begins, or is over. Known is what the note
// says besides the name of the claim. A daemon that restarts and tells of the same time creates
// no second event.
func (e *podEvents) tell(grant ledger.Grant, name string, over bool, at time.Time, known ...any) {
	if grant.Unprepared {
		return // its pod is gone
	}
	event := podEvent{claim: types.NamespacedName{Namespace: grant.Namespace, Name: grant.Name}, claimUID: grant.UID, at: at}
	event.kind, event.reason, event.note = said(deviceclasses.FaultOf(name), over)
	event.note = fmt.Sprintf(event.note, append([]any{grant.Name}, known...)...)
	e.queue.Add(event)
}

// run creates the queued events until ctx ends.
func (e *podEvents) run(ctx context.Context) {
	work(ctx, e.queue, func(ctx context.Context, event podEvent) (repeat bool) {
		if e.queue.NumRequeues(event) == 0 && !e.pace.TryAccept() {
			klog.FromContext(ctx).Info("Event dropped", "cause", errTooManyEvents, "reason", event.reason, "claim", event.claim, "note", event.note)
			return false
		}
		err := e.write(ctx, event)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Creating events on the pods of a claim failed", "claim", event.claim, "reason", event.reason)
		}
		return err != nil && e.queue.NumRequeues(event) < podEventTries
	})
}

// write creates the event on the pods of the claim. One of them may get it: run has asked.
func (e *podEvents) write(ctx context.Context, event podEvent) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	claim, err := claimWith(ctx, e.client, event.claim, event.claimUID)
	if err != nil {
		return fmt.Errorf("read claim %s: %w", event.claim, err)
	}
	if claim == nil || !driver.AllocatedOn(claim, e.nodeName) { // its pods are other ones by now
		return nil
	}
	for i, pod := range consumers(claim) {
		if i > 0 && !e.pace.TryAccept() {
			klog.FromContext(ctx).Info("Event dropped", "cause", errTooManyEvents, "reason", event.reason, "pod", klog.KRef(claim.Namespace, pod.Name), "note", event.note)
			continue
		}
		_, err := e.client.EventsV1().Events(claim.Namespace).Create(ctx, e.event(event, claim, pod), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) { // an earlier try created it
			return fmt.Errorf("create event %s on pod %s/%s: %w", event.reason, claim.Namespace, pod.Name, err)
		}
	}
	return nil
}

func (e *podEvents) event(event podEvent, claim *resourceapi.ResourceClaim, pod resourceapi.ResourceClaimConsumerReference) *eventsapi.Event {
	object := newEvent(e.nodeName, event.kind, event.reason, event.note)
	object.ObjectMeta = metav1.ObjectMeta{
		Namespace: claim.Namespace,
		Name:      deviceclasses.EventName(pod.Name, string(pod.UID), string(event.claimUID), fmt.Sprint(event.at.UnixNano()), event.reason, event.note),
	}
	object.EventTime = metav1.NewMicroTime(event.at)
	object.Action = "Watch"
	object.Regarding = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: claim.Namespace, Name: pod.Name, UID: pod.UID}
	object.Related = &corev1.ObjectReference{
		APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceClaim",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
	}
	return object
}
