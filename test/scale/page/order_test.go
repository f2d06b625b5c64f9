package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/trial"
)

// ordered is a page with results of 500 nodes. Each pair has another speed of the machine.
func ordered() OrderPage {
	p := OrderPage{Conditions: Conditions{Machine: host.Machine{Load: "0.30, 1.20, 3.00"}, Kubernetes: "1.37", Pods: 1000, Pairs: 3}}
	for pair := range p.Pairs {
		speed := float64(10 * (1 + pair))
		for i, every := range Everies {
			o := trial.Ordered{Every: every, Evenness: trial.Evenness{Several: 400, OneZone: 400, Difference: 4}}
			o.Nodes, o.PodsPerSecond, o.SchedulerCPU = 500, speed, 20*time.Millisecond
			if every > 0 {
				o.PodsPerSecond, o.SchedulerCPU, o.Writes, o.OneZone, o.Difference = 0.95*speed, 21*time.Millisecond, 900-100*i, 100*(i-1), 2
			}
			p.Placed = append(p.Placed, o)
		}
		without := trial.Woken{Nodes: 500, Pending: 1000, SchedulerCPU: 10 * time.Millisecond, Wait: 20 * time.Millisecond}
		with := trial.Woken{Nodes: 500, Pending: 1000, Write: true, Attempts: 1000, SchedulerCPU: 30010 * time.Millisecond, Wait: time.Duration(20+pair) * time.Second}
		if pair == 1 {
			without, with = with, without
		}
		p.Woken = append(p.Woken, without, with)
	}
	return p
}

func TestOrderIsBesideStatic(t *testing.T) {
	p, folder := ordered(), t.TempDir()
	if err := p.Write(folder); err != nil {
		t.Fatal(err)
	}
	read, err := os.ReadFile(filepath.Join(folder, orderPage))
	if err != nil {
		t.Fatal(err)
	}
	text := string(read)
	for _, line := range []string{
		"| pods/s, 500 nodes, spread, after each claim / static | ≥ 0.9 | 0.95 (0.95 to 0.95) | **met** |",
		"| nodes whose claims are all on one zone, of those with several, 500 nodes, spread, after each claim | 0 | 0 (0 to 0) | **met** |",
		"| attempts in vain after one write, 500 nodes | ≤ 1000 | 1000 (1000 to 1000) | **met** |",
		"| static | 20 | 1 (1 to 1) | 20 ms | 1 (1 to 1) | 0 | 400 | 100 % | 4 (4 to 4) |",
		"| spread, after every 64 claims | 19 | 0.95 (0.95 to 0.95) | 21 ms | 1.05 (1.05 to 1.05) | 500 | 400 | 75 % | 2 (2 to 2) |",
		"One write takes the scheduler 30 s more of\nCPU time (median), 30 ms for each attempt in vain.",
		"| no write | 0 (0 to 0) | 10 ms (10 ms to 10 ms) | 20 ms (20 ms to 20 ms) |",
		"| one write of one slice | 1000 (1000 to 1000) | 30 s (30 s to 30 s) | 21 s (20 s to 22 s) |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, orderFigure)); err != nil || !strings.Contains(text, "("+orderFigure+")") {
		t.Errorf("figure: %v", err)
	}
	p.Machine.Load = "1.50, 1.20, 3.00"
	text, _, err = p.render()
	if err != nil || strings.Contains(text, "**met**") || !strings.Contains(text, "judges no goal: run `make scale-order`") {
		t.Errorf("on a busy machine: %v\n%s", err, text)
	}
}

func TestOrderGoalsAreMissed(t *testing.T) {
	p := ordered()
	for i := range p.Placed {
		if p.Placed[i].Every == 1 {
			p.Placed[i].PodsPerSecond /= 2
			p.Placed[i].OneZone = 1
		}
	}
	for i := range p.Woken {
		p.Woken[i].Attempts *= 2
	}
	if text := p.goals(); strings.Count(text, "**missed**") != 3 {
		t.Errorf("the goals are\n%s", text)
	}
}

func TestOrderPageNeedsEveryPair(t *testing.T) {
	for _, row := range []struct {
		remove func(*OrderPage)
		want   string
	}{
		{func(p *OrderPage) { p.Placed = p.Placed[1:] }, `2 results of "static" with 500 nodes, want 3`},
		{func(p *OrderPage) { p.Woken = p.Woken[1:] }, `2 results of "no write" with 500 nodes, want 3`},
		{func(p *OrderPage) { p.Placed = nil }, "no results"},
	} {
		p := ordered()
		row.remove(&p)
		if _, _, err := p.render(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, want %q", err, row.want)
		}
	}
}
