package draw

import (
	"bufio"
	"io"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
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
	Width  int  // no line is longer; DefaultWidth if 0, MinWidth if less
	Colour bool // with the escape sequences of a terminal
}

// Text draws the machine in ASCII.
func Text(w io.Writer, m numa.Machine, o TextOptions) error {
	width := o.Width
	if width == 0 {
		width = DefaultWidth
	}
	c := newCanvas(fit(m, max(width, MinWidth), terminalRows))
	out := bufio.NewWriter(w)
	for _, row := range c {
		writeRow(out, row, o.Colour)
	}
	return out.Flush() // the first error of all writes
}

// fit lays the machine out in as much detail as the rows allow.
func fit(m numa.Machine, width, rows int) block {
	b := arrange(m, everyCore).layout(width)
	if b.h > rows {
		b = arrange(m, coresByL3).layout(width)
	}
	return b
}

// cell is one character of a canvas.
type cell struct {
	char byte
	look look
}

func newCanvas(b block) [][]cell {
	canvas := make([][]cell, b.h)
	for y := range canvas {
		canvas[y] = make([]cell, b.w)
		for x := range canvas[y] {
			canvas[y][x] = cell{char: ' '}
		}
	}
	for _, m := range b.marks {
		paint(canvas, m)
	}
	return canvas
}

func paint(canvas [][]cell, m mark) {
	write := func(x, y int, text string, look look) {
		for i := range len(text) {
			canvas[y][x+i] = cell{text[i], look}
		}
	}
	switch m.shape {
	case label:
		write(m.x, m.y, m.text, m.look)
	case title:
		write(m.x-1, m.y, " "+m.text+" ", m.look)
	case chip:
		write(m.x, m.y, "[", muted)
		write(m.x+m.w-1, m.y, "]", muted)
	case frame:
		edge := "+" + strings.Repeat("-", m.w-2) + "+"
		write(m.x, m.y, edge, m.look)
		write(m.x, m.y+m.h-1, edge, m.look)
		for y := m.y + 1; y < m.y+m.h-1; y++ {
			write(m.x, y, "|", m.look)
			write(m.x+m.w-1, y, "|", m.look)
		}
	}
}

// escape is the terminal's sequence for a look; "" is none.
func escape(l look) string {
	switch l {
	case heading:
		return "\x1b[1m" // bold
	case cacheFrame, muted, otherFrame:
		return "\x1b[2m" // faint
	case memoryFrame, memoryText:
		return "\x1b[32m" // green
	case deviceText:
		return "\x1b[36m" // cyan
	case isolatedText:
		return "\x1b[33m" // yellow
	}
	return ""
}

const escapeEnd = "\x1b[0m"

// writeRow leaves out the spaces at the end.
func writeRow(out *bufio.Writer, row []cell, colour bool) {
	for len(row) > 0 && row[len(row)-1].char == ' ' {
		row = row[:len(row)-1]
	}
	current := ""
	for _, c := range row {
		if next := escape(c.look); colour && next != current {
			if current != "" {
				_, _ = out.WriteString(escapeEnd)
			}
			_, _ = out.WriteString(next)
			current = next
		}
		_ = out.WriteByte(c.char)
	}
	if current != "" {
		_, _ = out.WriteString(escapeEnd)
	}
	_ = out.WriteByte('\n')
}
