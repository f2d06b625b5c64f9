package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// stateOf is the state of a node that is a preset of numa/fake, with the first core
// reserved.
func stateOf(tb testing.TB, preset string) *nodestate.State {
	tb.Helper()
	layout := nodestate.LayoutOf(sample.Machine(tb, preset))
	layout.Reserved = &layout.Caches[0].Cores[0]
	return &nodestate.State{Layout: layout}
}

// drawn serves the pages of a cluster whose nodes say where their CPUs are. Every other
// node says nothing.
func drawn(tb testing.TB, c *occupied.Cluster, live bool, states map[string]*nodestate.State) (*Board, http.Handler) {
	tb.Helper()
	board := NewBoard()
	board.Show(&c.Snapshot)
	return board, Handler(board, Options{
		Live: live, From: "the cluster", Explain: explained, Events: eventsOf(
			event("Node/worker-1", "worker-1", "device numa-1: 4 MiB of hugepages of claim default/huge are missing", 4),
			event("Pod/default/alpha", "default/alpha", "Other tasks may run on CPUs 4-5 of claim alpha-zone: the kernel says invalid", 3),
			event("ResourceClaim/default/alpha-zone", "default/alpha-zone", "allocated", 1),
		),
		State: func(_ context.Context, _ *snapshot.Snapshot, node string) (*nodestate.State, error) {
			if state := states[node]; state != nil {
				return state, nil
			}
			return nil, errors.New("ann <may> not")
		},
	})
}

// addBig adds a node with 512 CPUs and 60 claims that hold 8 CPUs each. The first keeps
// siblings idle.
func addBig(c *occupied.Cluster) *occupied.Cluster {
	c.AddMachine("big", "512cpus", nil)
	for i := range 60 {
		first := i*4 + 8
		name := fmt.Sprintf("trainer-%d", i)
		share := occupied.Share{Node: "big", Device: fmt.Sprintf("numa-%d", first/128), Amounts: "cpu=8,memory=8Gi"}
		share.CPUs, share.Mems = ptr.To(fmt.Sprintf("%d-%d,%d-%d", first, first+3, first+256, first+259)), fmt.Sprint(first/128)
		if i == 0 {
			share.IdleCPUs = fmt.Sprintf("%d-%d", first+256, first+259)
		}
		c.AddClaim("team/"+name, share)
		c.AddPod("team/"+name, "big", name)
	}
	return c
}

var cellText = regexp.MustCompile(`<g><title>CPU (\d+): ([^<]*)</title><rect class="([^"]*)" x="(\d+)" y="(\d+)" width="25" height="30"/><text class="sign id" x="\d+" y="\d+">(\d+)</text>(?:<text class="sign" x="\d+" y="\d+">(.)</text>)?</g>`)

// drawnCell is a cell of a page.
type drawnCell struct {
	hint, class, sign string
	x, y              int
}

// cellsOf are the cells of a page by CPU. Each CPU has one cell.
func cellsOf(tb testing.TB, text string) map[int]drawnCell {
	tb.Helper()
	cells := make(map[int]drawnCell)
	for _, match := range cellText.FindAllStringSubmatch(text, -1) {
		id, _ := strconv.Atoi(match[1])
		x, _ := strconv.Atoi(match[4])
		y, _ := strconv.Atoi(match[5])
		if _, twice := cells[id]; twice || match[6] != match[1] {
			tb.Errorf("CPU %d is drawn twice, or with the id %s", id, match[6])
		}
		cells[id] = drawnCell{match[2], match[3], match[7], x, y}
	}
	if all := strings.Count(text, "<g>"); all != len(cells) {
		tb.Errorf("%d cells have another form", all-len(cells))
	}
	return cells
}

func TestCPUsAreDrawnByCoreAndL3(t *testing.T) {
	_, handler := drawn(t, occupied.Showcase(t), false, map[string]*nodestate.State{"worker-1": stateOf(t, "rig")})
	text := page(t, handler, "/nodes/worker-1")
	cells := cellsOf(t, text)
	for id, want := range map[int]drawnCell{
		0:  {"reserved", "reserved", "#", 0, 0},
		3:  {"shared", "free", "", 80, 0},
		4:  {"default/alpha-zone", "hue-0", "A", 0, 0},
		5:  {"default/alpha-zone", "hue-0", "A", 25, 0}, // next to its sibling
		6:  {"shared", "free", "", 55, 0},
		7:  {"shared", "free", "", 80, 0},
		11: {"default/beta-zone", "hue-2", "C", 80, 0},
		12: {"blocked: device numa-3 is tainted: dra.numa/fault=partition-invalid:NoSchedule", "blocked", "x", 0, 0},
	} {
		if got := cells[id]; got != want {
			t.Errorf("CPU %d is %+v, want %+v", id, got, want)
		}
	}
	testfiles.Contains(t, text,
		"<figcaption>L3 1</figcaption>", `role="img" aria-label="L3 1: 4 CPUs of 2 cores, `, "cpu: 2 of 4 free",
		`<th scope="row">L3 1</th><td>4-5</td>`, "reserved: no claim gets it", "blocked: no claim can get it now",
	)
	if len(cells) != 16 || strings.Count(text, `<svg class="cpus"`) != 4 {
		t.Errorf("%d CPUs in %d pictures", len(cells), strings.Count(text, `<svg class="cpus"`))
	}
}

