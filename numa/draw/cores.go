package draw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// group is the cores of a zone that share an L3, a socket and a die, as far as they are known.
type group struct {
	title  string
	shared string      // who else shares the L3: other sockets or dies of the zone, and other zones
	cores  []numa.Core // sorted by first CPU
}

// groups returns the groups of a zone, in the order of their first cores.
func (s *scene) groups(zone *numa.Zone) (groups []group) {
	type key struct{ socket, die, l3 int }
	var keys []key
	var own []numa.Core
	for i := range s.machine.Cores {
		if s.machine.Cores[i].Zone == zone.ID {
			own = append(own, s.machine.Cores[i])
		}
	}
	severalSockets, severalDies := several(own)
	for i := range own {
		core := &own[i]
		k := key{orNone(core.Socket), orNone(core.Die), orNone(core.L3)}
		at := slices.Index(keys, k)
		if at < 0 {
			at = len(keys)
			keys = append(keys, k)
			groups = append(groups, group{
				title:  s.groupTitle(core, severalSockets, severalDies),
				shared: s.sharedWith(core, own),
			})
		}
		groups[at].cores = append(groups[at].cores, *core)
	}
	for i := range groups {
		slices.SortFunc(groups[i].cores, byFirstCPU)
	}
	return groups
}

func byFirstCPU(a, b numa.Core) int {
	first, _ := a.CPUs.First()
	second, _ := b.CPUs.First()
	return first - second
}

// orNone returns the id, or -1 if it is not known. No id is -1.
func orNone(id *int) int {
	if id == nil {
		return -1
	}
	return *id
}

// differ reports whether both ids are known, and are not the same.
func differ(a, b *int) bool { return a != nil && b != nil && *a != *b }

// several reports whether the cores have different socket numbers, and whether they
// have different die numbers.
func several(cores []numa.Core) (sockets, dies bool) {
	for i := range cores {
		sockets = sockets || orNone(cores[i].Socket) != orNone(cores[0].Socket)
		dies = dies || orNone(cores[i].Die) != orNone(cores[0].Die)
	}
	return sockets, dies
}

// groupTitle returns the title of a group, or "" if nothing distinguishes the group
// from the rest of its zone.
func (s *scene) groupTitle(core *numa.Core, socket, die bool) string {
	var facts []string
	if socket && core.Socket != nil {
		facts = append(facts, "socket "+strconv.Itoa(*core.Socket))
	}
	if die && core.Die != nil {
		facts = append(facts, "die "+strconv.Itoa(*core.Die))
	}
	if core.L3 != nil {
		facts = append(facts, "L3 "+strconv.Itoa(*core.L3))
	}
	if cache, ok := s.l3(core); ok && cache.SizeBytes != nil {
		facts = append(facts, canvas.Size(*cache.SizeBytes))
	}
	return canvas.Printable(strings.Join(facts, ", "))
}

// l3 returns the L3 of a core. ok is false if the L3 is not known.
func (s *scene) l3(core *numa.Core) (cache numa.Cache, ok bool) {
	if core.L3 == nil {
		return numa.Cache{}, false
	}
	at := slices.IndexFunc(s.machine.L3s, func(cache numa.Cache) bool { return cache.ID == *core.L3 })
	if at < 0 {
		return numa.Cache{}, false
	}
	return s.machine.L3s[at], true
}

