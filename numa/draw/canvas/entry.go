package canvas

import "cmp"

// Entry is a sample beside what it means.
type Entry struct {
	Sample Part
	Text   string
	Column int // how wide the column of samples is; wide enough for a core if 0
}

const defaultColumn = 14

func (e Entry) column() int { return cmp.Or(e.Column, defaultColumn) }

// MinWidth is that of the samples and the text.
func (e Entry) MinWidth() int { return e.column() + Text(e.Text, Plain).MinWidth() }

// Layout puts the texts of all entries below each other.
func (e Entry) Layout(width int) Block {
	b := e.Sample.Layout(e.column() - 1)
	x := max(e.column(), b.W+1)
	b.Place(Text(e.Text, Muted).Layout(width-x), x, 0)
	return b
}
