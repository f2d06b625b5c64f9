package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/bundle"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// eventsTimeout is the limit for reading the events of a page.
const eventsTimeout = 20 * time.Second

// readEvents has events, and says which others could not be read.
type readEvents struct {
	events  []*corev1.Event
	missing []string
}

// eventList is the kind of objects in a namespace whose events are listed, and the name if
// it is only one object.
type eventList struct{ kind, namespace, name string }

// eventLists returns the lists that have the events about objects: at most one for each
// kind and namespace.
func eventLists(about []corev1.ObjectReference) (lists []eventList) {
	for _, object := range about {
		if object.Namespace == "" {
			object.Namespace = metav1.NamespaceDefault
		}
		at := slices.IndexFunc(lists, func(l eventList) bool { return l.kind == object.Kind && l.namespace == object.Namespace })
		if at < 0 {
			lists = append(lists, eventList{object.Kind, object.Namespace, object.Name})
		} else if lists[at].name != object.Name {
			lists[at].name = ""
		}
	}
	return lists
}

// listEvents lists events about objects of a cluster.
func (s *source) listEvents(ctx context.Context, about []corev1.ObjectReference) (events []*corev1.Event, missing []string) {
	_, client, err := s.connect()
	if err != nil {
		return nil, []string{message.OneLine(err.Error())}
	}
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	objects := &snapshot.Snapshot{}
	for _, list := range eventLists(about) {
		if err := (live.Source{Client: client}).AddEvents(ctx, objects, list.kind, list.namespace, list.name); err != nil {
			missing = append(missing, message.OneLine("events about "+list.kind+"s: "+err.Error()))
		}
	}
	return objects.Events, missing
}

// ownEvents returns the events of the objects that a command has read.
func (s *source) ownEvents(objects *snapshot.Snapshot) (events []*corev1.Event, missing []string) {
	if s.bundle == "" {
		return objects.Events, []string{"events that the files do not have"}
	}
	missing = []string{"events about claims and pods that other programs wrote: a bundle does not have them"}
	for _, unread := range s.read.Missing {
		if unread.Setting == bundle.EventsSetting {
			missing = append(missing, "events of this bundle: "+message.OneLine(unread.Why))
		}
	}
	return objects.Events, missing
}