// Without the layout there are numbers, as many of them as with it, and the reason.
func TestWithoutALayoutThereAreNumbers(t *testing.T) {
	old, unread := &nodestate.State{}, &nodestate.State{Problems: []nodestate.Problem{{Part: nodestate.LayoutPart, Why: "no <sys>"}}}
	unreserved := stateOf(t, "rig")
	unreserved.Layout.Reserved, unreserved.Layout.Why = nil, "process 1 is no dra-numa daemon"
	for want, state := range map[string]*nodestate.State{
		"The CPUs are not drawn: ann &lt;may&gt; not":                           nil,
		"The CPUs are not drawn: the driver on the node is too old to say":      old,
		"The CPUs are not drawn: no &lt;sys&gt;":                                unread,
		"Which CPUs are reserved is not known: process 1 is no dra-numa daemon": unreserved,
		`<title>CPU 0: reserved</title>`:                                        stateOf(t, "rig"),
	} {
		_, handler := drawn(t, occupied.Showcase(t), false, map[string]*nodestate.State{"worker-1": state})
		text := page(t, handler, "/nodes/worker-1")
		if isDrawn := strings.Contains(text, `class="cpus"`); !strings.Contains(text, want) || isDrawn != (state != nil && state.Layout != nil) || strings.Count(text, "cpu: ") != 4 {
			t.Errorf("drawn: %t, no %q in\n%s", isDrawn, want, text)
		}
	}
}

func TestNUMANodesWithoutDevicesAreDrawn(t *testing.T) {
	c := occupied.New(t)
	c.AddNode("worker-1")
	_, handler := drawn(t, c, false, map[string]*nodestate.State{"worker-1": stateOf(t, "rig")})
	text := page(t, handler, "/nodes/worker-1")
	if cells := cellsOf(t, text); len(cells) != 16 || cells[7].hint != "blocked: no device of the node has it" || !strings.Contains(text, "<h2>NUMA node 3, socket 1</h2>") {
		t.Errorf("%d CPUs, the last is %+v, in\n%s", len(cells), cells[7], text)
	}
}

// mostNodeBytes is the largest allowed page of a node with 512 CPUs and 60 claims.
const mostNodeBytes = 250_000

func TestLargeNodeIsSmall(t *testing.T) {
	_, handler := drawn(t, addBig(occupied.New(t)), true, map[string]*nodestate.State{"big": stateOf(t, "512cpus")})
	text := page(t, handler, "/nodes/big")
	cells := cellsOf(t, text)
	if got := (drawnCell{"kept idle for team/trainer-0", "hue-0 idle", "A", 25, 0}); cells[264] != got {
		t.Errorf("CPU 264 is %+v, want %+v", cells[264], got)
	}
	if len(cells) != 512 || len(text) > mostNodeBytes {
		t.Errorf("%d CPUs, %d bytes", len(cells), len(text))
	}
	t.Logf("512 CPUs and 60 claims are %d bytes", len(text))
}

// BenchmarkDrawnNode renders the page of a node with 512 CPUs.
func BenchmarkDrawnNode(b *testing.B) {
	_, handler := drawn(b, addBig(occupied.New(b)), true, map[string]*nodestate.State{"big": stateOf(b, "512cpus")})
	for b.Loop() {
		if answer := get(b, handler, "/nodes/big"); answer.Code != http.StatusOK {
			b.Fatal(answer.Code)
		}
	}
}

// A bundle may come from anyone: no layout makes the page fail or large.
func TestHostileLayoutsAreDrawn(t *testing.T) {
	all := cpuset.New()
	for id := range cpuset.MaxCPUs {
		all.Insert(id)
	}
	for name, layout := range map[string]*nodestate.Layout{
		"nothing":      {},
		"empty caches": {Caches: []nodestate.Cache{{NUMANode: -1}, {Cores: []cpuset.Set{{}}}}},
		"one core":     {Caches: []nodestate.Cache{{Cores: []cpuset.Set{all, all, all}}, {NUMANode: 1 << 40, Cores: []cpuset.Set{all}}}},
	} {
		_, handler := drawn(t, occupied.Showcase(t), false, map[string]*nodestate.State{"worker-1": {Layout: layout}})
		if text := page(t, handler, "/nodes/worker-1"); len(cellsOf(t, text)) > cpuset.MaxCPUs || len(text) > 3_000_000 {
			t.Errorf("%s: %d bytes", name, len(text))
		}
	}
}

// A node that counts what claims use says so in their rows, with or without a layout.
func TestPageOfANodeSaysWhatIsCounted(t *testing.T) {
	counted := &nodestate.Resctrl{Claims: []nodestate.ClaimUse{{
		Claim:  nodestate.Claim{Name: "default/alpha-zone"},
		Caches: []nodestate.CacheUse{{L3: 1, Counts: nodestate.Counts{OccupancyBytes: ptr.To(uint64(3 << 20))}}},
	}}}
	for name, state := range map[string]*nodestate.State{"layout": stateOf(t, "rig"), "none": {}} {
		state.Resctrl = counted
		_, handler := drawn(t, occupied.Showcase(t), true, map[string]*nodestate.State{"worker-1": state})
		if text := page(t, handler, "/nodes/worker-1"); strings.Count(text, "<p>cache 1: occupies 3 MiB</p>") != 1 {
			t.Errorf("%s: the page of the node is\n%s", name, text)
		}
	}
}
