package draw

import (
	"io"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// A picture is as many characters wide as makes it about as wide as high.
const (
	narrowest = 60
	widest    = 160
	widthStep = 20
)

// pictureRows is how high a picture may be before its cores are drawn as lists of CPUs.
const pictureRows = 120

// SVG draws the machine as a picture: what Text draws, with frames for lines, in the light or dark colours that its
// reader prefers. It is complete in itself and runs no script.
func SVG(w io.Writer, m numa.Machine) error { return SVGWithNames(w, m, nil) }

// SVGWithNames draws what SVG does, with the names of the PCI functions.
func SVGWithNames(w io.Writer, m numa.Machine, names Names) error {
	return canvas.WriteSVG(w, pictureSize(m, names), canvas.Caption{
		ID: "numa", Title: "NUMA topology",
		Description: headline(m) + ". Each NUMA node is a box with its memory, caches, cores and PCI devices.",
	})
}

func pictureSize(m numa.Machine, names Names) canvas.Block {
	for width := narrowest; ; width += widthStep {
		b := fit(m, names, width, pictureRows)
		if width >= widest || canvas.IsBroad(b) {
			return b
		}
	}
}
