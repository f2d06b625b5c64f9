package canvas

import "cmp"

// Entry is a line of a legend: a sample and the text that explains it.
type Entry struct {
	Sample Part
	Text   string
	Column int // width of the column of samples; if 0, it is wide enough for a core
}

const defaultColumn = 14

func (e Entry) column() int { return cmp.Or(e.Column, defaultColumn) }

// MinWidth returns the least width for the samples and the text.
func (e Entry) MinWidth() int { return e.column() + Text(e.Text, Plain).MinWidth() }

// Layout puts the text after the column of samples, so that the texts of all entries
// line up.
func (e Entry) Layout(width int) Block {
	b := e.Sample.Layout(e.column() - 1)
	x := max(e.column(), b.W+1)
	b.Place(Text(e.Text, Muted).Layout(width-x), x, 0)
	return b
}
