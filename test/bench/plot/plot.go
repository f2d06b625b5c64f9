// Package plot draws the figures of the page of benchmarks: SVG without scripts or other
// files, in the light or dark colours that its reader prefers. It computes no numbers but
// positions.
package plot

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Lines is a figure with both axes logarithmic: a straight line is a power, and a steeper
// one grows faster. It has eight lines at most.
type Lines struct {
	Title, XLabel string
	X             []float64 // of all lines
	Lines         []Line
}

// Line is one line. Y is in nanoseconds, one for each X.
type Line struct {
	Name string
	Y    []float64
}

const (
	width, height = 900, 420
	left, right   = 78, 320 // on the right are the names
	top, bottom   = 46, 52
)

// SVG draws the figure.
func (f Lines) SVG() string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, line := range f.Lines {
		for _, y := range line.Y {
			low, high = min(low, y), max(high, y)
		}
	}
	firstDecade, lastDecade := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	x := scale(math.Log10(f.X[0]), math.Log10(f.X[len(f.X)-1]), left, width-right)
	y := scale(firstDecade, lastDecade, height-bottom, top)
	var b strings.Builder
	begin(&b, height, f.Title, "Both axes are logarithmic.")
	for decade := firstDecade; decade <= lastDecade; decade++ {
		at := y(decade)
		fmt.Fprintf(&b, "<path class=\"grid\" d=\"M%d %.1f H%d\"/>\n", left, at, width-right)
		fmt.Fprintf(&b, "<text class=\"small end\" x=\"%d\" y=\"%.1f\">%s</text>\n", left-8, at+4, Duration(math.Pow(10, decade)))
	}
	for _, value := range f.X {
		fmt.Fprintf(&b, "<text class=\"small middle\" x=\"%.1f\" y=\"%d\">%g</text>\n", x(math.Log10(value)), height-bottom+20, value)
	}
	fmt.Fprintf(&b, "<text class=\"small middle\" x=\"%d\" y=\"%d\">%s</text>\n", (left+width-right)/2, height-10, html.EscapeString(f.XLabel))
	labels := f.labels(y)
	for i, line := range f.Lines {
		var points []string
		for j, value := range line.Y {
			cx, cy := x(math.Log10(f.X[j])), y(math.Log10(value))
			points = append(points, fmt.Sprintf("%.1f %.1f", cx, cy))
			fmt.Fprintf(&b, "<circle class=\"hue%d dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", i, cx, cy)
		}
		fmt.Fprintf(&b, "<path class=\"hue%d line\" d=\"M%s\"/>\n", i, strings.Join(points, " L"))
		fmt.Fprintf(&b, "<circle class=\"hue%d dot\" cx=\"%d\" cy=\"%.1f\" r=\"5\"/>\n", i, width-right+24, labels[i]-4)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%.1f\">%s</text>\n", width-right+36, labels[i], html.EscapeString(line.Name))
	}
	return b.String() + "</svg>\n"
}

