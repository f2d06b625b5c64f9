// Package chart draws which claims hold which devices of a cluster, for terminals of
// any width and as a picture. It writes only to an io.Writer and has no other effects.
package chart

import (
	"fmt"
	"io"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// mostZones is the maximum number of NUMA nodes that are drawn one by one. If a cluster
// has more, the drawing has one line per node.
const mostZones = 24

// Text draws the holdings in ASCII. Each claim has a letter and, on request, a colour.
func Text(w io.Writer, c holdings.Cluster, o draw.TextOptions) error {
	width := o.Width
	if width == 0 {
		width = draw.DefaultWidth
	}
	return canvas.WriteText(w, arrange(c).Layout(max(width, draw.MinWidth)), o.Colour)
}

// pictureWidth is the width of a picture, in characters.
const pictureWidth = 110

// SVG draws the same as a picture, in the light or dark colours that its reader
// prefers. The picture needs no other files and runs no scripts.
func SVG(w io.Writer, c holdings.Cluster) error {
	return canvas.WriteSVG(w, arrange(c).Layout(pictureWidth), canvas.Caption{
		ID: "held", Title: "What claims hold",
		Description: fmt.Sprintf("%s. Each NUMA node is a box with its devices, and bars for its CPUs, memory and hugepages. Each claim has a letter and a colour.", headline(c)),
	})
}

func headline(c holdings.Cluster) string {
	return canvas.Count(len(c.Nodes), "node") + ", " + canvas.Count(len(c.Claims), "claim") + ", " + canvas.Count(len(c.Pending), "pod") + " without a node"
}

// arrange returns the whole drawing.
func arrange(c holdings.Cluster) canvas.Part {
	all := canvas.Stack{Gap: 1}
	zones := 0
	for i := range c.Nodes {
		zones += len(c.Nodes[i].NUMANodes)
	}
	if len(c.Nodes) != 1 {
		all.Parts = append(all.Parts, canvas.Text(headline(c), canvas.Heading))
	}
	if zones > mostZones && len(c.Nodes) > 1 {
		all.Parts = append(all.Parts, overview(c.Nodes), canvas.Text("# held, . free, ! problems. To see one node, name it.", canvas.Muted))
	} else {
		for i := range c.Nodes {
			all.Parts = append(all.Parts, node(c, &c.Nodes[i]))
		}
	}
	if len(c.Elsewhere) > 0 {
		s := scene{NewSigns()}
		parts := s.devices(c.Elsewhere)
		all.Parts = append(all.Parts, canvas.Stack{Parts: []canvas.Part{
			canvas.Box{Title: "Devices that belong to no single node", Look: canvas.OtherFrame, Content: canvas.Stack{Parts: parts}}, s.legend(c),
		}})
	}
	all.Parts = append(all.Parts, waiting(c.Pending))
	return all
}

// mostWaiting is the maximum number of pods that are named.
const mostWaiting = 10

func waiting(pods []holdings.Pending) canvas.Part {
	var lines canvas.Stack
	for _, pod := range pods[:min(len(pods), mostWaiting)] {
		text := fmt.Sprintf("%s/%s has no node", pod.Namespace, pod.Name)
		if pod.Message != "" {
			text += ": " + pod.Message
		}
		lines.Parts = append(lines.Parts, canvas.Paragraph{Words: canvas.Words(text, canvas.IsolatedText), Indent: 2})
	}
	if more := len(pods) - mostWaiting; more > 0 {
		lines.Parts = append(lines.Parts, canvas.Text(canvas.Count(more, "more pod")+" without a node", canvas.IsolatedText))
	}
	return lines
}
