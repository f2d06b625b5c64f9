// Package canvas arranges text, frames and bars in a grid of character cells, and writes the grid for terminals of any
// width or as a picture. What it is about is its callers' business; it writes to an io.Writer and does nothing else.
package canvas

import "slices"

// Look says what a mark is about; terminal and picture each have colours for it.
type Look int

// Looks. After these come those of Hue.
const (
	Plain Look = iota
	Heading
	SocketFrame // of a node with CPUs
	MemoryFrame // of a node without
	CacheFrame
	OtherFrame // of what has no known node
	CPUText
	IsolatedText
	MemoryText
	DeviceText
	Muted
	Free    // what nobody has, beside a hue
	Blocked // what nobody can have, beside those
	firstHue
)

// Hues is how many looks there are that only tell things apart.
const Hues = 8

// Hue is the look of the nth of several things, n ≥ 0; after Hues of them the looks repeat.
func Hue(n int) Look { return firstHue + Look(n%Hues) }

// Shape is how a mark is painted.
type Shape int

// Shapes.
const (
	Label Shape = iota // text
	Title              // text in the upper border of a frame
	Frame              // the border of a box
	Chip               // the outline of a core
	Bar                // a filled row; on a terminal its text, repeated
)

// Mark is one thing at its place in a grid of character cells, which both the terminal and the picture are made of.
type Mark struct {
	Shape      Shape
	Look       Look
	X, Y, W, H int
	Text       string // of labels and titles: W printable ASCII characters; of bars: one
}

// Block is a piece of the drawing, laid out: every mark is inside 0 ≤ X < W, 0 ≤ Y < H.
type Block struct {
	W, H  int
	Marks []Mark
}

// Place adds the other block at x, y.
func (b *Block) Place(other Block, x, y int) {
	for _, m := range other.Marks {
		m.X, m.Y = m.X+x, m.Y+y
		b.Marks = append(b.Marks, m)
	}
	b.W, b.H = max(b.W, x+other.W), max(b.H, y+other.H)
}

// Part is a piece of the drawing that can be laid out in several widths.
type Part interface {
	// MinWidth is the least width that it can be laid out in.
	MinWidth() int
	// Layout returns a block that is not wider than max(width, MinWidth).
	Layout(width int) Block
}

// Stack puts its parts below each other, with Gap empty lines between them.
type Stack struct {
	Parts []Part
	Gap   int
}

// MinWidth is that of the widest content.
func (s Stack) MinWidth() int {
	width := 0
	for _, p := range s.Parts {
		width = max(width, p.MinWidth())
	}
	return width
}

// Layout lays every part out in the width.
func (s Stack) Layout(width int) Block {
	var b Block
	for _, p := range s.Parts {
		below := p.Layout(width)
		if below.H == 0 {
			continue
		}
		y := b.H
		if y > 0 {
			y += s.Gap
		}
		b.Place(below, 0, y)
	}
	return b
}

// Box is a frame with a title around its content.
type Box struct {
	Title   string
	Look    Look
	Content Stack
}

// Cells that a frame takes: a border and a space on both sides; "+- " before and " +" after the title.
const (
	frameSides = 4
	titleSides = 5
)

// MinWidth is that of the widest content.
func (b Box) MinWidth() int {
	return max(b.Content.MinWidth()+frameSides, len(b.Title)+titleSides)
}

// Layout lays the content out, and the frame around it.
func (b Box) Layout(width int) Block {
	inside := b.Content.Layout(max(width, b.MinWidth()) - frameSides)
	framed := Block{W: max(inside.W+frameSides, len(b.Title)+titleSides), H: inside.H + 2}
	framed.Marks = append(framed.Marks, Mark{Shape: Frame, Look: b.Look, W: framed.W, H: framed.H})
	if b.Title != "" {
		framed.Marks = append(framed.Marks, Mark{Shape: Title, Look: b.titleLook(), X: 3, W: len(b.Title), H: 1, Text: b.Title})
	}
	framed.Place(inside, 2, 1)
	return framed
}

// titleLook lets the nodes stand out.
func (b Box) titleLook() Look {
	if b.Look == CacheFrame {
		return Plain
	}
	return Heading
}

// stretch widens and heightens the frame of a laid-out box.
func (b *Block) stretch(w, h int) {
	b.Marks[0].W, b.Marks[0].H = w, h
	b.W, b.H = w, h
}

// Grid puts boxes of one width side by side, in as many columns as make the drawing lowest.
type Grid []Box

// MinWidth is that of the widest content.
func (g Grid) MinWidth() int {
	width := 0
	for _, b := range g {
		width = max(width, b.MinWidth())
	}
	return width
}

// Layout tries every number of columns that fits.
func (g Grid) Layout(width int) Block {
	least := g.MinWidth()
	best, bestColumns := g.columns(1, max(width, least)), 1
	for n := 2; n <= len(g); n++ {
		column := (width - (n - 1)) / n
		if column < least {
			break
		}
		b := g.columns(n, column)
		if b.H < best.H || b.H == best.H && len(g)%n == 0 && len(g)%bestColumns != 0 {
			best, bestColumns = b, n
		}
	}
	return best
}

// columns lays the boxes out in n columns that are not wider than they have to be.
func (g Grid) columns(n, width int) Block {
	blocks := make([]Block, len(g))
	used := 0
	for i, b := range g {
		blocks[i] = b.Layout(width)
		used = max(used, blocks[i].W)
	}
	var all Block
	for row := range slices.Chunk(blocks, n) {
		height := 0
		for i := range row {
			height = max(height, row[i].H)
		}
		y := all.H
		for i := range row {
			row[i].stretch(used, height)
			all.Place(row[i], i*(used+1), y)
		}
	}
	return all
}
