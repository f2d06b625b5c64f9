package draw

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// TestNothingIsDrawnOverAnother looks at every cell: what is in it is text, a bracket of a core, or a line of a frame.
func TestNothingIsDrawnOverAnother(t *testing.T) {
	everywhere(t, func(t *testing.T, machine numa.Machine) {
		for _, detail := range []detail{everyCore, coresByL3} {
			for _, width := range []int{MinWidth, DefaultWidth, 200} {
				checkCells(t, arrange(machine, detail).layout(width))
			}
		}
	})
}

func checkCells(t *testing.T, b block) {
	t.Helper()
	used := make([]string, b.w*b.h)
	use := func(m mark, x, y int, by string) {
		if x < 0 || y < 0 || x >= b.w || y >= b.h {
			t.Fatalf("%+v is outside of %d x %d", m, b.w, b.h)
		}
		if at := y*b.w + x; used[at] == "" || used[at] == "frame" && m.shape == title && y == m.y {
			used[at] = by
		} else {
			t.Errorf("%+v is over %s", m, used[at])
		}
	}
	for _, m := range b.marks {
		switch m.shape {
		case label, title:
			for x := range m.w {
				use(m, m.x+x, m.y, m.text)
			}
			if m.w != len(m.text) || m.h != 1 {
				t.Errorf("%+v is of another size than its text", m)
			}
		case chip:
			use(m, m.x, m.y, "chip")
			use(m, m.x+m.w-1, m.y, "chip")
		case frame:
			for x := range m.w {
				use(m, m.x+x, m.y, "frame")
				use(m, m.x+x, m.y+m.h-1, "frame")
			}
			for y := 1; y < m.h-1; y++ {
				use(m, m.x, m.y+y, "frame")
				use(m, m.x+m.w-1, m.y+y, "frame")
			}
		}
	}
}

func TestALongWordIsBroken(t *testing.T) {
	p := paragraph{indent: 2, words: words("ab 0123456789012345678901234567890123456789 cd", plain)}
	b := p.layout(26)
	want := []mark{
		{x: 0, y: 0, w: 2, h: 1, text: "ab"},
		{x: 2, y: 1, w: 24, h: 1, text: "012345678901234567890123"},
		{x: 2, y: 2, w: 19, h: 1, text: "4567890123456789 cd"},
	}
	if narrow := p.layout(3); narrow.w != b.w {
		t.Errorf("%d wide where there is no room, want %d", narrow.w, b.w)
	}
	for i := range want {
		if i >= len(b.marks) || b.marks[i] != want[i] {
			t.Fatalf("laid out as %+v, want %+v", b.marks, want)
		}
	}
}
