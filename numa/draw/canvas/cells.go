package canvas

import (
	"bufio"
	"io"
	"strings"
)

// WriteText writes a laid-out drawing in ASCII. With colour, it adds the escape
// sequences of a terminal.
func WriteText(w io.Writer, b Block, colour bool) error {
	out := bufio.NewWriter(w)
	for _, row := range newCells(b) {
		writeRow(out, row, colour)
	}
	return out.Flush() // the first error of all writes
}

// cell is one character of a drawing.
type cell struct {
	char byte
	look Look
}

func newCells(b Block) [][]cell {
	grid := make([][]cell, b.H)
	for y := range grid {
		grid[y] = make([]cell, b.W)
		for x := range grid[y] {
			grid[y][x] = cell{char: ' '}
		}
	}
	for _, m := range b.Marks {
		paint(grid, m)
	}
	return grid
}

func paint(grid [][]cell, m Mark) {
	write := func(x, y int, text string, look Look) {
		for i := range len(text) {
			char := text[i]
			if char < ' ' || char > '~' {
				char = '?' // a terminal may obey it
			}
			grid[y][x+i] = cell{char, look}
		}
	}
	switch m.Shape {
	case Label:
		write(m.X, m.Y, m.Text, m.Look)
	case Title:
		write(m.X-1, m.Y, " "+m.Text+" ", m.Look)
	case Bar:
		write(m.X, m.Y, strings.Repeat(m.Text, m.W), m.Look)
	case Chip:
		write(m.X, m.Y, "[", Muted)
		write(m.X+m.W-1, m.Y, "]", Muted)
	case Frame:
		edge := "+" + strings.Repeat("-", m.W-2) + "+"
		write(m.X, m.Y, edge, m.Look)
		write(m.X, m.Y+m.H-1, edge, m.Look)
		for y := m.Y + 1; y < m.Y+m.H-1; y++ {
			write(m.X, y, "|", m.Look)
			write(m.X+m.W-1, y, "|", m.Look)
		}
	}
}

// escape returns the terminal's escape sequence for a look, or "" if it has none.
func escape(l Look) string {
	switch l {
	case Heading:
		return "\x1b[1m" // bold
	case CacheFrame, Muted, OtherFrame:
		return "\x1b[2m" // faint
	case MemoryFrame, MemoryText:
		return "\x1b[32m" // green
	case DeviceText:
		return "\x1b[36m" // cyan
	case IsolatedText, Blocked:
		return "\x1b[33m" // yellow
	case Free:
		return "\x1b[2m" // faint
	}
	if l >= firstHue {
		return [Hues]string{"\x1b[34m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[31m", "\x1b[36m", "\x1b[93m", "\x1b[95m"}[l-firstHue]
	}
	return ""
}

// EscapeEnd ends the escape sequence of a look.
const EscapeEnd = "\x1b[0m"

// writeRow writes a row without the spaces at its end.
func writeRow(out *bufio.Writer, row []cell, colour bool) {
	for len(row) > 0 && row[len(row)-1].char == ' ' {
		row = row[:len(row)-1]
	}
	current := ""
	for _, c := range row {
		if next := escape(c.look); colour && next != current {
			if current != "" {
				_, _ = out.WriteString(EscapeEnd)
			}
			_, _ = out.WriteString(next)
			current = next
		}
		_ = out.WriteByte(c.char)
	}
	if current != "" {
		_, _ = out.WriteString(EscapeEnd)
	}
	_ = out.WriteByte('\n')
}
