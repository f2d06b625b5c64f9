package draw

import (
	"io"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// Limits for the width of a drawing, in characters.
const (
	MinWidth     = 40
	DefaultWidth = 80
)

// terminalRows is the maximum height of a drawing that shows single cores. A drawing
// that would be higher has lists of CPUs instead.
const terminalRows = 90

// TextOptions control how a drawing looks.
type TextOptions struct {
	Width  int   // maximum length of a line; 0 means DefaultWidth, and the least is MinWidth
	Colour bool  // use the escape sequences of a terminal
	Names  Names // names of PCI functions; nil draws none
}

// Text draws the machine in ASCII.
func Text(w io.Writer, m numa.Machine, o TextOptions) error {
	width := o.Width
	if width == 0 {
		width = DefaultWidth
	}
	return canvas.WriteText(w, fit(m, o.Names, max(width, MinWidth), terminalRows), o.Colour)
}

// fit lays out the machine in as much detail as fits into the rows.
func fit(m numa.Machine, names Names, width, rows int) canvas.Block {
	b := arrange(m, names, everyCore).Layout(width)
	if b.H > rows {
		b = arrange(m, names, coresByL3).Layout(width)
	}
	return b
}
