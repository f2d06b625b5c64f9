package draw

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func TestTextFitsItsWidth(t *testing.T) {
	sample.Each(t, func(t *testing.T, machine numa.Machine) {
		for _, width := range []int{MinWidth, 60, DefaultWidth, 133, 300} {
			for line := range strings.Lines(drawn(t, machine, width)) {
				line = strings.TrimSuffix(line, "\n")
				if len(line) > width || strings.TrimRight(line, " ") != line || canvas.Printable(line) != line {
					t.Errorf("width %d: line %q", width, line)
				}
			}
		}
	})
}

// bracketed is a core in a drawing.
var bracketed = regexp.MustCompile(`\[([^\]]*)\]`)

func TestTextShowsAllThereIs(t *testing.T) {
	sample.Each(t, func(t *testing.T, machine numa.Machine) {
		text := drawn(t, machine, 120)
		for _, zone := range machine.Zones {
			if !strings.Contains(text, fmt.Sprintf("+- node %d", zone.ID)) {
				t.Errorf("node %d is not drawn", zone.ID)
			}
		}
		for _, address := range named(machine) {
			if !strings.Contains(text, address) {
				t.Errorf("device %s is not drawn", address)
			}
		}
		if arrange(machine, nil, everyCore).Layout(120).H > terminalRows {
			return // cores are lists, which may be in two lines
		}
		body, _, _ := strings.Cut(text, "hardware threads")
		cpus := cpusIn(t, bracketed.FindAllStringSubmatch(body, -1))
		if want := inZones(machine); cpus != want {
			t.Errorf("drawn are the CPUs %s, the zones have %s", cpus, want)
		}
		for what, set := range map[string]cpuset.Set{
			"offline CPUs": machine.Present.Difference(machine.Online), "CPUs without a known node": machine.Online.Difference(inZones(machine)),
		} {
			if strings.Contains(text, "- "+what+" ") == set.IsEmpty() || !strings.Contains(text, set.String()) {
				t.Errorf("%s %q are not drawn", what, set)
			}
		}
	})
}

// named are the addresses of the functions that every drawing names.
func named(machine numa.Machine) (addresses []string) {
	for _, f := range machine.PCI {
		if f.PhysFn == "" && f.Kind != numa.BridgeFunction && f.Kind != numa.OtherFunction {
			addresses = append(addresses, f.Address)
		}
	}
	return addresses
}

func inZones(machine numa.Machine) (cpus cpuset.Set) {
	for _, zone := range machine.Zones {
		cpus = cpus.Union(zone.CPUs)
	}
	return cpus
}

// cpusIn parses the first group of each match.
func cpusIn(t *testing.T, matches [][]string) (cpus cpuset.Set) {
	t.Helper()
	for _, match := range matches {
		for field := range strings.FieldsSeq(match[1]) {
			more, err := cpuset.Parse(strings.Trim(field, "*,"))
			if err != nil {
				t.Fatal(err)
			}
			cpus = cpus.Union(more)
		}
	}
	return cpus
}

func TestBigMachinesAreDrawnWithListsOfCores(t *testing.T) {
	text := drawn(t, sample.Machine(t, "1024cpus-16nodes"), DefaultWidth)
	if !strings.Contains(text, "| L3 0, 60 MiB: 8 cores  |") || !strings.Contains(text, "|   0-7,512-519          |") {
		t.Errorf("no list of cores in\n%s", text)
	}
	if lines := strings.Count(text, "\n"); lines > 140 {
		t.Errorf("1024 CPUs in 16 zones are drawn in %d lines", lines)
	}
}

func TestColourOnlyAddsSequences(t *testing.T) {
	machine := sample.Machine(t, "offline-and-hotplug")
	var coloured bytes.Buffer
	if err := Text(&coloured, machine, TextOptions{Colour: true}); err != nil {
		t.Fatal(err)
	}
	files.Contains(t, coloured.String(), "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[36m")
	plain := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(coloured.String(), "")
	if want := drawn(t, machine, 0); plain != want {
		t.Errorf("without sequences it is\n%s, want\n%s", plain, want)
	}
	for line := range strings.Lines(coloured.String()) {
		if last := strings.LastIndex(line, "\x1b["); last >= 0 && !strings.HasPrefix(line[last:], canvas.EscapeEnd) {
			t.Errorf("colour runs over the end of %q", line)
		}
	}
}

