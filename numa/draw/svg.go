package draw

import (
	"io"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// Widths of a picture, in characters. A picture has the smallest width that makes it at
// least as wide as it is high.
const (
	narrowest = 60
	widest    = 160
	widthStep = 20
)

// pictureRows is the maximum height of a picture that shows single cores. A picture
// that would be higher has lists of CPUs instead.
const pictureRows = 120

// SVG draws the machine as a picture, with the names of PCI functions unless names is nil. It
// shows the same as Text, in the light or dark colours that its reader prefers. The picture
// needs no other files and runs no scripts.
func SVG(w io.Writer, m numa.Machine, names Names) error {
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
