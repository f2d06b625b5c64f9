package kubeletplugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

const (
	eventTimeout        = 5 * time.Second
	eventInstanceLength = 128  // limit of reportingInstance, in bytes
	eventNoteLength     = 1024 // limit of note, in bytes
)

// events creates events on the Node, where people look, when a fault of it begins, changes or is
// over. Only the goroutine that publishes uses it.
type events struct {
	client   kubernetes.Interface
	nodeName string
	pace     pace
	told     map[string]string // by fault, what the last event said; empty if there was none, or it is over
}

// turn takes what is wrong now; empty if nothing is, or no longer. It does nothing while that is
// still the same. If the event cannot be created, the next call tries again.
func (e *events) turn(ctx context.Context, name, wrong string) {
	if wrong == e.told[name] {
		return
	}
	fault, logger := deviceclasses.FaultOf(name), klog.FromContext(ctx)
	kind, reason, note := said(fault, wrong == "")
	if wrong != "" {
		note = wrong
	}
	if fault.Logged {
		logger.Info("Node has changed", "node", e.nodeName, "reason", reason, "note", note)
	}
	if err := e.create(ctx, kind, reason, note); err != nil {
		logger.Error(err, "Creating an event on the Node failed, trying again", "node", e.nodeName)
		return
	}
	e.told[name] = wrong
}

// problem takes why the node is not ready, or nil. It says nothing of what passes by itself, such
// as slices that are not stored yet. If the API server does not answer, it would not accept the
// event either.
func (e *events) problem(ctx context.Context, problem error) {
	switch reason := reasonOf(problem); {
	case problem == nil:
		e.turn(ctx, deviceclasses.FaultNotReady, "")
	case reason != ReasonAPIServer && reason != ReasonKeeper:
		e.turn(ctx, deviceclasses.FaultNotReady, problem.Error())
	}
}

// said returns type and reason of the event of a fault that begins or is over, and the format of
// its note.
func said(fault deviceclasses.Fault, over bool) (kind, reason, note string) {
	if over {
		return corev1.EventTypeNormal, fault.EventOver, fault.NoteOver
	}
	return corev1.EventTypeWarning, fault.Event, fault.Note
}

func (e *events) create(ctx context.Context, kind, reason, note string) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	event := newEvent(e.nodeName, kind, reason, note)
	event.ObjectMeta = metav1.ObjectMeta{GenerateName: e.nodeName + "-", Namespace: metav1.NamespaceDefault}
	event.EventTime = metav1.NowMicro()
	event.Action = "Publish"
	// kubectl describe looks for events of a node with its name as the UID, because
	// that is how the kubelet writes them.
	event.Regarding = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: e.nodeName, UID: types.UID(e.nodeName)}
	if !e.pace.TryAccept() {
		return fmt.Errorf("create event %s: %w", reason, errTooManyEvents)
	}
	if _, err := e.client.EventsV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create event %s: %w", reason, err)
	}
	return nil
}

// newEvent returns an event of the driver on this node. The caller adds the object that
// it is about.
func newEvent(nodeName, kind, reason, note string) *eventsapi.Event {
	return &eventsapi.Event{
		ReportingController: driver.Name,
		ReportingInstance:   cut(nodeName, eventInstanceLength),
		Type:                kind,
		Reason:              reason,
		Note:                cut(note, eventNoteLength),
	}
}