// TestNamesAreNoCommands: interfaces and drivers are named by anybody.
func TestNamesAreNoCommands(t *testing.T) {
	machine := numa.Machine{
		Online: cpuset.New(0), Present: cpuset.New(0), Zones: []numa.Zone{{CPUs: cpuset.New(0)}},
		PCI: []numa.PCIFunction{{
			Address: "0000:01:00.0", Kind: numa.NICFunction,
			Driver: "\x1b[2Jä<script>", Net: []string{"a\x00b&c", strings.Repeat("x", 200)},
		}},
	}
	text := drawn(t, machine, 0)
	if !strings.Contains(text, "?[2J?<script>") || !strings.Contains(text, "a?b&c") || strings.Count(text, "x") < 200 {
		t.Errorf("drawn as\n%s", text)
	}
	machine.PCI[0].Vendor, machine.PCI[0].Device = new(uint16(1)), new(uint16(2))
	hostile := func(uint16, uint16) (string, string) { return "Evil\x1b]0;\a\nCorp", "\u202e<b>\x9b2J" }
	named := files.Render(t, func(w io.Writer) error { return Text(w, machine, TextOptions{Names: hostile}) })
	if !strings.Contains(named, "Evil?]0;? Corp ?<b>?2J") {
		t.Errorf("names drawn as\n%s", named)
	}
	svg := files.Render(t, func(w io.Writer) error { return SVG(w, machine, hostile) })
	if !strings.Contains(svg, "Evil?]0;? Corp ?&lt;b&gt;?2J") {
		t.Errorf("names drawn as\n%s", svg)
	}
	if !strings.Contains(svg, "?[2J?&lt;script&gt;") || !strings.Contains(svg, "a?b&amp;c") {
		t.Errorf("drawn as\n%s", svg)
	}
}

// TestCPUsWithoutAPlaceAreDrawn: node 0 can be offline while its CPUs are not.
func TestCPUsWithoutAPlaceAreDrawn(t *testing.T) {
	machine := numa.Machine{
		Present: cpuset.New(0, 1, 2, 3), Online: cpuset.New(0, 1, 2),
		Zones: []numa.Zone{{ID: 1, CPUs: cpuset.New(2), Kind: numa.CPUZone}},
		Cores: []numa.Core{{Zone: 1, CPUs: cpuset.New(2)}},
		PCI:   []numa.PCIFunction{{Address: "0000:01:00.0", Kind: numa.GPUFunction, Zone: new(0)}},
	}
	const want = `1 NUMA node, 1 core, 3 CPUs

+- node 1 +
| [2]     |
+---------+
+- offline CPUs ----------------+ +- CPUs without a known node ---+
| 3                             | | 0-1                           |
+-------------------------------+ +-------------------------------+
+- devices without a known node +
| gpu 0000:01:00.0              |
+-------------------------------+
`
	if text := drawn(t, machine, 0); !strings.HasPrefix(text, want) {
		t.Errorf("drawn as\n%s", text)
	}
}

// No CPU is drawn in a socket or a die that is not its own, also if their L3 is one.
func TestAnL3OfSeveralSocketsIsDrawnInEach(t *testing.T) {
	all := cpuset.New(0, 1, 2)
	core := func(cpu, socket, die int) numa.Core {
		return numa.Core{Socket: &socket, Die: &die, L3: new(7), CPUs: cpuset.New(cpu)}
	}
	text := drawn(t, numa.Machine{
		Online: all, Zones: []numa.Zone{{Kind: numa.CPUZone, CPUs: all, Sockets: []int{0, 1}}}, L3s: []numa.Cache{{ID: 7, CPUs: all}},
		Cores: []numa.Core{core(0, 0, 0), core(1, 0, 1), core(2, 1, 0)},
	}, 0)
	for _, want := range []string{
		"socket 0, die 0, L3 7", "with socket 1; with die 1", "socket 0, die 1, L3 7", "with socket 1; with die 0", "socket 1, die 0, L3 7", "with socket 0 ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestTextSaysWhichMachineItIs(t *testing.T) {
	for want, p := range map[string]*numa.Platform{
		"\nExample Server 1, BIOS 2.4 (04/14/2022)\n": {Vendor: "Example", Product: "Server 1", BIOSVendor: "Firm", BIOSVersion: "2.4", BIOSDate: "04/14/2022"},
		"\nExample Server 1\n":                        {Vendor: "Example", Product: "Example Server 1"},
		"\nBIOS 7\n":                                  {BIOSVersion: "7"},
	} {
		machine := sample.Machine(t, "rig")
		machine.Platform = p
		var text strings.Builder
		if err := Text(&text, machine, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), want) {
			t.Errorf("%+v: want the line %q in\n%s", *p, want, text.String())
		}
	}
}
