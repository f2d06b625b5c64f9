package draw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// summary returns one to four lines about the machine.
func (s *scene) summary() canvas.Part {
	m := &s.machine
	lines := canvas.Stack{Parts: []canvas.Part{canvas.Text(headline(*m), canvas.Heading)}}
	if line := platformLine(m.Platform); line != "" {
		lines.Parts = append(lines.Parts, canvas.Paragraph{Indent: 2, Words: canvas.Words(line, canvas.Plain)})
	}
	for _, set := range []struct {
		what string
		cpus *cpuset.Set
	}{{"isolated CPUs (isolcpus)", m.Isolated}, {"CPUs without a tick (nohz_full)", m.NoHZFull}} {
		if set.cpus != nil && !set.cpus.IsEmpty() {
			p := canvas.Paragraph{Indent: 2, Words: append(canvas.Words(set.what, canvas.Plain), canvas.CPUWords(*set.cpus, canvas.IsolatedText)...)}
			lines.Parts = append(lines.Parts, p)
		}
	}
	return lines
}

// platformLine is a line such as "Example Server 1, BIOS 2.4 (04/14/2022)".
func platformLine(p *numa.Platform) string {
	if p == nil {
		return ""
	}
	made := p.Product
	if !strings.HasPrefix(made, p.Vendor) {
		made = strings.TrimSpace(p.Vendor + " " + p.Product)
	}
	firmware := strings.TrimSpace("BIOS " + p.BIOSVersion)
	if p.BIOSDate != "" {
		firmware += " (" + p.BIOSDate + ")"
	}
	switch {
	case firmware == "BIOS":
		return made
	case made == "":
		return firmware
	}
	return made + ", " + firmware
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
	line := canvas.Count(len(m.Zones), "NUMA node") + ", " + canvas.Count(len(m.Cores), "core") + ", " + canvas.Count(m.Online.Size(), "CPU")
	if len(sockets) > 0 {
		line = canvas.Count(len(sockets), "socket") + ", " + line
	}
	if known {
		line += ", " + canvas.Size(memory)
	}
	return line
}

// legend explains the signs in this drawing.
func (s *scene) legend() canvas.Part {
	var lines canvas.Stack
	if sample, ok := s.sampleCore(); ok && s.detail == everyCore {
		e := canvas.Entry{Sample: s.newChips([]numa.Core{sample}), Text: "a core with its CPU"}
		if n := sample.CPUs.Size(); n > 1 {
			e.Text = "a core with its " + strconv.Itoa(n) + " CPUs (hardware threads)"
		}
		lines.Parts = append(lines.Parts, e)
	}
	if s.detail == everyCore && s.isolated.Overlaps(s.machine.Online) {
		lines.Parts = append(lines.Parts, canvas.Entry{Sample: canvas.Text("4"+isolatedSuffix, canvas.IsolatedText), Text: "an isolated CPU, without load balancing"})
	}
	if s.sharesL3() {
		lines.Parts = append(lines.Parts, canvas.Entry{Sample: canvas.Text("with node", canvas.Muted), Text: "the L3 is shared with CPUs of that node"})
	}
	if len(s.nearest) > 0 {
		lines.Parts = append(lines.Parts, canvas.Entry{Sample: canvas.Text("node in node", canvas.Plain), Text: "a node without CPUs, in the nearest one with CPUs"})
	}
	if len(s.machine.PCI) > 0 {
		e := canvas.Entry{Sample: canvas.Text("gpu nic nvme", canvas.DeviceText), Text: "PCI address, vendor:device, driver, names"}
		if s.drawsNames() {
			e.Text += "; below, the names of vendor and product"
		}
		lines.Parts = append(lines.Parts, e)
	}
	return lines
}

// sharesL3 reports whether several zones share an L3.
func (s *scene) sharesL3() bool {
	return slices.ContainsFunc(s.machine.Cores, func(core numa.Core) bool { return s.sharedWith(&core, nil) != "" })
}

// drawsNames reports whether the drawing has the product name of at least one function.
func (s *scene) drawsNames() bool {
	named := func(f function) bool {
		return f.Kind != numa.BridgeFunction && f.Kind != numa.OtherFunction && s.nameOf(&f) != ""
	}
	for _, functions := range s.devices { // including functions without a known zone
		if slices.ContainsFunc(functions, named) {
			return true
		}
	}
	return false
}

// sampleCore returns the first of the cores with the most CPUs.
func (s *scene) sampleCore() (sample numa.Core, ok bool) {
	for i := range s.machine.Cores {
		if core := &s.machine.Cores[i]; !ok || core.CPUs.Size() > sample.CPUs.Size() {
			sample, ok = *core, true
		}
	}
	return sample, ok
}
