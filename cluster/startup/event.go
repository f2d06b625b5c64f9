package startup

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Reasons of events (pkg/scheduler and pkg/kubelet/events of Kubernetes 1.37).
const (
	failedScheduling = "FailedScheduling"
	pullingImage     = "Pulling"
)

// ofEvents are the warnings about an object: for each reason the last message.
func ofEvents(s *snapshot.Snapshot, object metav1.Object) []funnel.Obstacle {
	return warnings(s.EventsAbout(object))
}

func warnings(events []*corev1.Event) (list []funnel.Obstacle) {
	last := make(map[string]int) // index in list, by reason
	for _, event := range events {
		if event.Type != corev1.EventTypeWarning {
			continue
		}
		said := obstacle("event %s", joined(event.Reason, strings.TrimSpace(event.Message)))
		if i, seen := last[event.Reason]; seen {
			list[i] = said
			continue
		}
		last[event.Reason] = len(list)
		list = append(list, said)
	}
	return list
}

// current returns the events that may say why a pod with a node does not start now, the
// oldest first. What kept it from getting a node is over, and so is what came before the
// kubelet went on to images and containers: it prepares claims, volumes and the sandbox
// first. A container that fails later says so in its status.
func current(events []*corev1.Event, pod *corev1.Pod) []*corev1.Event {
	since := scheduledAt(pod)
	for _, event := range events {
		if goesOn(event) && snapshot.LastSeen(event).After(since) {
			since = snapshot.LastSeen(event)
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(event *corev1.Event) bool {
		return event.Reason == failedScheduling || snapshot.LastSeen(event).Before(since)
	})
}

// goesOn reports whether the event says that a container has its sandbox.
func goesOn(event *corev1.Event) bool {
	return event.Type == corev1.EventTypeNormal && slices.Contains([]string{pullingImage, "Pulled", "Created", "Started"}, event.Reason)
}

// scheduledAt is when the pod got its node, or the zero time.
func scheduledAt(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// pulling returns what the last event says if the kubelet pulls an image, else "".
func pulling(events []*corev1.Event) string {
	if len(events) == 0 || !goesOn(events[len(events)-1]) || events[len(events)-1].Reason != pullingImage {
		return ""
	}
	return "event " + joined(pullingImage, events[len(events)-1].Message)
}
