package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

const (
	reasonNotReady = "NUMADriverNotReady"
	reasonReady    = "NUMADriverReady"

	eventTimeout        = 5 * time.Second
	eventInstanceLength = 128  // of reportingInstance, in bytes
	eventNoteLength     = 1024 // in bytes
)

// events tells on the Node, where people look, what /readyz tells probes: one
// event for each new reason that lasts until somebody changes something, and
// one when there is none any more.
type events struct {
	client   kubernetes.Interface
	nodeName string
	warned   string // the reason that was told last; empty once it was taken back
}

// tell is to be called with the current state as often as that is looked at.
func (e *events) tell(ctx context.Context, problem error) error {
	switch {
	case problem == nil && e.warned != "":
		if err := e.create(ctx, corev1.EventTypeNormal, reasonReady, "Zones of this node are published"); err != nil {
			return err
		}
		e.warned = ""
	case lasts(problem) && problem.Error() != e.warned:
		if err := e.create(ctx, corev1.EventTypeWarning, reasonNotReady, problem.Error()); err != nil {
			return err
		}
		e.warned = problem.Error()
	}
	return nil
}

// lasts is false for what is on its way, and for an API server that does not
// answer, which would not take the event either.
func lasts(problem error) bool {
	var guard guardError
	var dropped *droppedError
	return errors.As(problem, &guard) || errors.As(problem, &dropped)
}

func (e *events) create(ctx context.Context, kind, reason, note string) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	event := newEvent(e.nodeName, kind, reason, note)
	event.ObjectMeta = metav1.ObjectMeta{GenerateName: e.nodeName + "-", Namespace: metav1.NamespaceDefault}
	event.EventTime = metav1.NowMicro()
	event.Action = "Publish"
	// kubectl describe looks for a node's events by its name as the UID, as the
	// kubelet writes them.
	event.Regarding = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: e.nodeName, UID: types.UID(e.nodeName)}
	if _, err := e.client.EventsV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create event %s: %w", reason, err)
	}
	return nil
}

// newEvent is one of this node's driver, about nothing yet.
func newEvent(nodeName, kind, reason, note string) *eventsapi.Event {
	return &eventsapi.Event{
		ReportingController: driver.Name,
		ReportingInstance:   cut(nodeName, eventInstanceLength),
		Type:                kind,
		Reason:              reason,
		Note:                cut(note, eventNoteLength),
	}
}
