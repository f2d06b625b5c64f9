// Package canvas arranges text, frames and bars in a grid of character cells, and
// writes the grid for terminals of any width or as a picture. It does not know what the
// drawing means, writes only to an io.Writer, and has no other effects.
package canvas

import "slices"

// Look says what a mark stands for. Terminals and pictures have a colour for each look.
type Look int

// Looks. The looks of Hue come after them.
const (
	Plain Look = iota
	Heading
	SocketFrame // the frame of a node with CPUs
	MemoryFrame // the frame of a node without CPUs
	CacheFrame
	OtherFrame // the frame of things without a known node
	CPUText
	IsolatedText
	MemoryText
	DeviceText
	Muted
	Free    // a free part of a bar
	Blocked // a part of a bar that cannot be used
	firstHue
)

// Hues is the number of looks whose only purpose is to tell things apart.
const Hues = 8

// Hue returns the look of the nth of several things, n ≥ 0. The looks repeat after Hues
// things.
func Hue(n int) Look { return firstHue + Look(n%Hues) }

// Shape is how a mark is painted.
type Shape int

// Shapes.
const (
	Label Shape = iota // text
	Title              // text in the upper border of a frame
	Frame              // the border of a box
	Chip               // the outline of a core
	Bar                // a filled row; on a terminal, its text is repeated
)

// Mark is one thing at its place in a grid of character cells. Both the drawing on a
// terminal and the picture consist of marks.
type Mark struct {
	Shape      Shape
	Look       Look
	X, Y, W, H int
	Text       string // of labels and titles: W printable ASCII characters; of bars: one character
}

// Block is a piece of a drawing that is laid out.
// Every mark is inside 0 ≤ X < W, 0 ≤ Y < H.
type Block struct {
	W, H  int
	Marks []Mark
}

// Place adds the other block at column x and row y.
func (b *Block) Place(other Block, x, y int) {
	for _, m := range other.Marks {
		m.X, m.Y = m.X+x, m.Y+y
		b.Marks = append(b.Marks, m)
	}
	b.W, b.H = max(b.W, x+other.W), max(b.H, y+other.H)
}

// Part is a piece of a drawing that can be laid out in different widths.
type Part interface {
	// MinWidth returns the least width in which the part can be laid out.
	MinWidth() int
	// Layout returns a block that is not wider than max(width, MinWidth).
	Layout(width int) Block
}

// Stack puts its parts below each other, with Gap empty lines between them.
type Stack struct {
	Parts []Part
	Gap   int
}

// MinWidth returns the least width for the widest part.
func (s Stack) MinWidth() int {
	width := 0
	for _, p := range s.Parts {
		width = max(width, p.MinWidth())
	}
	return width
}

// Layout lays out every part in this width.
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

// Box is a frame with a title and content.
type Box struct {
	Title   string
	Look    Look
	Content Stack
}

// Characters that a frame needs in a row: a border and a space on each side, or "+- "
// before the title and " +" after it.
const (
	frameSides = 4
	titleSides = 5
)

// MinWidth returns the least width for the content and the title.
func (b Box) MinWidth() int {
	return max(b.Content.MinWidth()+frameSides, len(b.Title)+titleSides)
}

// Layout lays out the content and the frame around it.
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

// titleLook returns a look that makes the titles of nodes stand out.
func (b Box) titleLook() Look {
	if b.Look == CacheFrame {
		return Plain
	}
	return Heading
}

// stretch makes the frame of a laid-out box wider and higher.
func (b *Block) stretch(w, h int) {
	b.Marks[0].W, b.Marks[0].H = w, h
	b.W, b.H = w, h
}

// Grid puts boxes of equal width side by side, in the number of columns that makes the
// drawing lowest.
type Grid []Box

// MinWidth returns the least width for the widest box.
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

// columns lays out the boxes in n columns, which are no wider than necessary.
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
