package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"

	g "maragu.dev/gomponents"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/cpumap"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// nodePage is the page of a node.
type nodePage struct {
	*holdings.Node
	Sums    []string
	Unknown string   // why the CPUs are not drawn, or not all of what they are used for is known
	Wrong   []string // contradictions about the CPUs
	Legend  []legendEntry
	Places  []place
	Claims  []claimRow
}

// place is a NUMA node, or all devices without a known NUMA node.
type place struct {
	Title   string
	Wide    bool        // the CPUs need the width of the page
	Caches  []cacheView // empty if it is not known where the CPUs are
	Devices []deviceView
}

// deviceView is a device with a strip for each of its resources, or with a single cell.
type deviceView struct {
	*holdings.Device
	History    string // path of the page of events; "" for what is no zone
	Cell       *picture
	Strips     []strip
	Attributes []string
}

type strip struct {
	Label, Left string
	Picture     *picture
}

// widestStrip is the maximum width of a strip on the page of a node, in cells.
const widestStrip = 32

func (s *server) node(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	node := now.cluster.Node(r.PathValue("name"))
	if node == nil {
		s.message(w, http.StatusNotFound, "There is no node "+r.PathValue("name")+".")
		return
	}
	page := nodePage{Node: node}
	for _, total := range node.Totals {
		page.Sums = append(page.Sums, canvas.Printable(chart.Label(total.Name)+" "+chart.Left(total)))
	}
	layout, counted, unknown := s.cpus(r.Context(), now, node)
	page.Unknown, page.Wrong, page.Legend = unknown, layout.Problems, legendOf(layout)
	signs := chart.NewSigns()
	page.Places = placesOf(node, layout, signs)
	for _, key := range signs.Claims() {
		if claim := now.cluster.Claim(key); claim != nil {
			page.Claims = append(page.Claims, claimRow{pictureOf(signs.Sample(key).Layout(1), true), key, *claim, append(holds(claim, node.Name), chart.Uses(counted, key)...)})
		}
	}
	s.render(w, now, http.StatusOK, node.Name, page.main())
}

// cpus returns where the CPUs of a node are, what the kernel counts there, and why it is not
// known where they are. The map is empty if nothing says it.
func (s *server) cpus(ctx context.Context, now *state, node *holdings.Node) (m cpumap.Map, counted *nodestate.Resctrl, unknown string) {
	if s.State == nil {
		return m, nil, ""
	}
	state, err := s.State(ctx, now.objects, node.Name)
	switch {
	case err != nil:
		return m, nil, "The CPUs are not drawn: " + err.Error()
	case state.Layout == nil:
		return m, state.Resctrl, "The CPUs are not drawn: " + cmp.Or(state.Unread(nodestate.LayoutPart), "the driver on the node is too old to say where they are")
	case state.Layout.Reserved == nil:
		unknown = "Which CPUs are reserved is not known: " + state.Layout.Why
	}
	return cpumap.Of(node, state), state.Resctrl, unknown
}

// placesOf returns the NUMA nodes that have devices or CPUs, by id, and then the devices
// without a known NUMA node.
func placesOf(node *holdings.Node, layout cpumap.Map, signs *chart.Signs) (places []place) {
	all := *node
	all.NUMANodes = slices.Clone(node.NUMANodes)
	for _, n := range layout.NUMANodes {
		if !slices.ContainsFunc(all.NUMANodes, func(at holdings.NUMANode) bool { return at.ID == n.ID }) {
			all.NUMANodes = append(all.NUMANodes, numaNodeOf(n))
		}
	}
	slices.SortFunc(all.NUMANodes, func(a, b holdings.NUMANode) int { return cmp.Compare(a.ID, b.ID) })
	drawn := len(layout.NUMANodes) > 0
	for _, at := range all.View().Places {
		places = append(places, place{Title: at.Title, Devices: views(node.Name, signs, at.Devices, drawn)})
	}
	for _, n := range layout.NUMANodes { // now each claim has its sign
		at := slices.IndexFunc(all.NUMANodes, func(other holdings.NUMANode) bool { return other.ID == n.ID })
		for _, cache := range n.Caches {
			places[at].Caches = append(places[at].Caches, cacheViewOf(cache, signs))
		}
		places[at].Wide = cpusOf(places[at].Caches) > narrowCPUs
	}
	return places
}

// narrowCPUs is how many CPUs a NUMA node may have in a column of the page.
const narrowCPUs = 64

func cpusOf(caches []cacheView) (count int) {
	for i := range caches {
		count += len(caches[i].Cells)
	}
	return count
}

// numaNodeOf returns a NUMA node without devices.
func numaNodeOf(n cpumap.NUMANode) holdings.NUMANode {
	at := holdings.NUMANode{ID: n.ID}
	if n.Socket != nil {
		at.Socket = new(int64(*n.Socket))
	}
	return at
}

