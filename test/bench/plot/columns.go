package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Columns is a figure with stacked columns, on linear axes: what there was in each span of
// time, by name. It has eight names at most.
type Columns struct {
	Title, XLabel string
	Width         int // of a column, on the horizontal axis
	Names         []string
	Columns       [][]float64 // a value for each name
	Marks         []Mark      // ascending
}

// Mark is a line at a place of the horizontal axis, with a text.
type Mark struct {
	At   int
	Text string
}

// tickOf returns what lies between two numbers below an axis of this length: 10 numbers or
// fewer are legible.
func tickOf(length int) int {
	tick := 1
	for _, factor := range []int{2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if length/tick > 10 {
			tick = factor
		}
	}
	return tick
}

// marksTop is the room for the texts of marks, which are slanted. Texts less than
// marksApart from each other would overlap.
const (
	marksTop   = 150
	marksApart = 24.0
)

// stepOf returns the distance of round numbers on an axis that ends with this one.
func stepOf(highest float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(highest)))
	if highest/step < 2 {
		return step / 5
	}
	if highest/step < 5 {
		return step / 2
	}
	return step
}

// SVG draws the figure.
func (f Columns) SVG() string {
	highest := 1.0
	for _, column := range f.Columns {
		sum := 0.0
		for _, value := range column {
			sum += value
		}
		highest = max(highest, sum)
	}
	step := stepOf(highest)
	floor := marksTop + height - top - bottom
	size := floor + bottom
	y := scale(0, math.Ceil(highest/step)*step, floor, marksTop)
	length := f.Width * len(f.Columns)
	x := scale(0, float64(max(length, 1)), left, width-right/2)
	var b strings.Builder
	begin(&b, size, f.Title, "Both axes are linear.")
	for value := 0.0; value <= highest+step; value += step {
		if at := y(value); at >= marksTop-0.5 {
			fmt.Fprintf(&b, "<path class=\"grid\" d=\"M%d %.1f H%d\"/>\n", left, at, width-right/2)
			fmt.Fprintf(&b, "<text class=\"small end\" x=\"%d\" y=\"%.1f\">%s</text>\n", left-8, at+4, Number(value))
		}
	}
	for at := 0; at <= length; at += tickOf(length) {
		fmt.Fprintf(&b, "<text class=\"small middle\" x=\"%.1f\" y=\"%d\">%d</text>\n", x(float64(at)), floor+18, at)
	}
	for i, column := range f.Columns {
		sum := 0.0
		for hue, value := range column {
			if value > 0 {
				fmt.Fprintf(&b, "<rect class=\"hue%d dot\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n", hue, x(float64(i*f.Width)), y(sum+value), x(float64(f.Width))-x(0), y(sum)-y(sum+value))
			}
			sum += value
		}
	}
	text := 0.0
	for _, mark := range f.Marks {
		at := x(float64(mark.At))
		text = max(at+2, text+marksApart)
		fmt.Fprintf(&b, "<path class=\"axis\" d=\"M%.1f %d V%d\" stroke-dasharray=\"2 3\"/>\n", at, marksTop-6, floor)
		fmt.Fprintf(&b, "<text class=\"small\" transform=\"translate(%.1f %d) rotate(-35)\">%s</text>\n", text, marksTop-10, html.EscapeString(mark.Text))
	}
	for hue, name := range f.Names {
		at := marksTop + 20*hue
		fmt.Fprintf(&b, "<circle class=\"hue%d dot\" cx=\"%d\" cy=\"%d\" r=\"5\"/>\n", hue, width-right/2+20, at)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", width-right/2+32, at+4, html.EscapeString(name))
	}
	fmt.Fprintf(&b, "<text class=\"small middle\" x=\"%d\" y=\"%d\">%s</text>\n", (left+width-right/2)/2, size-12, html.EscapeString(f.XLabel))
	return b.String() + "</svg>\n"
}
