package draw

import "fmt"

// table is a matrix with a heading for each row and column. One that is too wide is drawn in several pieces.
type table struct {
	corner  string
	columns []string
	rows    []string
	cells   [][]string // a list for each row
}

// widths are those of the row headings and of every other column.
func (t table) widths() (first, other int) {
	first = len(t.corner)
	for _, row := range t.rows {
		first = max(first, len(row))
	}
	for _, column := range t.columns {
		other = max(other, len(column))
	}
	for _, row := range t.cells {
		for _, cell := range row {
			other = max(other, len(cell))
		}
	}
	return first, other
}

func (t table) minWidth() int {
	first, other := t.widths()
	return first + 2 + other
}

func (t table) layout(width int) block {
	first, other := t.widths()
	perPiece := max(1, (max(width, t.minWidth())-first)/(other+2))
	var all block
	for from := 0; from < len(t.columns); from += perPiece {
		y := all.h
		if y > 0 {
			y++
		}
		all.place(t.piece(from, min(from+perPiece, len(t.columns)), first, other), 0, y)
	}
	return all
}

// piece is the columns from ≤ i < to.
func (t table) piece(from, to, first, other int) block {
	var b block
	line := func(head string, cells []string, look look) {
		y := b.h
		b.add(mark{look: muted, y: y, w: first, h: 1, text: fmt.Sprintf("%-*s", first, head)})
		for i, cell := range cells {
			b.add(mark{look: look, x: first + 2 + i*(other+2), y: y, w: other, h: 1, text: fmt.Sprintf("%*s", other, cell)})
		}
	}
	line(t.corner, t.columns[from:to], muted)
	for i, row := range t.cells {
		line(t.rows[i], row[from:to], plain)
	}
	return b
}

func (b *block) add(m mark) {
	b.marks = append(b.marks, m)
	b.w, b.h = max(b.w, m.x+m.w), max(b.h, m.y+m.h)
}
