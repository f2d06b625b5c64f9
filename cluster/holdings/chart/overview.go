package chart

import (
	"fmt"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// list has a line for each node: a strip that shows how many CPUs are held, and numbers.
type list struct {
	rows   []row
	widths [columns]int // widths of the longest texts
}

// columns are the name, free CPUs, free memory, claims and problems.
const columns = 5

type row struct {
	texts [columns]string
	bar   func(cells int64) canvas.Strip // of CPUs; nil if the number of CPUs is not known
}

func overview(nodes []holdings.Node) canvas.Part {
	l := list{rows: []row{{texts: [columns]string{"NODE", "CPU FREE", "MEMORY FREE", "CLAIMS", ""}}}}
	for i := range nodes {
		n := &nodes[i]
		r := row{texts: [columns]string{n.Name, "?", "?", strconv.Itoa(claimsOf(n)), ""}}
		for _, total := range n.Totals {
			if total.Free == nil {
				continue
			}
			switch total.Name {
			case string(deviceclasses.CapacityCPU):
				r.texts[1] = Amount(string(deviceclasses.CapacityCPU), *total.Free) + "/" + Amount(string(deviceclasses.CapacityCPU), *total.Total)
				held := part{sign{'#', canvas.Hue(0)}, total.Held}
				r.bar = func(count int64) canvas.Strip { return cells([]part{held}, total.Total.Value(), count) }
			case string(deviceclasses.CapacityMemory):
				r.texts[2] = canvas.Printable(Amount(string(deviceclasses.CapacityMemory), *total.Free))
			}
		}
		if len(n.Problems) > 0 {
			r.texts[columns-1] = fmt.Sprintf("! %d", len(n.Problems))
		}
		l.rows = append(l.rows, r)
	}
	for _, r := range l.rows {
		for i, text := range r.texts {
			l.widths[i] = max(l.widths[i], len(text))
		}
	}
	return l
}

func claimsOf(n *holdings.Node) int {
	claims := make(map[string]bool)
	count := func(devices []holdings.Device) {
		for i := range devices {
			for _, share := range devices[i].Shares {
				claims[share.Claim] = true
			}
		}
	}
	for i := range n.NUMANodes {
		count(n.NUMANodes[i].Devices)
	}
	count(n.Devices)
	return len(claims)
}

// Lengths of the strip, and of a name that is cut off.
const (
	shortestBar  = 8
	longestBar   = 32
	between      = 2
	shortestName = 12
)

// MinWidth returns the least width for a short name and the problems.
func (l list) MinWidth() int { return shortestName + between + l.widths[columns-1] }

// fit returns the widths of the columns and the strip for a given width of the table.
// To save space, it first drops the columns before the problems, then the strip, and
// then the ends of names.
func (l list) fit(width int) (widths [columns]int, bar int) {
	widths = l.widths
	left := func() int {
		sum := width
		for _, w := range widths {
			if w > 0 {
				sum -= w + between
			}
		}
		return sum
	}
	for column := columns - 2; column > 1 && left() < shortestBar; column-- {
		widths[column] = 0
	}
	if left() >= shortestBar {
		return widths, min(left(), longestBar)
	}
	widths[0] -= min(max(-left(), 0), max(widths[0]-shortestName, 0))
	return widths, 0
}

// Layout lays out the table.
func (l list) Layout(width int) canvas.Block {
	widths, bar := l.fit(max(width, l.MinWidth()))
	var b canvas.Block
	for y, r := range l.rows {
		x := 0
		for i, text := range r.texts {
			if widths[i] == 0 {
				continue
			}
			text = text[:min(len(text), widths[i])]
			at := x
			if i > 0 {
				at += widths[i] - len(text)
			}
			if text != "" {
				b.Add(canvas.Mark{Look: r.look(y, i), X: at, Y: y, W: len(text), H: 1, Text: text})
			}
			x += widths[i] + between
			if i == 0 && bar > 0 {
				if r.bar != nil {
					b.Place(r.bar(int64(bar)).Layout(bar), x, y)
				}
				x += bar + between
			}
		}
	}
	return b
}

func (r row) look(y, column int) canvas.Look {
	switch {
	case y == 0:
		return canvas.Muted
	case column == columns-1:
		return canvas.IsolatedText
	}
	return canvas.Plain
}
