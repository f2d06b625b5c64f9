package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// Values of the filter of the overview.
const (
	showAll      = ""
	showProblems = "problems"
	showHeld     = "held"
	showFree     = "free"
)

// overviewPage is the page of all nodes.
type overviewPage struct {
	Nodes   []nodeRow
	Total   int // number of nodes of the cluster
	Claims  int
	Pending []holdings.Pending // the first ones
	Waiting int
	Show    string
	CPUs    string // how many free CPUs a zone must have; "" means any number
	pager
}

// nodeRow is a node in one line.
type nodeRow struct {
	Name         string
	Strip        *picture // the CPUs of its zones
	CPU, Memory  string
	Claims       int
	Problems     []string
	MoreProblems int
}

const mostProblems = 2 // maximum number in the line of a node

func (s *server) overview(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	c := &now.cluster
	page := overviewPage{
		Total: len(c.Nodes), Claims: len(c.Claims), Waiting: len(c.Pending), Pending: c.Pending[:min(len(c.Pending), 5)],
		Show: r.FormValue("show"), CPUs: r.FormValue("cpus"),
	}
	query, cpus := strings.ToLower(strings.TrimSpace(r.FormValue("q"))), int64(whole(page.CPUs, 0))
	var found []*holdings.Node
	for i := range c.Nodes {
		if strings.Contains(now.search[i], query) && matches(&c.Nodes[i], page.Show, cpus) {
			found = append(found, &c.Nodes[i])
		}
	}
	page.pager = newPager(r, len(found))
	for _, node := range found[page.from:page.to] {
		page.Nodes = append(page.Nodes, rowOf(node))
	}
	s.render(w, now, http.StatusOK, "Nodes", page.main())
}

func matches(node *holdings.Node, show string, cpus int64) bool {
	switch show {
	case showProblems:
		if len(node.Problems) == 0 {
			return false
		}
	case showHeld:
		if claimsOf(node) == 0 {
			return false
		}
	case showFree:
		if mostFreeCPUs(node) == 0 {
			return false
		}
	}
	return mostFreeCPUs(node) >= cpus
}

// mostFreeCPUs returns how many CPUs a claim could get from one zone.
func mostFreeCPUs(node *holdings.Node) (cpus int64) {
	for i := range node.NUMANodes {
		for _, device := range node.NUMANodes[i].Devices {
			if device.Zone && device.State != holdings.StateBlocked && !slices.ContainsFunc(device.Taints, holdings.Taint.Acts) {
				if r := find(device.Resources, string(deviceclasses.CapacityCPU)); r != nil && r.Free != nil {
					cpus = max(cpus, r.Free.Value())
				}
			}
		}
	}
	return cpus
}

func find(list []holdings.Resource, name string) *holdings.Resource {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func claimsOf(node *holdings.Node) int {
	claims := make(map[string]bool)
	for device := range devices(node) {
		for _, share := range device.Shares {
			claims[share.Claim] = true
		}
	}
	return len(claims)
}

// devices iterates over the devices of a node.
func devices(node *holdings.Node) func(yield func(*holdings.Device) bool) {
	return func(yield func(*holdings.Device) bool) {
		for i := range node.NUMANodes {
			for j := range node.NUMANodes[i].Devices {
				if !yield(&node.NUMANodes[i].Devices[j]) {
					return
				}
			}
		}
		for i := range node.Devices {
			if !yield(&node.Devices[i]) {
				return
			}
		}
	}
}

// zoneCells is the width of a zone's strip in the overview, in cells.
const zoneCells = 8

func rowOf(node *holdings.Node) nodeRow {
	row := nodeRow{
		Name: node.Name, Claims: claimsOf(node), CPU: leftOf(node, string(deviceclasses.CapacityCPU)), Memory: leftOf(node, string(deviceclasses.CapacityMemory)),
		Problems: node.Problems[:min(len(node.Problems), mostProblems)], MoreProblems: max(len(node.Problems)-mostProblems, 0),
	}
	signs := chart.NewSigns()
	var strips canvas.Block
	for device := range devices(node) {
		signs.Meet(device)
		if cpu := find(device.Resources, string(deviceclasses.CapacityCPU)); device.Zone && cpu != nil {
			x := strips.W
			if x > 0 {
				x++
			}
			strips.Place(signs.Bar(device, *cpu, zoneCells).Layout(zoneCells), x, 0)
		}
	}
	row.Strip = pictureOf(strips, false)
	return row
}

// leftOf returns how much of a resource is free in the node's zones, or "" if they do
// not have it.
func leftOf(node *holdings.Node, name string) string {
	r := find(node.Totals, name)
	if r == nil {
		return ""
	}
	return canvas.Printable(chart.Left(*r))
}

func (p overviewPage) main() g.Node {
	return g.Group{
		search(
			"/", "Node, claim or pod", p.Query,
			el("label", text("Show "), p.filter()),
			el("label", text("Free CPUs of one zone "), el("input", attr("type", "number"), attr("name", "cpus"), attr("min", "0"), attr("value", p.CPUs))),
		),
		plain(fmt.Sprintf("Nodes: %d. Claims: %d. Pods without a node: %d.", p.Total, p.Claims, p.Waiting)),
		g.If(len(p.Pending) > 0, p.pending()),
		p.links(),
		scrolled(
			attr("class", "nodes"),
			heads("Node", "CPUs by zone and claim", "CPU", "Memory", "Claims", "Problems"),
			el("tbody", g.Map(p.Nodes, nodeRow.row)),
		),
		p.links(),
	}
}

// filter selects which nodes are shown.
func (p overviewPage) filter() g.Node {
	choices := []struct{ value, label string }{
		{showAll, "all nodes"}, {showProblems, "with problems"}, {showHeld, "with claims"}, {showFree, "with free CPUs"},
	}
	var options g.Group
	for _, c := range choices {
		options = append(options, el("option", attr("value", c.value), g.If(p.Show == c.value, attr("selected")), text(c.label)))
	}
	return el("select", attr("name", "show"), options)
}

// pending shows the first pods without a node.
func (p overviewPage) pending() g.Node {
	return el("section",
		attr("class", "card"),
		el("h2", text("Pods without a node")),
		el("ul", g.Map(p.Pending, func(pod holdings.Pending) g.Node { return el("li", podLink(pod), text(" "+pod.Message)) })),
		g.If(p.Waiting > len(p.Pending), el("p", anchor("/pods", fmt.Sprintf("all %d", p.Waiting)))),
	)
}

func (n nodeRow) row() g.Node {
	labelled := func(name, value string) g.Node { return el("td", attr("data-label", name), text(value)) }
	return el("tr",
		rowHead(nodeLink(n.Name)),
		el("td", n.Strip.svg()),
		labelled("CPU", n.CPU),
		labelled("Memory", n.Memory),
		labelled("Claims", strconv.Itoa(n.Claims)),
		el("td", g.Map(n.Problems, problem), g.If(n.MoreProblems > 0, plain(fmt.Sprintf("and %d more", n.MoreProblems)))),
	)
}
