package plot

import (
	"fmt"
	"html"
	"strings"
)

// Stacks is a figure of rows whose parts add up.
type Stacks struct {
	Title, XLabel string
	Parts         []string // names of the parts, in their order
	Rows          []Stack
}

// Stack is a row, with a value for each part.
type Stack struct {
	Name   string
	Values []float64
}

const stackLeft = 210

// SVG draws the figure.
func (f Stacks) SVG() string {
	most := 0.0
	for _, row := range f.Rows {
		sum := 0.0
		for _, v := range row.Values {
			sum += v
		}
		most = max(most, sum)
	}
	legend := 22 * ((len(f.Parts) + 1) / 2)
	size := top + rowSize*len(f.Rows) + bottom + legend + 14
	axis := top + rowSize*len(f.Rows)
	x := scale(0, most, stackLeft, barsRight)
	var b strings.Builder
	begin(&b, size, f.Title, f.XLabel)
	for at, step := 0.0, stepOf(most); at <= most; at += step {
		fmt.Fprintf(&b, "<path class=\"grid\" d=\"M%.1f %d V%d\"/>\n", x(at), top, axis)
		fmt.Fprintf(&b, "<text class=\"small middle\" x=\"%.1f\" y=\"%d\">%s</text>\n", x(at), axis+18, Number(at))
	}
	fmt.Fprintf(&b, "<text class=\"small middle\" x=\"%d\" y=\"%d\">%s</text>\n", (stackLeft+barsRight)/2, axis+38, html.EscapeString(f.XLabel))
	for i, row := range f.Rows {
		middle := top + rowSize*i + rowSize/2
		fmt.Fprintf(&b, "<text class=\"end\" x=\"%d\" y=\"%d\">%s</text>\n", stackLeft-12, middle+4, html.EscapeString(row.Name))
		from := 0.0
		for j, v := range row.Values {
			fmt.Fprintf(&b, "<rect class=\"hue%d dot\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"18\"/>\n", j, x(from), middle-9, x(from+v)-x(from))
			from += v
		}
	}
	for j, name := range f.Parts {
		at, line := stackLeft+(j%2)*(barsRight-stackLeft)/2, size-legend+22*(j/2)
		fmt.Fprintf(&b, "<rect class=\"hue%d dot\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/>\n", j, at, line-10)
		fmt.Fprintf(&b, "<text class=\"small\" x=\"%d\" y=\"%d\">%s</text>\n", at+18, line, html.EscapeString(name))
	}
	return b.String() + "</svg>\n"
}
