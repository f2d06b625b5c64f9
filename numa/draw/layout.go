package draw

import "slices"

// look says what a mark is about; terminal and picture each have colours for it.
type look int

const (
	plain look = iota
	heading
	socketFrame // of a node with CPUs
	memoryFrame // of a node without
	cacheFrame
	otherFrame // of what has no known node
	cpuText
	isolatedText
	memoryText
	deviceText
	muted
)

// shape is how a mark is painted.
type shape int

const (
	label shape = iota // text
	title              // text in the upper border of a frame
	frame              // the border of a box
	chip               // the outline of a core
)

// mark is one thing at its place in a grid of character cells, which both the terminal and the picture are made of.
type mark struct {
	shape      shape
	look       look
	x, y, w, h int
	text       string // of labels and titles: w printable ASCII characters
}

// block is a piece of the drawing, laid out: every mark is inside 0 ≤ x < w, 0 ≤ y < h.
type block struct {
	w, h  int
	marks []mark
}

// place adds the other block at x, y.
func (b *block) place(other block, x, y int) {
	for _, m := range other.marks {
		m.x, m.y = m.x+x, m.y+y
		b.marks = append(b.marks, m)
	}
	b.w, b.h = max(b.w, x+other.w), max(b.h, y+other.h)
}

// part is a piece of the drawing that can be laid out in several widths.
type part interface {
	minWidth() int
	layout(width int) block // not wider than max(width, minWidth)
}

// stack puts its parts below each other, with gap empty lines between them.
type stack struct {
	parts []part
	gap   int
}

func (s stack) minWidth() int {
	width := 0
	for _, p := range s.parts {
		width = max(width, p.minWidth())
	}
	return width
}

func (s stack) layout(width int) block {
	var b block
	for _, p := range s.parts {
		below := p.layout(width)
		if below.h == 0 {
			continue
		}
		y := b.h
		if y > 0 {
			y += s.gap
		}
		b.place(below, 0, y)
	}
	return b
}

// box is a frame with a title around its content.
type box struct {
	title   string
	look    look
	content stack
}

// Cells that a frame takes: a border and a space on both sides; "+- " before and " +" after the title.
const (
	frameSides = 4
	titleSides = 5
)

func (b box) minWidth() int {
	return max(b.content.minWidth()+frameSides, len(b.title)+titleSides)
}

func (b box) layout(width int) block {
	inside := b.content.layout(max(width, b.minWidth()) - frameSides)
	framed := block{w: max(inside.w+frameSides, len(b.title)+titleSides), h: inside.h + 2}
	framed.marks = append(framed.marks, mark{shape: frame, look: b.look, w: framed.w, h: framed.h})
	if b.title != "" {
		framed.marks = append(framed.marks, mark{shape: title, look: b.titleLook(), x: 3, w: len(b.title), h: 1, text: b.title})
	}
	framed.place(inside, 2, 1)
	return framed
}

// titleLook lets the nodes stand out.
func (b box) titleLook() look {
	if b.look == cacheFrame {
		return plain
	}
	return heading
}

// stretch widens and heightens the frame of a laid-out box.
func (b *block) stretch(w, h int) {
	b.marks[0].w, b.marks[0].h = w, h
	b.w, b.h = w, h
}

// grid puts boxes of one width side by side, in as many columns as make the drawing lowest.
type grid []box

func (g grid) minWidth() int {
	width := 0
	for _, b := range g {
		width = max(width, b.minWidth())
	}
	return width
}

func (g grid) layout(width int) block {
	least := g.minWidth()
	best, bestColumns := g.columns(1, max(width, least)), 1
	for n := 2; n <= len(g); n++ {
		column := (width - (n - 1)) / n
		if column < least {
			break
		}
		b := g.columns(n, column)
		if b.h < best.h || b.h == best.h && len(g)%n == 0 && len(g)%bestColumns != 0 {
			best, bestColumns = b, n
		}
	}
	return best
}

// columns lays the boxes out in n columns that are not wider than they have to be.
func (g grid) columns(n, width int) block {
	blocks := make([]block, len(g))
	used := 0
	for i, b := range g {
		blocks[i] = b.layout(width)
		used = max(used, blocks[i].w)
	}
	var all block
	for row := range slices.Chunk(blocks, n) {
		height := 0
		for i := range row {
			height = max(height, row[i].h)
		}
		y := all.h
		for i := range row {
			row[i].stretch(used, height)
			all.place(row[i], i*(used+1), y)
		}
	}
	return all
}