// sharedWith returns "with socket 1; with nodes 2, 3" if CPUs of another socket or die of the
// zone share the core's L3, and those of other zones. own are the cores of the zone.
func (s *scene) sharedWith(core *numa.Core, own []numa.Core) string {
	cache, ok := s.l3(core)
	if !ok {
		return ""
	}
	var sockets, dies, nodes []string
	for i := range own {
		other := &own[i]
		switch {
		case orNone(other.L3) != cache.ID:
		case differ(other.Socket, core.Socket):
			sockets = append(sockets, strconv.Itoa(*other.Socket))
		case differ(other.Die, core.Die):
			dies = append(dies, strconv.Itoa(*other.Die))
		}
	}
	for i := range s.machine.Zones {
		if zone := &s.machine.Zones[i]; zone.ID != core.Zone && zone.CPUs.Overlaps(cache.CPUs) {
			nodes = append(nodes, strconv.Itoa(zone.ID))
		}
	}
	var parts []string
	for _, part := range []struct {
		what string
		ids  []string
	}{{"socket", slices.Compact(sockets)}, {"die", slices.Compact(dies)}, {"node", nodes}} {
		switch len(part.ids) {
		case 0:
		case 1:
			parts = append(parts, "with "+part.what+" "+part.ids[0])
		default:
			parts = append(parts, "with "+part.what+"s "+strings.Join(part.ids, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// cores returns the parts of a zone's box that show its cores.
func (s *scene) cores(zone *numa.Zone) (parts []canvas.Part) {
	groups := s.groups(zone)
	if s.detail != everyCore {
		for _, g := range groups {
			parts = append(parts, listed(g))
		}
		if isolated := zone.CPUs.Intersection(s.isolated); !isolated.IsEmpty() {
			line := append(canvas.Words("isolated", canvas.IsolatedText), canvas.CPUWords(isolated, canvas.IsolatedText)...)
			parts = append(parts, canvas.Paragraph{Words: line, Indent: 2})
		}
		return parts
	}
	var caches canvas.Grid
	for _, g := range groups {
		if g.title == "" {
			parts = append(parts, s.coreParts(g.cores)...)
			continue
		}
		inside := canvas.Stack{Parts: append([]canvas.Part{canvas.Text(g.shared, canvas.Muted)}, s.coreParts(g.cores)...)}
		caches = append(caches, canvas.Box{Title: g.title, Look: canvas.CacheFrame, Content: inside})
	}
	return append(parts, caches)
}

// listed returns a group as one line.
func listed(g group) canvas.Part {
	p := canvas.Paragraph{Indent: 2}
	if g.shared != "" {
		p.Words = canvas.Words(g.title+", "+g.shared+":", canvas.Muted)
	} else if g.title != "" {
		p.Words = canvas.Words(g.title+":", canvas.Muted)
	}
	for i, kind := range byType(g.cores) {
		if i > 0 {
			p.Words[len(p.Words)-1].Text += ","
		}
		var cpus cpuset.Set
		for j := range kind {
			cpus = cpus.Union(kind[j].CPUs)
		}
		p.Words = append(p.Words, canvas.Words(coreCount(kind), canvas.Plain)...)
		p.Words = append(p.Words, canvas.CPUWords(cpus, canvas.CPUText)...)
	}
	return p
}

// coreParts shows each core. On a hybrid machine, it groups the cores by type.
func (s *scene) coreParts(cores []numa.Core) (parts []canvas.Part) {
	for _, kind := range byType(cores) {
		if kind[0].Type == numa.PerformanceCores || kind[0].Type == numa.EfficientCores {
			parts = append(parts, canvas.Text(coreCount(kind), canvas.Muted))
		}
		parts = append(parts, s.newChips(kind))
	}
	return parts
}

// coreCount returns a text such as "6 performance cores".
func coreCount(cores []numa.Core) string {
	if kind := cores[0].Type; kind != "" && kind != numa.StandardCores {
		return canvas.Count(len(cores), string(kind)+" core")
	}
	return canvas.Count(len(cores), "core")
}

// byType splits cores by type, in the order in which the types occur.
func byType(cores []numa.Core) (split [][]numa.Core) {
	for i := range cores {
		at := slices.IndexFunc(split, func(kind []numa.Core) bool { return kind[0].Type == cores[i].Type })
		if at < 0 {
			at = len(split)
			split = append(split, nil)
		}
		split[at] = append(split[at], cores[i])
	}
	return split
}
