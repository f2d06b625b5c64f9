package web

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// picture is a strip as elements of an inline SVG, in user units.
type picture struct {
	Width, Height int
	Rects         []rect
}

// rect is a bar. Its colour comes from a class, because elements may not have styles
// (Content-Security-Policy).
type rect struct {
	Class        string
	X, Y, W, H   int
	Sign         string // "" means none
	SignX, SignY int
}

// Size of a cell of a strip, in user units.
const (
	cellWidth  = 10
	cellHeight = 18
	rowHeight  = 21
)

// pictureOf returns the picture of a block, or nil if there is nothing to draw.
func pictureOf(b canvas.Block, signs bool) *picture {
	if len(b.Marks) == 0 {
		return nil
	}
	p := &picture{Width: b.W * cellWidth, Height: b.H*rowHeight - rowHeight + cellHeight}
	for _, m := range b.Marks {
		r := rect{Class: canvas.ClassName(m.Look), X: m.X * cellWidth, Y: m.Y * rowHeight, W: m.W * cellWidth, H: cellHeight}
		if signs && m.Look != canvas.Free {
			r.Sign, r.SignX, r.SignY = m.Text, r.X+r.W/2, r.Y+cellHeight-5
		}
		p.Rects = append(p.Rects, r)
	}
	return p
}

// ViewBox returns the attribute viewBox of the SVG.
func (p *picture) ViewBox() string { return fmt.Sprintf("0 0 %d %d", p.Width, p.Height) }
