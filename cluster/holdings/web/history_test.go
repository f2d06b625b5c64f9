package web

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// eventsOf returns an Options.Events with these events.
func eventsOf(events ...*corev1.Event) func(context.Context, *snapshot.Snapshot, []corev1.ObjectReference) ([]*corev1.Event, []string) {
	return func(context.Context, *snapshot.Snapshot, []corev1.ObjectReference) ([]*corev1.Event, []string) {
		return events, []string{"events <about> Pods: ann may not"}
	}
}

// event is one about an object, Kind/name or Kind/namespace/name, that many minutes after
// noon.
func event(object, uid, text string, minutes int) *corev1.Event {
	parts := strings.Split(object, "/")
	of := corev1.ObjectReference{Kind: parts[0], Name: parts[len(parts)-1], UID: types.UID(uid)}
	if len(parts) == 3 {
		of.Namespace = parts[1]
	}
	e := &corev1.Event{InvolvedObject: of, Reason: "Because", Message: text, Type: corev1.EventTypeWarning, ReportingController: "dra.numa"}
	e.Name = fmt.Sprintf("%s.%s", of.Name, text)
	e.EventTime = metav1.NewMicroTime(time.Date(2026, 11, 23, 12, minutes, 0, 0, time.UTC))
	return e
}

// historyOf serves pages with these events.
func historyOf(t *testing.T, events ...*corev1.Event) http.Handler {
	t.Helper()
	board := NewBoard()
	board.Show(&occupied.Showcase(t).Snapshot)
	return Handler(board, Options{Explain: explained, Events: eventsOf(events...)})
}

var eventText = regexp.MustCompile(`<td class="text warning">([^<]*)</td>`)

func TestHistoryIsAboutTheZoneNewestFirst(t *testing.T) {
	again := event("Node/worker-1", "worker-1", "device numa-1: 4 MiB of hugepages are missing; device numa-3: too", 4)
	again.EventTime, again.Count = metav1.MicroTime{}, 7
	again.LastTimestamp = metav1.NewTime(time.Date(2026, 11, 23, 12, 9, 0, 0, time.UTC))
	handler := historyOf(
		t,
		event("Pod/default/alpha", "default/alpha", "lost", 1),
		event("ResourceClaim/default/alpha-zone", "default/alpha-zone", "allocated", 2),
		event("Node/worker-1", "some-uid", "rebooted", 3),
		again,
		event("Node/worker-1", "worker-1", "device numa-3: 4 MiB of hugepages are missing", 5), // another zone
		event("Node/worker-2", "worker-2", "elsewhere", 6),
		event("Pod/default/alpha", "an earlier one", "earlier", 7),
		event("Pod/team-a/gamma-0", "team-a/gamma-0", "of another zone", 8),
		event("Pod/other/alpha", "", "of another namespace", 8),
	)
	text := page(t, handler, "/nodes/worker-1/zones/numa-1")
	var got []string
	for _, match := range eventText.FindAllStringSubmatch(text, -1) {
		got = append(got, match[1])
	}
	want := []string{"device numa-1: 4 MiB of hugepages are missing; device numa-3: too", "rebooted", "allocated", "lost"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	testfiles.Contains(t, text,
		"Missing here: events &lt;about&gt; Pods: ann may not", `<time datetime="2026-11-23T12:09:00Z">2026-11-23 12:09:00 UTC</time>, 7 times`,
		`<a href="/claims/default/alpha-zone">ResourceClaim default/alpha-zone</a>`, "<li>Pod default/alpha</li>", "events about 4 objects", "1 to 4 of 4",
	)
}

// Each page asks for the events of its own objects.
func TestHistoryAsksForTheObjectsOfItsZone(t *testing.T) {
	var asked []corev1.ObjectReference
	board := NewBoard()
	board.Show(&occupied.Showcase(t).Snapshot)
	handler := Handler(board, Options{Events: func(_ context.Context, _ *snapshot.Snapshot, about []corev1.ObjectReference) ([]*corev1.Event, []string) {
		asked = about
		return nil, nil
	}})
	text := page(t, handler, "/nodes/worker-1/zones/numa-3")
	want := []corev1.ObjectReference{
		{Kind: "Node", Name: "worker-1"},
		{Kind: "ResourceClaim", Namespace: "team-a", Name: "gamma", UID: "team-a/gamma"},
		{Kind: "Pod", Namespace: "team-a", Name: "gamma-0", UID: "team-a/gamma-0"},
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
	if !strings.Contains(text, `<p class="pager">None</p>`) || strings.Contains(text, "Missing") {
		t.Errorf("without events the page is\n%s", text)
	}
	for _, path := range []string{"/nodes/worker-1/zones/none", "/nodes/none/zones/numa-1", "/nodes/worker-1/zones/eth1", "/nodes/worker-1/zones/"} {
		if answer := get(t, handler, path); answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "There is no ") {
			t.Errorf("%s: %d\n%s", path, answer.Code, answer.Body)
		}
	}
}

func TestLongHistoryHasPages(t *testing.T) {
	var events []*corev1.Event
	for i := range 2*perPage + 1 {
		events = append(events, event("Node/worker-1", "", fmt.Sprintf("event %d.", i), i))
	}
	handler := historyOf(t, events...)
	if text := page(t, handler, "/nodes/worker-1/zones/numa-0"); !strings.Contains(text, "event 50.") || strings.Contains(text, "event 25.") || !strings.Contains(text, `href="?page=2"`) {
		t.Errorf("the first page is\n%s", text)
	}
	if text := page(t, handler, "/nodes/worker-1/zones/numa-0?page=3"); !strings.Contains(text, "event 0.") || strings.Contains(text, "event 1.") {
		t.Errorf("the last page is\n%s", text)
	}
}