// views returns devices of a node. The CPUs of zones have no strip if they are drawn one
// by one.
func views(node string, signs *chart.Signs, list []holdings.Device, drawn bool) (all []deviceView) {
	for i := range list {
		device := &list[i]
		signs.Meet(device)
		view := deviceView{Device: device}
		if device.Zone {
			view.History = historyPath(node, device.Name)
		}
		for name, value := range device.Attributes {
			view.Attributes = append(view.Attributes, name+" = "+value)
		}
		slices.Sort(view.Attributes)
		for _, r := range device.Shown() {
			row := strip{Label: chart.Label(r.Name), Left: canvas.Printable(chart.Left(r))}
			if !drawn || !device.Zone || r.Name != string(deviceclasses.CapacityCPU) {
				row.Picture = pictureOf(signs.Strip(device, r).Layout(widestStrip), true)
			}
			view.Strips = append(view.Strips, row)
		}
		if len(view.Strips) == 0 {
			view.Cell = pictureOf(canvas.Strip{signs.Cell(device)}.Layout(1), true)
		}
		all = append(all, view)
	}
	return all
}

// holds returns what a claim holds on a node, or on all nodes if node is "".
func holds(claim *holdings.Claim, node string) (list []string) {
	for i := range claim.Shares {
		if share := &claim.Shares[i]; !share.Admin && (node == "" || share.Node == node) {
			list = append(list, canvas.Printable(chart.Describe(share)))
		}
	}
	return list
}

// nodePath returns the path of the page of a node.
func nodePath(node string) string { return "/nodes/" + url.PathEscape(node) }

func nodeLink(node string) g.Node { return anchor(nodePath(node), node) }

func (p nodePage) main() g.Node {
	return g.Group{
		g.Map(p.Sums, plain),
		g.Map(p.Problems, problem),
		g.Map(p.Wrong, problem),
		g.If(p.Unknown != "", plain(p.Unknown)),
		g.If(len(p.Legend) > 0, el("ul", attr("class", "legend"), g.Map(p.Legend, func(e legendEntry) g.Node {
			return el("li", e.Sign.svg(), text(" "+e.Text))
		}))),
		el("div", attr("class", "places"), g.Map(p.Places, place.card)),
		el("h2", text("Claims")),
		p.claims(),
	}
}

func (p nodePage) claims() g.Node {
	if len(p.Claims) == 0 {
		return plain("No claim holds anything on this node.")
	}
	return scrolled(
		heads("Claim", "Used by", "Holds here"),
		el("tbody", g.Map(p.Claims, func(c claimRow) g.Node {
			return el("tr", rowHead(c.Sign.svg(), text(" "), claimLink(c.Key)), el("td", c.users()), el("td", g.Map(c.Holds, plain)))
		})),
	)
}

// card shows the CPUs of a place, and then its devices.
func (p place) card() g.Node {
	class := "card"
	if p.Wide {
		class = "card wide"
	}
	return el("section",
		attr("class", class),
		el("h2", text(p.Title)),
		g.If(len(p.Caches) > 0, g.Group{
			el("div", attr("class", "caches"), g.Map(p.Caches, cacheView.figure)),
			folded("CPUs as text", el("table", heads("L3", "CPUs", "used by"), el("tbody", g.Map(p.Caches, cacheView.rows)))),
		}),
		g.Map(p.Devices, deviceView.block),
	)
}

// block shows a device.
func (d deviceView) block() g.Node {
	return el("div",
		attr("class", "device"),
		el("h3", d.Cell.before(), text(d.Name+" "), el("small", text(d.stateText()))),
		g.If(d.History != "", el("p", anchor(d.History, "events about "+d.Name))),
		g.Map(d.Taints, func(t holdings.Taint) g.Node { return paragraph(t.Acts(), "tainted: "+t.String()) }),
		g.Map(d.Strips, func(s strip) g.Node {
			return g.Group{el("p", attr("class", "left"), text(s.Label+": "+s.Left)), s.Picture.svg()}
		}),
		g.If(len(d.Attributes) > 0, folded("attributes", el("ul", g.Map(d.Attributes, func(a string) g.Node {
			return el("li", el("code", text(a)))
		})))),
		g.Map(d.Shares, adminLine),
	)
}

// stateText says who publishes the device, whether it is free, and why not.
func (d deviceView) stateText() string {
	label := d.Driver + ", " + string(d.State)
	if d.Reason != "" {
		label += ": " + d.Reason
	}
	return label
}

// adminLine names a claim with admin access. For other claims, it returns nil.
func adminLine(s holdings.Share) g.Node {
	return g.If(s.Admin, el("p", text("admin access, which holds nothing: "), claimLink(s.Claim)))
}
