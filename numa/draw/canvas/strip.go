package canvas

// Run is consecutive cells of a strip that look the same.
type Run struct {
	Cells int // ≥ 0
	Look  Look
	Sign  byte // printable ASCII, which a terminal shows in each cell
}

// Strip is a sequence of cells in rows. Each run is a Bar.
type Strip []Run

// A row of a strip is as long as possible, but has at most 64 cells. Its length is a
// multiple of eight, so that people can count the cells.
const (
	longestRow = 64
	rowUnit    = 8
)

// MinWidth returns the least width for a row: eight cells, or all of them if there are
// fewer.
func (s Strip) MinWidth() int { return min(s.cells(), rowUnit) }

func (s Strip) cells() (sum int) {
	for _, run := range s {
		sum += run.Cells
	}
	return sum
}

// Layout breaks the strip into rows.
func (s Strip) Layout(width int) Block {
	row := min(width, longestRow)
	if row >= rowUnit {
		row -= row % rowUnit
	}
	row = max(row, s.MinWidth(), 1)
	var b Block
	x, y := 0, 0
	for _, run := range s {
		for left := run.Cells; left > 0; {
			if x == row {
				x, y = 0, y+1
			}
			part := min(left, row-x)
			b.Add(Mark{Shape: Bar, Look: run.Look, X: x, Y: y, W: part, H: 1, Text: string(rune(run.Sign))})
			x, left = x+part, left-part
		}
	}
	return b
}
