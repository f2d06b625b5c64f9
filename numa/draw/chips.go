package draw

import (
	"fmt"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// chips are cores in columns, each an outline around the words of its CPUs.
type chips struct {
	cores [][]canvas.Word
	width int // of each core, brackets included
}

// look is isolated for a core that is so with all its CPUs.
func (c chips) look(core int) canvas.Look {
	for _, w := range c.cores[core] {
		if w.Look != canvas.IsolatedText {
			return canvas.CPUText
		}
	}
	return canvas.IsolatedText
}

// wordWidths are those of the longest first, second, … word of all cores: cores look the same all over the drawing.
func wordWidths(cores []numa.Core, isolated cpuset.Set) (widths []int) {
	for i := range cores {
		for j, w := range coreWords(cores[i].CPUs, isolated) {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], len(w.Text))
		}
	}
	return widths
}

func (s *scene) newChips(cores []numa.Core) chips {
	c := chips{width: 1}
	most := 0 // words of a core
	for i := range cores {
		core := coreWords(cores[i].CPUs, s.isolated)
		for j := range core {
			core[j].Text = fmt.Sprintf("%*s", s.widths[j], core[j].Text)
		}
		most = max(most, len(core))
		c.cores = append(c.cores, core)
	}
	for _, width := range s.widths[:most] {
		c.width += width + 1
	}
	return c
}

// coreWords are the CPUs of a core: numbers, or ranges of more than two of a kind.
func coreWords(cpus, isolated cpuset.Set) (list []canvas.Word) {
	for _, run := range runs(cpus, isolated) {
		look, suffix := canvas.CPUText, ""
		if isolated.Contains(run.first) {
			look, suffix = canvas.IsolatedText, isolatedSuffix
		}
		if run.last > run.first+1 {
			list = append(list, canvas.Word{Text: fmt.Sprintf("%d-%d%s", run.first, run.last, suffix), Look: look})
			continue
		}
		for cpu := run.first; cpu <= run.last; cpu++ {
			list = append(list, canvas.Word{Text: strconv.Itoa(cpu) + suffix, Look: look})
		}
	}
	return list
}

// isolatedSuffix marks a CPU that no task is balanced to.
const isolatedSuffix = "*"

// run is CPUs that follow each other, all isolated or none; first ≤ last.
type run struct{ first, last int }

func runs(cpus, isolated cpuset.Set) (list []run) {
	for cpu := range cpus.All() {
		last := len(list) - 1
		if last >= 0 && list[last].last == cpu-1 && isolated.Contains(cpu) == isolated.Contains(cpu-1) {
			list[last].last = cpu
			continue
		}
		list = append(list, run{cpu, cpu})
	}
	return list
}

// mostPerRow keeps a wide terminal from being filled with one row.
const mostPerRow = 16

func (c chips) MinWidth() int { return c.width }

func (c chips) Layout(width int) canvas.Block {
	perRow := c.perRow(min(max(1, (width+1)/(c.width+1)), mostPerRow))
	var b canvas.Block
	for i, core := range c.cores {
		x, y := i%perRow*(c.width+1), i/perRow
		b.Marks = append(b.Marks, canvas.Mark{Shape: canvas.Chip, Look: c.look(i), X: x, Y: y, W: c.width, H: 1})
		at := x + 1
		for _, w := range core {
			b.Marks = append(b.Marks, canvas.Mark{Look: w.Look, X: at, Y: y, W: len(w.Text), H: 1, Text: w.Text})
			at += len(w.Text) + 1
		}
		b.W, b.H = max(b.W, x+c.width), y+1
	}
	return b
}

// perRow is how many cores are in a row if so many fit: a divisor of their number if one is near, else rows of about
// the same length.
func (c chips) perRow(fit int) int {
	n := len(c.cores)
	if n <= fit {
		return max(n, 1)
	}
	for divisor := fit; 3*divisor >= 2*fit; divisor-- {
		if n%divisor == 0 {
			return divisor
		}
	}
	rows := (n + fit - 1) / fit
	return (n + rows - 1) / rows
}
