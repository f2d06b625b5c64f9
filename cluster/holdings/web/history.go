package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	g "maragu.dev/gomponents"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// historyPage is the events about a zone.
type historyPage struct {
	Node    string
	About   []string // the objects whose events are shown
	Missing []string
	Events  []eventRow
	pager
}

// eventRow is an event.
type eventRow struct {
	*corev1.Event
	Last, Machine string // when it was last seen, for people and for machines
	Times         int32  // how often it was seen
	From          string
	About, Link   string // Link is "" if there is no page
}

// historyPath returns the path of the page of events about a zone.
func historyPath(node, zone string) string {
	return nodePath(node) + "/zones/" + url.PathEscape(zone)
}

// history shows the events about a zone: those about its node, about the claims that hold
// parts of it, and about their pods. The newest come first.
func (s *server) history(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	node, name := now.cluster.Node(r.PathValue("name")), r.PathValue("zone")
	var zone *holdings.Device
	if node != nil {
		zone = zoneOf(node, name)
	}
	if zone == nil {
		s.message(w, http.StatusNotFound, "There is no zone "+name+" on a node "+r.PathValue("name")+".")
		return
	}
	about := aboutZone(now, node, zone)
	all, missing := s.Events(r.Context(), now.objects, about)
	var events []*corev1.Event
	for _, e := range all {
		if slices.ContainsFunc(about, func(object corev1.ObjectReference) bool { return isAbout(e, object) }) && !isAboutOthers(e, node, name) {
			events = append(events, e)
		}
	}
	slices.SortStableFunc(events, func(a, b *corev1.Event) int {
		return cmp.Or(snapshot.LastSeen(b).Compare(snapshot.LastSeen(a)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	page := historyPage{Node: node.Name, Missing: missing, pager: newPager(r, len(events))}
	for _, object := range about {
		page.About = append(page.About, nameOf(object))
	}
	for _, event := range events[page.from:page.to] {
		page.Events = append(page.Events, rowOfEvent(event))
	}
	s.render(w, now, http.StatusOK, "Events about "+name+" of "+node.Name, page.main())
}

// zoneOf returns a zone of the node by its name, or nil.
func zoneOf(node *holdings.Node, name string) *holdings.Device {
	for device := range node.View().Devices() {
		if device.Zone && device.Name == name {
			return device
		}
	}
	return nil
}

// aboutZone returns the node of the zone, the claims that hold parts of the zone, and their
// pods.
func aboutZone(now *state, node *holdings.Node, zone *holdings.Device) []corev1.ObjectReference {
	about := []corev1.ObjectReference{{Kind: "Node", Name: node.Name}}
	add := func(object corev1.ObjectReference) {
		if !slices.Contains(about, object) {
			about = append(about, object)
		}
	}
	for _, share := range zone.Shares {
		claim := now.cluster.Claim(share.Claim)
		if claim == nil {
			continue
		}
		object := corev1.ObjectReference{Kind: "ResourceClaim", Namespace: claim.Namespace, Name: claim.Name}
		if of := now.objects.Claim(claim.Namespace, claim.Name); of != nil {
			object.UID = of.UID
		}
		add(object)
		for _, user := range claim.Users {
			if user.Resource != "pods" {
				continue
			}
			object := corev1.ObjectReference{Kind: "Pod", Namespace: claim.Namespace, Name: user.Name}
			if of := now.objects.Pod(claim.Namespace, user.Name); of != nil {
				object.UID = of.UID
			}
			add(object)
		}
	}
	return about
}

// isAbout reports whether the event is about the object, and not about an earlier one of
// the same name. Events about a Node may have any UID, because kubelets write its name.
func isAbout(e *corev1.Event, object corev1.ObjectReference) bool {
	of := e.InvolvedObject
	if of.Kind != object.Kind || of.Name != object.Name || of.Namespace != object.Namespace {
		return false
	}
	return of.Kind == "Node" || of.UID == "" || object.UID == "" || of.UID == object.UID
}

// isAboutOthers reports whether the event about a Node names devices of this driver, and
// none of them is the zone.
func isAboutOthers(e *corev1.Event, node *holdings.Node, zone string) bool {
	if e.InvolvedObject.Kind != "Node" {
		return false
	}
	words := make(map[string]bool)
	for _, word := range strings.FieldsFunc(e.Message, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' }) {
		words[word] = true
	}
	others := false
	for device := range node.View().Devices() {
		others = others || device.Driver == deviceclasses.DriverName && words[device.Name]
	}
	return others && !words[zone]
}

func nameOf(object corev1.ObjectReference) string {
	if object.Namespace == "" {
		return object.Kind + " " + object.Name
	}
	return object.Kind + " " + object.Namespace + "/" + object.Name
}

func rowOfEvent(e *corev1.Event) eventRow {
	of := e.InvolvedObject
	row := eventRow{
		Event: e, Times: max(e.Count, 1), From: cmp.Or(e.ReportingController, e.Source.Component),
		About: nameOf(corev1.ObjectReference{Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}),
	}
	if e.Series != nil {
		row.Times = max(e.Series.Count, 1)
	}
	if last := snapshot.LastSeen(e).UTC(); !last.IsZero() {
		row.Last, row.Machine = last.Format(time.DateTime)+" UTC", last.Format(time.RFC3339)
	}
	switch of.Kind {
	case "Node":
		row.Link = nodePath(of.Name)
	case "ResourceClaim":
		row.Link = claimPath(of.Namespace, of.Name)
	}
	return row
}

func (p historyPage) main() g.Node {
	return g.Group{
		el("p", text("Node "), nodeLink(p.Node)),
		plain("The newest events come first. A cluster forgets events, usually after an hour. The texts are those of " +
			"the programs that wrote the events, and a user who may create events can write any text."),
		g.Map(p.Missing, func(what string) g.Node { return problem("Missing here: " + what) }),
		folded("events about "+canvas.Count(len(p.About), "object"), list(p.About)),
		p.links(),
		g.If(len(p.Events) > 0, g.Group{
			scrolled(heads("Last seen", "Type", "Reason", "About", "Text", "From"), el("tbody", g.Map(p.Events, eventRow.row))),
			p.links(),
		}),
	}
}

func (e eventRow) row() g.Node {
	class := "text"
	if e.Type == corev1.EventTypeWarning {
		class = "text warning"
	}
	about := text(e.About)
	if e.Link != "" {
		about = anchor(e.Link, e.About)
	}
	return el("tr",
		el("td", attr("class", "time"), e.seen()),
		el("td", text(e.Type)),
		el("td", text(e.Reason)),
		el("td", attr("class", "about"), about),
		el("td", attr("class", class), text(e.Message)),
		el("td", text(e.From)),
	)
}

// seen says when the event was last seen, and how often.
func (e eventRow) seen() g.Node {
	last := text("not known")
	if e.Last != "" {
		last = el("time", attr("datetime", e.Machine), text(e.Last))
	}
	return g.Group{last, g.If(e.Times > 1, text(fmt.Sprintf(", %d times", e.Times)))}
}
