package draw

import (
	"io"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// Bounds of the width of a drawing, in characters.
const (
	MinWidth     = 40
	DefaultWidth = 80
)

// terminalRows is how high a drawing may be before its cores are drawn as lists of CPUs.
const terminalRows = 90

// TextOptions say how the drawing looks.
type TextOptions struct {
	Width  int   // no line is longer; DefaultWidth if 0, MinWidth if less
	Colour bool  // with the escape sequences of a terminal
	Names  Names // of PCI functions; nil draws none
}

// Text draws the machine in ASCII.
func Text(w io.Writer, m numa.Machine, o TextOptions) error {
	width := o.Width
	if width == 0 {
		width = DefaultWidth
	}
	return canvas.WriteText(w, fit(m, o.Names, max(width, MinWidth), terminalRows), o.Colour)
}

// fit lays the machine out in as much detail as the rows allow.
func fit(m numa.Machine, names Names, width, rows int) canvas.Block {
	b := arrange(m, names, everyCore).Layout(width)
	if b.H > rows {
		b = arrange(m, names, coresByL3).Layout(width)
	}
	return b
}