// labels returns where the names of the lines are: near their ends, 20 apart.
func (f Lines) labels(y func(float64) float64) []float64 {
	at := make([]float64, len(f.Lines))
	order := make([]int, len(f.Lines))
	for i, line := range f.Lines {
		order[i] = i
		at[i] = y(math.Log10(line.Y[len(line.Y)-1])) + 4
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	for i := 1; i < len(order); i++ {
		at[order[i]] = max(at[order[i]], at[order[i-1]]+20)
	}
	last := float64(height - bottom)
	for i := len(order) - 1; i >= 0 && at[order[i]] > last; i-- { // back into the figure
		at[order[i]], last = last, last-20
	}
	return at
}

// Bars is a figure of ratios, with a logarithmic axis: left of the middle line is less
// than the other program, right of it is more.
type Bars struct {
	Title, Note string
	Bars        []Bar
}

// Bar is the spread of one ratio, and the goal for it; 0: there is none.
type Bar struct {
	Name              string
	Median, Low, High float64
	Goal              float64
}

const (
	barsLeft, barsRight = 400, width - 60
	rowSize             = 30
)

// SVG draws the figure.
func (f Bars) SVG() string {
	low, high := 1.0, 1.0
	for _, bar := range f.Bars {
		low, high = min(low, bar.Low), max(high, bar.High)
		if bar.Goal > 0 {
			low, high = min(low, bar.Goal), max(high, bar.Goal)
		}
	}
	marks := ticks(low, high)
	x := scale(math.Log10(marks[0]), math.Log10(marks[len(marks)-1]), barsLeft, barsRight)
	size := top + rowSize*len(f.Bars) + bottom
	var b strings.Builder
	begin(&b, size, f.Title, f.Note)
	for _, mark := range marks {
		class, at := "grid", x(math.Log10(mark))
		if mark == 1 {
			class = "axis"
		}
		fmt.Fprintf(&b, "<path class=\"%s\" d=\"M%.1f %d V%d\"/>\n", class, at, top, size-bottom)
		fmt.Fprintf(&b, "<text class=\"small middle\" x=\"%.1f\" y=\"%d\">%s</text>\n", at, size-bottom+18, Number(mark))
	}
	fmt.Fprintf(&b, "<text class=\"small middle\" x=\"%d\" y=\"%d\">%s</text>\n", (barsLeft+barsRight)/2, size-10, html.EscapeString(f.Note))
	for i, bar := range f.Bars {
		middle := float64(top+rowSize*i) + rowSize/2
		fmt.Fprintf(&b, "<text class=\"end\" x=\"%d\" y=\"%.1f\">%s</text>\n", barsLeft-16, middle+4, html.EscapeString(bar.Name))
		from, to := x(0), x(math.Log10(bar.Median))
		fmt.Fprintf(&b, "<rect class=\"hue0 dot\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"12\" opacity=\"0.55\"/>\n", min(from, to), middle-6, math.Abs(to-from))
		fmt.Fprintf(&b, "<path class=\"axis\" d=\"M%.1f %.1f H%.1f\"/>\n", x(math.Log10(bar.Low)), middle, x(math.Log10(bar.High)))
		fmt.Fprintf(&b, "<circle class=\"hue0 dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", to, middle)
		if bar.Goal > 0 {
			at := x(math.Log10(bar.Goal))
			fmt.Fprintf(&b, "<path class=\"hue1 line\" d=\"M%.1f %.1f V%.1f\"/>\n", at, middle-11, middle+11)
		}
	}
	return b.String() + "</svg>\n"
}

// mostTicks is how many numbers an axis of ratios has at most, unless it has only powers of ten.
const mostTicks = 8

// ticks returns the numbers of an axis from low or less to high or more, ascending: 1, 2 and 5 times
// each power of ten, or the powers alone.
func ticks(low, high float64) (list []float64) {
	for _, steps := range [][]float64{{1, 2, 5}, {1}} {
		list = nil
		for decade := math.Floor(math.Log10(low)); decade <= math.Ceil(math.Log10(high)); decade++ {
			for _, step := range steps {
				list = append(list, step*math.Pow(10, decade))
			}
		}
		for len(list) > 1 && list[1] <= low {
			list = list[1:]
		}
		for len(list) > 1 && list[len(list)-2] >= high {
			list = list[:len(list)-1]
		}
		if len(list) <= mostTicks {
			break
		}
	}
	return list
}

// scale maps a range of logarithms to pixels.
func scale(from, to float64, first, last int) func(float64) float64 {
	if to == from {
		to++
	}
	return func(v float64) float64 { return float64(first) + (v-from)/(to-from)*float64(last-first) }
}

// begin has colours that people who do not see red or green can tell apart.
// palette has the colours of a figure. They stand in each rule, because only browsers know
// variables of CSS: in other programs, what has them is black.
type palette struct {
	ground, text, dim, grid string
	hues                    [8]string
}

var (
	light = palette{"#ffffff", "#1f2328", "#59636e", "#d1d9e0", [8]string{"#0969da", "#bc4c00", "#1a7f37", "#8250df", "#57606a", "#bf3989", "#0a7b83", "#7d4e00"}}
	dark  = palette{"#0d1117", "#f0f6fc", "#9198a1", "#3d444d", [8]string{"#4493f8", "#f0883e", "#3fb950", "#ab7df8", "#9198a1", "#db61a2", "#39c5cf", "#d29922"}}
)

// rules writes the rules of the colours.
func (p palette) rules(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s.ground { fill: %s; } text { fill: %s; } .small { fill: %s; } .grid { stroke: %s; } .axis { stroke: %s; }\n", indent, p.ground, p.text, p.dim, p.grid, p.dim)
	for i, hue := range p.hues {
		fmt.Fprintf(b, "%s.hue%d.line { stroke: %s; } .hue%d.dot { fill: %s; }\n", indent, i, hue, i, hue)
	}
}

func begin(b *strings.Builder, size int, title, description string) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="13">
<title id="title">%s</title>
<desc id="desc">%s</desc>
<style>
  .heading { font-weight: 600; font-size: 15px; }
  .small { font-size: 12px; }
  .middle { text-anchor: middle; }
  .end { text-anchor: end; }
  .grid { fill: none; }
  .axis { stroke-width: 1.5; fill: none; }
  .line { fill: none; stroke-width: 2; }
`, width, size, width, size, html.EscapeString(title), html.EscapeString(description))
	light.rules(b, "  ")
	b.WriteString("  @media (prefers-color-scheme: dark) {\n")
	dark.rules(b, "    ")
	fmt.Fprintf(b, "  }\n</style>\n<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n<text class=\"heading\" x=\"12\" y=\"26\">%s</text>\n", width, size, html.EscapeString(title))
}

// Duration returns nanoseconds with a unit and three digits.
func Duration(ns float64) string {
	for _, unit := range []struct {
		name string
		ns   float64
	}{{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}} {
		if ns >= unit.ns*0.9995 {
			return Number(ns/unit.ns) + " " + unit.name
		}
	}
	return Number(ns) + " ns"
}

// Number returns a number with three digits, or all of a larger one.
func Number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	text := fmt.Sprintf("%.*f", digits, v)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
