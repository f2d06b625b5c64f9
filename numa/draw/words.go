package draw

import (
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// word is text that is not broken if it fits in a line.
type word struct {
	text  string
	look  look
	glued bool // no space before it
}

// longestWord bounds what a paragraph asks for: longer words are broken.
const longestWord = 24

// words splits text at its spaces.
func words(text string, look look) (list []word) {
	for field := range strings.FieldsSeq(text) {
		list = append(list, word{text: printable(field), look: look})
	}
	return list
}

// cpuWords is a list of CPUs, which can be broken after each comma.
func cpuWords(cpus cpuset.Set, look look) (list []word) {
	for span := range strings.SplitAfterSeq(cpus.String(), ",") {
		list = append(list, word{text: span, look: look, glued: len(list) > 0})
	}
	return list
}

// printable replaces what a terminal may take for a command: names of drivers and interfaces are anybody's.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if string(r) == joint {
			return ' '
		}
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// paragraph is words in lines; all lines but the first are indented.
type paragraph struct {
	words  []word
	indent int
}

func text(content string, look look) paragraph { return paragraph{words: words(content, look)} }

func (p paragraph) minWidth() int {
	width := 0
	for i, w := range p.words {
		width = max(width, p.start(i)+min(len(w.text), longestWord)) // at worst each is a line
	}
	return width
}

func (p paragraph) layout(width int) block {
	width = max(width, p.minWidth())
	var b block
	x, y := 0, 0
	for _, w := range p.words {
		space := 1
		if w.glued || x == 0 || x == p.indent && y > 0 {
			space = 0
		}
		if start := p.start(y); x > start && x+space+len(w.text) > width {
			x, y, space = p.start(y+1), y+1, 0
		}
		for rest := w.text; rest != ""; {
			fit := min(len(rest), width-x-space)
			b.write(mark{look: w.look, x: x + space, y: y, w: fit, h: 1, text: rest[:fit]})
			x, rest = x+space+fit, rest[fit:]
			if rest != "" {
				x, y, space = p.start(y+1), y+1, 0
			}
		}
	}
	return b
}

// start is where a line starts.
func (p paragraph) start(line int) int {
	if line == 0 {
		return 0
	}
	return p.indent
}

// write adds a label, to the one before it if that is of the same look and at most a space away.
func (b *block) write(m mark) {
	b.w, b.h = max(b.w, m.x+m.w), max(b.h, m.y+m.h)
	if last := len(b.marks) - 1; last >= 0 {
		before := &b.marks[last]
		gap := m.x - before.x - before.w
		if before.look == m.look && before.y == m.y && gap <= 1 {
			before.text += strings.Repeat(" ", gap) + m.text
			before.w = len(before.text)
			return
		}
	}
	b.marks = append(b.marks, m)
}
