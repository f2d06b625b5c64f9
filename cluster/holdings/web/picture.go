package web

import (
	"fmt"

	g "maragu.dev/gomponents"

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

// svg returns the picture as an element, or nil if there is none.
func (p *picture) svg() g.Node {
	if p == nil {
		return nil
	}
	return el("svg",
		attr("class", "strip"),
		attr("viewBox", fmt.Sprintf("0 0 %d %d", p.Width, p.Height)), number("width", p.Width), number("height", p.Height),
		attr("aria-hidden", "true"),
		g.Map(p.Rects, func(r rect) g.Node { return g.Group{r.bar(r.Class, number("rx", 2)), r.sign()} }),
	)
}

// before returns the picture and a space, or nil if there is none.
func (p *picture) before() g.Node { return g.If(p != nil, g.Group{p.svg(), text(" ")}) }

// bar returns the rectangle.
func (r rect) bar(class string, more ...g.Node) g.Node {
	return shape("rect", append([]g.Node{attr("class", class), number("x", r.X), number("y", r.Y), number("width", r.W), number("height", r.H)}, more...)...)
}

// sign returns the sign in the rectangle, or nil if there is none.
func (r rect) sign() g.Node { return g.If(r.Sign != "", label("sign", r.SignX, r.SignY, r.Sign)) }

// label returns a text of an SVG.
func label(class string, x, y int, content string) g.Node {
	return el("text", attr("class", class), number("x", x), number("y", y), text(content))
}
