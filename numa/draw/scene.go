package draw

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// detail is the level of detail of a drawing.
type detail int

const (
	everyCore detail = iota // each core, in the box of its L3
	coresByL3               // a list of CPUs for each L3
)

// scene is a machine while it is arranged.
type scene struct {
	machine  numa.Machine
	detail   detail
	names    Names // nil means that no names are drawn
	isolated cpuset.Set
	widths   []int                // widths of the first, second, … word of all cores
	nearest  map[int][]*numa.Zone // zones without CPUs, by the zone in whose box they are drawn
	free     []*numa.Zone         // zones that are not drawn in the box of another zone
	devices  map[int][]function   // by zone
	unknown  []function           // functions without a known zone
}

// arrange returns the whole drawing of a machine.
func arrange(m numa.Machine, names Names, d detail) canvas.Part {
	s := scene{machine: m, detail: d, names: names, nearest: map[int][]*numa.Zone{}}
	if m.Isolated != nil {
		s.isolated = *m.Isolated
	}
	s.widths = wordWidths(m.Cores, s.isolated)
	s.devices, s.unknown = functionsByZone(m)
	for i := range m.Zones {
		zone := &m.Zones[i]
		if host, ok := s.host(zone); ok {
			s.nearest[host] = append(s.nearest[host], zone)
		} else {
			s.free = append(s.free, zone)
		}
	}
	var nodes canvas.Grid
	for _, zone := range s.free {
		nodes = append(nodes, s.zone(zone))
	}
	return canvas.Stack{Gap: 1, Parts: []canvas.Part{s.summary(), canvas.Stack{Parts: []canvas.Part{nodes, s.elsewhere()}}, s.distances(), s.legend()}}
}

// host returns the zone with CPUs in whose box a zone without CPUs is drawn.
func (s *scene) host(zone *numa.Zone) (id int, ok bool) {
	if !zone.CPUs.IsEmpty() || zone.Nearest == nil {
		return 0, false
	}
	near, found := s.machine.Zone(*zone.Nearest)
	return near.ID, found && !near.CPUs.IsEmpty()
}

// zone returns the box of a zone: its memory, its cores, the zones that are nearest to
// it, and its devices.
func (s *scene) zone(zone *numa.Zone) canvas.Box {
	b := canvas.Box{Title: s.zoneTitle(zone), Look: canvas.SocketFrame}
	if zone.CPUs.IsEmpty() {
		b.Look = canvas.MemoryFrame
	}
	b.Content.Parts = append(b.Content.Parts, s.memory(zone)...)
	b.Content.Parts = append(b.Content.Parts, s.cores(zone)...)
	var attached canvas.Grid
	for _, near := range s.nearest[zone.ID] {
		attached = append(attached, s.zone(near))
	}
	b.Content.Parts = append(b.Content.Parts, attached)
	b.Content.Parts = append(b.Content.Parts, s.deviceParts(s.devices[zone.ID])...)
	return b
}

func (s *scene) zoneTitle(zone *numa.Zone) string {
	title := "node " + strconv.Itoa(zone.ID)
	switch zone.Kind {
	case numa.MemoryZone:
		title += ", memory only"
		if zone.CPUsIn != nil {
			title += ", with the CPUs of node " + strconv.Itoa(*zone.CPUsIn)
		}
	case numa.CXLZone:
		title += ", CXL memory"
	case numa.GPUZone:
		title += ", GPU memory"
	case numa.InitiatorZone:
		title += ", initiator"
	case numa.EmptyZone:
		title += ", empty"
	}
	switch len(zone.Sockets) {
	case 0:
		return title
	case 1:
		return title + ", socket " + strconv.Itoa(zone.Sockets[0])
	}
	return title + ", " + canvas.Count(len(zone.Sockets), "socket")
}

// elsewhere returns everything that does not belong to a zone.
func (s *scene) elsewhere() canvas.Part {
	var g canvas.Grid
	addCPUs := func(title string, cpus cpuset.Set) {
		if !cpus.IsEmpty() {
			list := canvas.Paragraph{Words: canvas.CPUWords(cpus, canvas.Muted)}
			g = append(g, canvas.Box{Title: title, Look: canvas.OtherFrame, Content: canvas.Stack{Parts: []canvas.Part{list}}})
		}
	}
	lost := s.machine.Online
	for i := range s.machine.Zones {
		lost = lost.Difference(s.machine.Zones[i].CPUs)
	}
	addCPUs("offline CPUs", s.machine.Present.Difference(s.machine.Online))
	addCPUs("CPUs without a known node", lost)
	if len(s.unknown) > 0 {
		g = append(g, canvas.Box{Title: "devices without a known node", Look: canvas.OtherFrame, Content: canvas.Stack{Parts: s.deviceParts(s.unknown)}})
	}
	return g
}

// distances returns the matrix of distances if there are several zones. Each row has
// the distances from one zone.
func (s *scene) distances() canvas.Part {
	t := canvas.Table{Corner: "distance"}
	for i := range s.machine.Zones {
		t.Columns = append(t.Columns, strconv.Itoa(s.machine.Zones[i].ID))
	}
	known := false
	for i := range s.machine.Zones {
		zone := &s.machine.Zones[i]
		row := slices.Repeat([]string{"?"}, len(t.Columns))
		for _, distance := range zone.Distances {
			if at := slices.Index(t.Columns, strconv.Itoa(distance.Zone)); at >= 0 {
				row[at], known = strconv.Itoa(distance.Value), true
			}
		}
		t.Rows = append(t.Rows, fmt.Sprintf("node %d", zone.ID))
		t.Cells = append(t.Cells, row)
	}
	if len(t.Rows) < 2 || !known {
		return canvas.Stack{}
	}
	return t
}
