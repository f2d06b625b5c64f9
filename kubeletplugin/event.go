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
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

const (
	reasonNotReady = "NUMADriverNotReady"
	reasonReady    = "NUMADriverReady"

	eventTimeout        = 5 * time.Second
	eventInstanceLength = 128  // limit of reportingInstance, in bytes
	eventNoteLength     = 1024 // limit of note, in bytes
)

// events creates events on the Node, where people look, for what /readyz tells probes.
// It creates one event for each new problem that lasts until an administrator acts, and
// one when the node is ready again.
type events struct {
	client   kubernetes.Interface
	nodeName string
	pace     pace
	warned   string // the problem of the last event; empty once the node was ready again
}

// tell takes the current problem, or nil. Call it after each check.
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

// lasts reports whether a problem lasts until an administrator acts. It is false for
// problems that pass by themselves, such as slices that are not stored yet. It is also
// false if the API server does not answer, because then it would not accept the event
// either.
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

// notice is something that lasts on the Node. It gets an event each time its text changes,
// and one when it is over.
type notice struct {
	reason           string // of a warning
	overReason, over string // of the event when it is over, and its text
	told             string // text of the last warning; empty if there was none, or it is over
}

// notify takes the text of the notice as it is now, empty if there is nothing to say. If
// the event cannot be created, the next call tries again.
func (e *events) notify(ctx context.Context, n *notice, text string) {
	if text == n.told {
		return
	}
	kind, reason, note := corev1.EventTypeWarning, n.reason, text
	if text == "" {
		kind, reason, note = corev1.EventTypeNormal, n.overReason, n.over
	}
	klog.FromContext(ctx).Info("Node has changed", "node", e.nodeName, "reason", reason, "note", note)
	if err := e.create(ctx, kind, reason, note); err != nil {
		klog.FromContext(ctx).Error(err, "Creating an event on the Node failed, trying again", "node", e.nodeName)
		return
	}
	n.told = text
}

// lasting is a notice whose text comes from another goroutine.
type lasting struct {
	notice
	text string // as it is now; guarded by publisher.mu
}

// setText takes the text of a notice as it is now. It reports whether that is new.
func (p *publisher) setText(l *lasting, text string) (isNew bool) {
	p.mu.Lock()
	isNew = text != l.text
	l.text = text
	p.mu.Unlock()
	if isNew {
		p.renew()
	}
	return isNew
}

// tellLasting creates the events on the Node.
func (p *publisher) tellLasting(ctx context.Context) {
	for _, l := range []*lasting{&p.hugepages, &p.unexplained, &p.unmet} {
		p.mu.Lock()
		text := l.text
		p.mu.Unlock()
		p.events.notify(ctx, &l.notice, text)
	}
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
