package draw

import (
	"fmt"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// chips are cores in columns, each an outline around the words of its CPUs.
type chips struct {
	cores [][]word
	width int // of each core, brackets included
}

// look is isolated for a core that is so with all its CPUs.
func (c chips) look(core int) look {
	for _, w := range c.cores[core] {
		if w.look != isolatedText {
			return cpuText
		}
	}
	return isolatedText
}

// wordWidths are those of the longest first, second, … word of all cores: cores look the same all over the drawing.
func wordWidths(cores []numa.Core, isolated cpuset.Set) (widths []int) {
	for i := range cores {
		for j, w := range coreWords(cores[i].CPUs, isolated) {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], len(w.text))
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
			core[j].text = fmt.Sprintf("%*s", s.widths[j], core[j].text)
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
func coreWords(cpus, isolated cpuset.Set) (list []word) {
	for _, run := range runs(cpus, isolated) {
		look, suffix := cpuText, ""
		if isolated.Contains(run.first) {
			look, suffix = isolatedText, isolatedSuffix
		}
		if run.last > run.first+1 {
			list = append(list, word{text: fmt.Sprintf("%d-%d%s", run.first, run.last, suffix), look: look})
			continue
		}
		for cpu := run.first; cpu <= run.last; cpu++ {
			list = append(list, word{text: strconv.Itoa(cpu) + suffix, look: look})
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

func (c chips) minWidth() int { return c.width }

func (c chips) layout(width int) block {
	perRow := c.perRow(min(max(1, (width+1)/(c.width+1)), mostPerRow))
	var b block
	for i, core := range c.cores {
		x, y := i%perRow*(c.width+1), i/perRow
		b.marks = append(b.marks, mark{shape: chip, look: c.look(i), x: x, y: y, w: c.width, h: 1})
		at := x + 1
		for _, w := range core {
			b.marks = append(b.marks, mark{look: w.look, x: at, y: y, w: len(w.text), h: 1, text: w.text})
			at += len(w.text) + 1
		}
		b.w, b.h = max(b.w, x+c.width), y+1
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
