package canvas

import "fmt"

// Table is a matrix with a heading for each row and column. If it is too wide, it is
// drawn in several pieces.
type Table struct {
	Corner  string
	Columns []string
	Rows    []string
	Cells   [][]string // one list for each row
}

// widths returns the width of the row headings, and that of every other column.
func (t Table) widths() (first, other int) {
	first = len(t.Corner)
	for _, row := range t.Rows {
		first = max(first, len(row))
	}
	for _, column := range t.Columns {
		other = max(other, len(column))
	}
	for _, row := range t.Cells {
		for _, cell := range row {
			other = max(other, len(cell))
		}
	}
	return first, other
}

// MinWidth returns the least width for the row headings and one column.
func (t Table) MinWidth() int {
	first, other := t.widths()
	return first + 2 + other
}

// Layout puts as many columns side by side as fit.
func (t Table) Layout(width int) Block {
	first, other := t.widths()
	perPiece := max(1, (max(width, t.MinWidth())-first)/(other+2))
	var all Block
	for from := 0; from < len(t.Columns); from += perPiece {
		y := all.H
		if y > 0 {
			y++
		}
		all.Place(t.piece(from, min(from+perPiece, len(t.Columns)), first, other), 0, y)
	}
	return all
}

// piece lays out the columns from ≤ i < to.
func (t Table) piece(from, to, first, other int) Block {
	var b Block
	line := func(head string, cells []string, look Look) {
		y := b.H
		b.Add(Mark{Look: Muted, Y: y, W: first, H: 1, Text: fmt.Sprintf("%-*s", first, head)})
		for i, cell := range cells {
			b.Add(Mark{Look: look, X: first + 2 + i*(other+2), Y: y, W: other, H: 1, Text: fmt.Sprintf("%*s", other, cell)})
		}
	}
	line(t.Corner, t.Columns[from:to], Muted)
	for i, row := range t.Cells {
		line(t.Rows[i], row[from:to], Plain)
	}
	return b
}

// Add adds one mark.
func (b *Block) Add(m Mark) {
	b.Marks = append(b.Marks, m)
	b.W, b.H = max(b.W, m.X+m.W), max(b.H, m.Y+m.H)
}
