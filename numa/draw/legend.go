package draw

import (
	"slices"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// summary is the machine in a line or two.
func (s *scene) summary() part {
	m := &s.machine
	lines := stack{parts: []part{text(headline(*m), heading)}}
	for _, set := range []struct {
		what string
		cpus *cpuset.Set
	}{{"isolated CPUs (isolcpus)", m.Isolated}, {"CPUs without a tick (nohz_full)", m.NoHZFull}} {
		if set.cpus != nil && !set.cpus.IsEmpty() {
			p := paragraph{indent: 2, words: append(words(set.what, plain), cpuWords(*set.cpus, isolatedText)...)}
			lines.parts = append(lines.parts, p)
		}
	}
	return lines
}

// headline counts what the machine has.
func headline(m numa.Machine) string {
	sockets := map[int]bool{}
	for i := range m.Cores {
		if m.Cores[i].Socket != nil {
			sockets[*m.Cores[i].Socket] = true
		}
	}
	var memory uint64
	known := false
	for i := range m.Zones {
		if m.Zones[i].MemoryBytes != nil {
			memory, known = memory+*m.Zones[i].MemoryBytes, true
		}
	}
	line := count(len(m.Zones), "NUMA node") + ", " + count(len(m.Cores), "core") + ", " + count(m.Online.Size(), "CPU")
	if len(sockets) > 0 {
		line = count(len(sockets), "socket") + ", " + line
	}
	if known {
		line += ", " + size(memory)
	}
	return line
}

// legend explains the signs that this drawing has.
func (s *scene) legend() part {
	var lines stack
	if sample, ok := s.sampleCore(); ok && s.detail == everyCore {
		e := entry{sample: s.newChips([]numa.Core{sample}), text: "a core with its CPU"}
		if n := sample.CPUs.Size(); n > 1 {
			e.text = "a core with its " + strconv.Itoa(n) + " CPUs (hardware threads)"
		}
		lines.parts = append(lines.parts, e)
	}
	if s.detail == everyCore && s.isolated.Overlaps(s.machine.Online) {
		lines.parts = append(lines.parts, entry{text("4"+isolatedSuffix, isolatedText), "an isolated CPU: no task is balanced to it"})
	}
	if s.sharesL3() {
		lines.parts = append(lines.parts, entry{text("with node", muted), "the L3 is shared with CPUs of that node"})
	}
	if len(s.nearest) > 0 {
		lines.parts = append(lines.parts, entry{text("node in node", plain), "a node without CPUs, in the nearest one with CPUs"})
	}
	if len(s.machine.PCI) > 0 {
		lines.parts = append(lines.parts, entry{text("gpu nic nvme", deviceText), "PCI address, vendor:device, driver, names"})
	}
	return lines
}

// sharesL3 says whether an L3 reaches over more than one zone.
func (s *scene) sharesL3() bool {
	return slices.ContainsFunc(s.machine.Cores, func(core numa.Core) bool { return s.sharedWith(&core) != "" })
}

// sampleCore is the first of the cores with the most CPUs.
func (s *scene) sampleCore() (sample numa.Core, ok bool) {
	for i := range s.machine.Cores {
		if core := &s.machine.Cores[i]; !ok || core.CPUs.Size() > sample.CPUs.Size() {
			sample, ok = *core, true
		}
	}
	return sample, ok
}

// entry is a sample beside what it means.
type entry struct {
	sample part
	text   string
}

// samples is the width of the column of samples.
const samples = 14

func (e entry) minWidth() int { return samples + text(e.text, plain).minWidth() }

func (e entry) layout(width int) block {
	b := e.sample.layout(samples - 1)
	x := max(samples, b.w+1)
	b.place(text(e.text, muted).layout(width-x), x, 0)
	return b
}
