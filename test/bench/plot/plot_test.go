package plot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestFiguresAreWellFormedAndShowEachName(t *testing.T) {
	for _, svg := range []string{
		Lines{Title: "A & B", XLabel: "CPUs", X: []float64{64, 512}, Lines: []Line{
			{"one <1>", []float64{10, 1e6}}, {"two", []float64{1e3, 1e6}},
		}}.SVG(),
		Bars{Title: "A & B", Note: "less is better", Bars: []Bar{{"one <1>", 0.01, 0.005, 0.02, 0.02}, {"two", 1, 1, 1, 0}}}.SVG(),
		Columns{Title: "A & B", XLabel: "seconds", Width: 1, Names: []string{"one <1>"}, Columns: [][]float64{{0}, {37}}, Marks: []Mark{{1, "two"}}}.SVG(),
		Columns{Title: "A & B", XLabel: "seconds", Width: 1, Names: []string{"one <1>", "two"}}.SVG(),
	} {
		var text strings.Builder
		for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, svg)
			}
			if characters, ok := token.(xml.CharData); ok {
				text.Write(characters)
			}
		}
		for _, want := range []string{"A & B", "one <1>", "two", "prefers-color-scheme: dark"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in\n%s", want, svg)
			}
		}
		if strings.Contains(svg, "var(") {
			t.Errorf("a colour is a variable, which only browsers know:\n%s", svg)
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("a position is no number:\n%s", svg)
		}
	}
}

func TestAxisOfRatiosIsNoLongerThanItsBars(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{1, 1, "[1]"},
		{0.78, 1.08, "[0.5 1 2]"},
		{0.5, 2, "[0.5 1 2]"},
		{0.2, 20, "[0.2 0.5 1 2 5 10 20]"},
		{0.04, 9, "[0.01 0.1 1 10]"},
	} {
		got := ticks(c.low, c.high)
		if len(got) > mostTicks {
			t.Errorf("%g to %g: %d numbers", c.low, c.high, len(got))
		}
		if text := fmt.Sprintf("%.3g", got); text != c.want {
			t.Errorf("%g to %g: %s, want %s", c.low, c.high, text, c.want)
		}
	}
}

// A phase without much to do is short: its text and the next one begin at nearly the same
// second.
func TestTextsOfMarksDoNotOverlap(t *testing.T) {
	svg := Columns{Width: 1, Columns: make([][]float64, 1000), Marks: []Mark{{0, "a"}, {1, "b"}, {2, "c"}, {900, "d"}}}.SVG()
	var at []float64
	for _, match := range regexp.MustCompile(`translate\(([0-9.]+) `).FindAllStringSubmatch(svg, -1) {
		x, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, x)
	}
	if len(at) != 4 {
		t.Fatalf("%d texts, want 4", len(at))
	}
	for i := 1; i < len(at); i++ {
		if at[i]-at[i-1] < 23.9 {
			t.Errorf("texts begin at %v: some are less than 24 apart", at)
		}
	}
	if at[3]-at[2] < 300 {
		t.Errorf("texts begin at %v: the last one is not where its line is", at)
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for value, want := range map[float64]string{0: "0 ns", 0.5: "0.5 ns", 12.345: "12.3 ns", 999: "999 ns", 1000: "1 µs", 123456: "123 µs", 2.5e9: "2.5 s"} {
		if got := Duration(value); got != want {
			t.Errorf("Duration(%g) = %s, want %s", value, got, want)
		}
	}
}
