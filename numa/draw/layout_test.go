package draw

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// TestNothingIsDrawnOverAnother looks at every cell: what is in it is text, a bracket of
// a core, or a line of a frame.
func TestNothingIsDrawnOverAnother(t *testing.T) {
	sample.Each(t, func(t *testing.T, machine numa.Machine) {
		for _, detail := range []detail{everyCore, coresByL3} {
			for _, width := range []int{MinWidth, DefaultWidth, 200} {
				checkCells(t, arrange(machine, nil, detail).Layout(width))
			}
		}
	})
}

func checkCells(t *testing.T, b canvas.Block) {
	t.Helper()
	used := make([]string, b.W*b.H)
	use := func(m canvas.Mark, x, y int, by string) {
		if x < 0 || y < 0 || x >= b.W || y >= b.H {
			t.Fatalf("%+v is outside of %d x %d", m, b.W, b.H)
		}
		if at := y*b.W + x; used[at] == "" || used[at] == "frame" && m.Shape == canvas.Title && y == m.Y {
			used[at] = by
		} else {
			t.Errorf("%+v is over %s", m, used[at])
		}
	}
	for _, m := range b.Marks {
		switch m.Shape {
		case canvas.Label, canvas.Title:
			for x := range m.W {
				use(m, m.X+x, m.Y, m.Text)
			}
			if m.W != len(m.Text) || m.H != 1 {
				t.Errorf("%+v is of another size than its text", m)
			}
		case canvas.Chip:
			use(m, m.X, m.Y, "chip")
			use(m, m.X+m.W-1, m.Y, "chip")
		case canvas.Frame:
			for x := range m.W {
				use(m, m.X+x, m.Y, "frame")
				use(m, m.X+x, m.Y+m.H-1, "frame")
			}
			for y := 1; y < m.H-1; y++ {
				use(m, m.X, m.Y+y, "frame")
				use(m, m.X+m.W-1, m.Y+y, "frame")
			}
		}
	}
}
