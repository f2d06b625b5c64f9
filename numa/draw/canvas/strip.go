package canvas

// Run is cells of a strip that belong together.
type Run struct {
	Cells int // ≥ 0
	Look  Look
	Sign  byte // printable ASCII: what a terminal shows in each cell
}

// Strip is cells in rows, Bars one after the other.
type Strip []Run

// A row of a strip is as long as fits, up to 64 cells, and of eight cells or a multiple of that: they are counted.
const (
	longestRow = 64
	rowUnit    = 8
)

// MinWidth is that of a row of one unit.
func (s Strip) MinWidth() int { return min(s.cells(), rowUnit) }

func (s Strip) cells() (sum int) {
	for _, run := range s {
		sum += run.Cells
	}
	return sum
}

// Layout breaks the rows.
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
