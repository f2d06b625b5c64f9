package web

import (
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/cpumap"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// cacheView is the CPUs that share an L3: a picture with a cell for each CPU, and the same
// as text.
type cacheView struct {
	Title, Label  string // Label is the text of the picture for people who do not see it
	Width, Height int    // with a margin of 1 on each side, for the frames of cores
	Cores         []rect
	Cells         []cell
	Groups        []groupView
}

// cell is a CPU.
type cell struct {
	rect
	ID   int
	IDY  int
	Hint string
}

// groupView is the CPUs of an L3 with the same use.
type groupView struct {
	Sign        *picture
	Claim, What string // Claim or What is ""
	CPUs        cpuset.Set
}

// Sizes of the picture, in user units. Siblings touch, and cores have a gap between them.
const (
	cpuWidth, cpuHeight = 25, 30
	coreGap             = 5
)

// cpusPerRow returns how many CPUs fit in a row: fewer for small caches, so that several of
// them are next to each other.
func cpusPerRow(cpus int) int {
	if cpus <= 32 {
		return 8
	}
	return 16
}

// sizeOf returns the number of CPUs of a cache, and of its largest core.
func sizeOf(cache cpumap.Cache) (cpus, threads int) {
	for _, core := range cache.Cores {
		cpus, threads = cpus+len(core), max(threads, len(core))
	}
	return cpus, threads
}

// cacheViewOf draws the CPUs of a cache. Each claim has its sign.
func cacheViewOf(cache cpumap.Cache, signs *chart.Signs) cacheView {
	cpus, threads := sizeOf(cache)
	view := cacheView{Title: "cores"}
	if cache.L3 != nil {
		view.Title = "L3 " + strconv.Itoa(*cache.L3)
	}
	view.Label = fmt.Sprintf("%s: %s of %s, each with its CPUs next to each other. The text below says the same.",
		view.Title, canvas.Count(cpus, "CPU"), canvas.Count(len(cache.Cores), "core"))
	columns := max(cpusPerRow(cpus)/threads, 1)
	coreWidth := threads*cpuWidth + coreGap
	for i, core := range cache.Cores {
		x, y := i%columns*coreWidth, i/columns*(cpuHeight+coreGap)
		view.Cores = append(view.Cores, rect{X: x, Y: y, W: len(core) * cpuWidth, H: cpuHeight})
		for j, cpu := range core {
			view.Cells = append(view.Cells, cellOf(cpu, signs, x+j*cpuWidth, y))
		}
		view.Width, view.Height = max(view.Width, x+coreWidth-coreGap+2), y+cpuHeight+2
	}
	for _, group := range cache.Groups() {
		view.Groups = append(view.Groups, groupViewOf(group, signs))
	}
	return view
}

// figure shows the picture with its title.
func (v cacheView) figure() g.Node {
	return el("figure",
		el("figcaption", text(v.Title)),
		el("svg",
			attr("class", "cpus"), attr("role", "img"), attr("aria-label", v.Label),
			attr("viewBox", fmt.Sprintf("-1 -1 %d %d", v.Width, v.Height)), number("width", v.Width), number("height", v.Height),
			g.Map(v.Cells, cell.shapes),
			g.Map(v.Cores, func(r rect) g.Node { return r.bar("core") }),
		),
	)
}

func (c cell) shapes() g.Node {
	return el("g", el("title", text(c.Hint)), c.bar(c.Class), label("sign id", c.SignX, c.IDY, strconv.Itoa(c.ID)), c.sign())
}

// rows shows the same as rows of a table.
func (v cacheView) rows() g.Node {
	return g.Map(v.Groups, func(group groupView) g.Node {
		return el("tr",
			rowHead(text(v.Title)),
			el("td", text(group.CPUs.String())),
			el("td",
				group.Sign.svg(),
				text(" "+group.What),
				g.If(group.Claim != "", g.Group{text(" "), claimLink(group.Claim)}),
			),
		)
	})
}

// cellOf draws a CPU at a position.
func cellOf(cpu cpumap.CPU, signs *chart.Signs, x, y int) cell {
	look, sign := lookOf(cpu, signs)
	return cell{
		rect: rect{Class: look, X: x, Y: y, W: cpuWidth, H: cpuHeight, Sign: sign, SignX: x + cpuWidth/2, SignY: y + cpuHeight - 5},
		ID:   cpu.ID, IDY: y + 11, Hint: fmt.Sprintf("CPU %d: %s", cpu.ID, describe(cpu)),
	}
}

// lookOf returns the class and the sign of a CPU. No two uses differ only in colour.
func lookOf(cpu cpumap.CPU, signs *chart.Signs) (class, sign string) {
	if cpu.Claim != "" {
		run := signs.Sample(cpu.Claim)[0]
		class, sign = canvas.ClassName(run.Look), string(rune(run.Sign))
		if cpu.Use == cpumap.Idle {
			class += " idle"
		}
		return class, sign
	}
	switch cpu.Use {
	case cpumap.Idle:
		return "free idle", "-"
	case cpumap.Reserved:
		return "reserved", "#"
	case cpumap.Blocked:
		return canvas.ClassName(canvas.Blocked), "x"
	}
	return canvas.ClassName(canvas.Free), ""
}

// describe says in a few words what a CPU is used for.
func describe(cpu cpumap.CPU) string {
	switch {
	case cpu.Use == cpumap.Idle && cpu.Claim != "":
		return "kept idle for " + cpu.Claim
	case cpu.Claim != "":
		return cpu.Claim
	case cpu.Why != "":
		return string(cpu.Use) + ": " + cpu.Why
	}
	return string(cpu.Use)
}

func groupViewOf(group cpumap.Group, signs *chart.Signs) groupView {
	view := groupView{Sign: sampleOf(group.CPU, signs), CPUs: group.CPUs}
	switch {
	case group.Use == cpumap.Idle && group.Claim != "":
		view.Claim, view.What = group.Claim, "kept idle for"
	case group.Claim != "":
		view.Claim = group.Claim
	default:
		view.What = describe(group.CPU)
	}
	return view
}

// sampleOf returns a picture of one cell without an id.
func sampleOf(cpu cpumap.CPU, signs *chart.Signs) *picture {
	class, sign := lookOf(cpu, signs)
	const size = 16
	return &picture{Width: size, Height: size, Rects: []rect{{Class: class, W: size, H: size, Sign: sign, SignX: size / 2, SignY: size - 4}}}
}

// legendEntry explains the look of CPUs that no claim has.
type legendEntry struct {
	Sign *picture
	Text string
}

// legendOf explains the uses that a map has.
func legendOf(m cpumap.Map) (legend []legendEntry) {
	used := make(map[cpumap.Use]bool)
	for _, n := range m.NUMANodes {
		for _, cache := range n.Caches {
			for _, group := range cache.Groups() {
				used[group.Use] = true
			}
		}
	}
	for _, use := range cpumap.Uses() {
		if text := map[cpumap.Use]string{
			cpumap.Idle:     "dotted: idle, no task runs there",
			cpumap.Shared:   "shared: in no claim, tasks without a claim run there",
			cpumap.Reserved: "reserved: no claim gets it",
			cpumap.Blocked:  "blocked: no claim can get it now; the CPUs as text have the reason",
		}[use]; text != "" && used[use] {
			legend = append(legend, legendEntry{sampleOf(cpumap.CPU{Use: use}, nil), text})
		}
	}
	return legend
}
