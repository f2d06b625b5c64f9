// Package chart draws who holds what of a cluster's devices, for terminals of any
// width and as a picture. It writes to an io.Writer and does nothing else.
package chart

import (
	"fmt"
	"io"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// mostZones is how many NUMA nodes are drawn one by one; of a cluster with more
// every node is a line.
const mostZones = 24

// Text draws in ASCII. What is in colour is also told apart by letters.
func Text(w io.Writer, c holdings.Cluster, o draw.TextOptions) error {
	width := o.Width
	if width == 0 {
		width = draw.DefaultWidth
	}
	return canvas.WriteText(w, arrange(c).Layout(max(width, draw.MinWidth)), o.Colour)
}

// pictureWidth is that of a picture, in characters.
const pictureWidth = 110

// SVG draws the same as a picture, in the light or dark colours that its reader
// prefers. It is complete in itself and runs no script.
func SVG(w io.Writer, c holdings.Cluster) error {
	return canvas.WriteSVG(w, arrange(c).Layout(pictureWidth), canvas.Caption{
		ID: "held", Title: "Who holds what",
		Description: fmt.Sprintf("%s. Each NUMA node is a box with strips of its CPUs, memory and hugepages, and its devices; a letter and a colour is a claim.", headline(c)),
	})
}

func headline(c holdings.Cluster) string {
	return canvas.Count(len(c.Nodes), "node") + ", " + canvas.Count(len(c.Claims), "claim") + ", " + canvas.Count(len(c.Pending), "pod") + " without a node"
}

// arrange is the whole drawing.
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
		all.Parts = append(all.Parts, overview(c.Nodes), canvas.Text("# held, . free, ! problems: name the node for more", canvas.Muted))
	} else {
		for i := range c.Nodes {
			all.Parts = append(all.Parts, node(c, &c.Nodes[i]))
		}
	}
	if len(c.Elsewhere) > 0 {
		s := scene{NewSigns()}
		parts := s.devices(c.Elsewhere)
		all.Parts = append(all.Parts, canvas.Stack{Parts: []canvas.Part{
			canvas.Box{Title: "devices of no one node", Look: canvas.OtherFrame, Content: canvas.Stack{Parts: parts}}, s.legend(c),
		}})
	}
	all.Parts = append(all.Parts, waiting(c.Pending))
	return all
}

// mostWaiting pods are named.
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
