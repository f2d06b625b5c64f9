package canvas

import (
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Word is text that is broken only if it is longer than a line.
type Word struct {
	Text  string
	Look  Look
	Glued bool // no space before it
}

// longestWord limits the width that a paragraph requires. Longer words are broken.
const longestWord = 24

// Words splits text at its spaces.
func Words(text string, look Look) (list []Word) {
	for field := range strings.FieldsSeq(text) {
		list = append(list, Word{Text: Printable(field), Look: look})
	}
	return list
}

// CPUWords returns a list of CPUs, which may be broken after each comma.
func CPUWords(cpus cpuset.Set, look Look) (list []Word) {
	for span := range strings.SplitAfterSeq(cpus.String(), ",") {
		list = append(list, Word{Text: span, Look: look, Glued: len(list) > 0})
	}
	return list
}

// Printable replaces characters that a terminal may understand as a command. Names of
// drivers and interfaces may contain any characters.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if string(r) == Joint {
			return ' '
		}
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// Paragraph is words in lines. All lines except the first are indented.
type Paragraph struct {
	Words  []Word
	Indent int
}

// Text returns a paragraph with a single look.
func Text(content string, look Look) Paragraph { return Paragraph{Words: Words(content, look)} }

// MinWidth returns the least width for the longest word, or for a piece of it if it is
// broken.
func (p Paragraph) MinWidth() int {
	width := 0
	for i, w := range p.Words {
		// In the worst case, each word is on its own line.
		width = max(width, p.start(i)+min(len(w.Text), longestWord))
	}
	return width
}

// Layout breaks the paragraph into lines.
func (p Paragraph) Layout(width int) Block {
	width = max(width, p.MinWidth())
	var b Block
	x, y := 0, 0
	for _, w := range p.Words {
		space := 1
		if w.Glued || x == 0 || x == p.Indent && y > 0 {
			space = 0
		}
		if start := p.start(y); x > start && x+space+len(w.Text) > width {
			x, y, space = p.start(y+1), y+1, 0
		}
		for rest := w.Text; rest != ""; {
			fit := min(len(rest), width-x-space)
			b.write(Mark{Look: w.Look, X: x + space, Y: y, W: fit, H: 1, Text: rest[:fit]})
			x, rest = x+space+fit, rest[fit:]
			if rest != "" {
				x, y, space = p.start(y+1), y+1, 0
			}
		}
	}
	return b
}

// start returns the column in which a line starts.
func (p Paragraph) start(line int) int {
	if line == 0 {
		return 0
	}
	return p.Indent
}

// write adds a label. It extends the label before it if that has the same look and is
// at most one space away.
func (b *Block) write(m Mark) {
	b.W, b.H = max(b.W, m.X+m.W), max(b.H, m.Y+m.H)
	if last := len(b.Marks) - 1; last >= 0 {
		before := &b.Marks[last]
		gap := m.X - before.X - before.W
		if before.Look == m.Look && before.Y == m.Y && gap <= 1 {
			before.Text += strings.Repeat(" ", gap) + m.Text
			before.W = len(before.Text)
			return
		}
	}
	b.Marks = append(b.Marks, m)
}
