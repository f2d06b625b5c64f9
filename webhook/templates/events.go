package templates

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Reason is the reason of the event on a pod whose template is not as it should be.
const Reason = "NUMATemplateRefused"

// How many events there are in a second, and at once: a tenant can make many pods.
const (
	eventsPerSecond = 5
	eventsAtOnce    = 50
)

const noteLength = 1024 // limit of note, in bytes

// events says on pods what is wrong with their templates. What is said twice is one event.
type events struct {
	client   kubernetes.Interface
	instance string
	pace     flowcontrol.RateLimiter
}

func newEvents(options Options) events {
	return events{client: options.Client, instance: message.Short(options.Identity, 128), pace: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsAtOnce)}
}

// tell logs the reason and creates an event, whose name is made of what it says, so that a
// repetition is the same event. It reports whether there is nothing to repeat.
func (e events) tell(ctx context.Context, pod *corev1.Pod, why string) (said bool) {
	if !e.pace.TryAccept() {
		return false
	}
	note := message.Short(fmt.Sprintf("ResourceClaimTemplate %s: %s", translate.TemplateOf(pod), why), noteLength)
	logger := klog.FromContext(ctx).WithValues("pod", klog.KObj(pod), "note", note)
	logger.Info("Template is not as it should be")
	_, err := e.client.EventsV1().Events(pod.Namespace).Create(ctx, &eventsapi.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: pod.Namespace, Name: deviceclasses.EventName(pod.Name, string(pod.UID), note)},
		EventTime:           metav1.NowMicro(),
		ReportingController: deviceclasses.DriverName, ReportingInstance: e.instance,
		Type: corev1.EventTypeWarning, Reason: Reason, Action: "Translate", Note: note,
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		logger.Error(err, "Creating an event failed")
		return false
	}
	return true
}
