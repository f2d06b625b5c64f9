package web

import (
	"net/http"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// nodePage is the page of a node.
type nodePage struct {
	*holdings.Node
	Sums   []string
	Places []place
	Claims []claimRow
}

// place is a NUMA node, or all devices without a known NUMA node.
type place struct {
	Title   string
	Devices []deviceView
}

// deviceView is a device with a strip for each of its resources, or with a single cell.
type deviceView struct {
	*holdings.Device
	Cell       *picture
	Strips     []strip
	Attributes []string
}

type strip struct {
	Label, Left string
	Picture     *picture
}

// claimRow is a claim with its sign.
type claimRow struct {
	Sign *picture
	Key  string
	holdings.Claim
	Holds []string
}

// widestStrip is the maximum width of a strip on the page of a node, in cells.
const widestStrip = 32

func (s *server) node(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	node := now.cluster.Node(r.PathValue("name"))
	if node == nil {
		s.message(w, r, http.StatusNotFound, "There is no node "+r.PathValue("name")+".")
		return
	}
	page := nodePage{Node: node}
	for _, total := range node.Totals {
		page.Sums = append(page.Sums, canvas.Printable(chart.Label(total.Name)+" "+chart.Left(total)))
	}
	signs := chart.NewSigns()
	for i := range node.NUMANodes {
		at := &node.NUMANodes[i]
		page.Places = append(page.Places, place{chart.Title(at), views(signs, at.Devices)})
	}
	if len(node.Devices) > 0 {
		page.Places = append(page.Places, place{chart.TitleOfOthers(node.Devices), views(signs, node.Devices)})
	}
	for _, key := range signs.Claims() {
		if claim := now.cluster.Claim(key); claim != nil {
			page.Claims = append(page.Claims, claimRow{pictureOf(signs.Sample(key).Layout(1), true), key, *claim, holds(claim, node.Name)})
		}
	}
	s.render(w, r, now, http.StatusOK, "node", node.Name, page)
}

func views(signs *chart.Signs, list []holdings.Device) (all []deviceView) {
	for i := range list {
		device := &list[i]
		signs.Meet(device)
		view := deviceView{Device: device}
		for name, value := range device.Attributes {
			view.Attributes = append(view.Attributes, name+" = "+value)
		}
		slices.Sort(view.Attributes)
		for _, r := range device.Resources {
			view.Strips = append(view.Strips, strip{
				chart.Label(r.Name), canvas.Printable(chart.Left(r)), pictureOf(signs.Strip(device, r).Layout(widestStrip), true),
			})
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
