package canvas

import (
	"strings"
	"testing"
)

func TestALongWordIsBroken(t *testing.T) {
	p := Paragraph{Indent: 2, Words: Words("ab 0123456789012345678901234567890123456789 cd", Plain)}
	b := p.Layout(26)
	want := []Mark{
		{X: 0, Y: 0, W: 2, H: 1, Text: "ab"},
		{X: 2, Y: 1, W: 24, H: 1, Text: "012345678901234567890123"},
		{X: 2, Y: 2, W: 19, H: 1, Text: "4567890123456789 cd"},
	}
	if narrow := p.Layout(3); narrow.W != b.W {
		t.Errorf("%d wide where there is no room, want %d", narrow.W, b.W)
	}
	for i := range want {
		if i >= len(b.Marks) || b.Marks[i] != want[i] {
			t.Fatalf("laid out as %+v, want %+v", b.Marks, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for bytes, want := range map[uint64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1536 << 10: "1.5 MiB", 125 << 30: "125 GiB", 1300 << 20: "1.3 GiB", 1<<64 - 1: "16 EiB",
	} {
		if got := Printable(Size(bytes)); got != want {
			t.Errorf("size(%d) = %q, want %q", bytes, got, want)
		}
	}
	for bytes, want := range map[uint64]string{0: "0", 1000: "1000", 64 << 10: "64Ki", 2 << 20: "2Mi", 1 << 30: "1Gi", 16 << 30: "16Gi"} {
		if got := PageSize(bytes); got != want {
			t.Errorf("pageSize(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestStripBreaksRowsAtUnits(t *testing.T) {
	strip := Strip{
		{Cells: 5, Look: Hue(0), Sign: 'A'},
		{Cells: 20, Look: Hue(Hues + 1), Sign: 'B'},
		{Look: Hue(2), Sign: 'C'},
		{Cells: 3, Look: Free, Sign: '.'},
	}
	for width, want := range map[int]string{
		200: "AAAAABBBBBBBBBBBBBBBBBBBB...\n",
		23:  "AAAAABBBBBBBBBBB\nBBBBBBBBB...\n",
		3:   "AAAAABBB\nBBBBBBBB\nBBBBBBBB\nB...\n",
	} {
		var out strings.Builder
		b := strip.Layout(width)
		if err := WriteText(&out, b, false); err != nil || out.String() != want {
			t.Errorf("width %d: %v, drawn as\n%swant\n%s", width, err, out.String(), want)
		}
		for _, m := range b.Marks {
			if m.Look == Hue(0) && m.Text != "A" || m.Look == Hue(1) && m.Text != "B" || m.X+m.W > b.W || m.Y >= b.H {
				t.Errorf("width %d: mark %+v in %d x %d", width, m, b.W, b.H)
			}
		}
	}
	if b := (Strip{}).Layout(80); b.H != 0 || len(b.Marks) != 0 {
		t.Errorf("a strip without cells is %+v", b)
	}
}

func TestPictureOfBarsHasTheirStyles(t *testing.T) {
	for n := range Hues {
		var out strings.Builder
		b := Strip{{Cells: 4, Look: Hue(n), Sign: '<'}}.Layout(80)
		if err := WriteSVG(&out, b, Caption{ID: "a", Title: "<", Description: "&"}); err != nil {
			t.Fatal(err)
		}
		class := ClassName(Hue(n))
		if !strings.Contains(out.String(), `<rect class="`+class+`"`) || !strings.Contains(out.String(), `<text class="sign" x="24" y="26">&lt;</text>`) ||
			strings.Count(out.String(), "\n."+class+" {") != 2 {
			t.Errorf("hue %d is drawn as\n%s", n, out.String())
		}
	}
}

// Marks have texts of objects, and a drawing has the program's own escape sequences.
func TestNoTextIsObeyedByATerminal(t *testing.T) {
	text := "\x1b[2J\u202e"
	var out strings.Builder
	b := Block{W: len(text), H: 1, Marks: []Mark{{W: len(text), H: 1, Text: text, Look: Heading}}}
	if err := WriteText(&out, b, true); err != nil || out.String() != "\x1b[1m?[2J???\x1b[0m\n" {
		t.Errorf("%v, drawn as %q", err, out.String())
	}
}
