package draw

import (
	"fmt"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// chips are cores in columns. Each core is an outline around the words for its CPUs.
type chips struct {
	cores [][]canvas.Word
	width int // of each core, including its brackets
}

// look returns the look of a core. A core looks isolated if all its CPUs are isolated.
func (c chips) look(core int) canvas.Look {
	for _, w := range c.cores[core] {
		if w.Look != canvas.IsolatedText {
			return canvas.CPUText
		}
	}
	return canvas.IsolatedText
}

// wordWidths returns the widths of the longest first, second, … word of all cores, so
// that all cores of a drawing have the same layout.
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
	most := 0 // number of words of the core with the most
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

// coreWords returns the CPUs of a core as numbers. More than two consecutive CPUs of
// the same kind are a range.
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

// isolatedSuffix marks an isolated CPU. The kernel does not move tasks to it by load
// balancing.
const isolatedSuffix = "*"

// run is consecutive CPUs that are all isolated, or all not isolated; first ≤ last.
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

// mostPerRow is the maximum number of cores in a row, even on a wide terminal.
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

// perRow returns how many cores to draw in a row, at most fit. If a number near fit
// divides the number of cores, it returns that. Otherwise it makes the rows about
// equally long.
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
