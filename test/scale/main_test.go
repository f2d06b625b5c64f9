package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/scale/page"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

func TestFlags(t *testing.T) {
	c, err := parse([]string{"-sizes", "20 50,100", "-pods", "40", "-pairs", "2", "-attributes", "1,4"})
	if err != nil || !slices.Equal(c.sizes, []int{20, 50, 100}) || !slices.Equal(c.attributes, []int{1, 4}) || c.pages != "../../docs" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := parse([]string{"-order"}); err != nil || !slices.Equal(c.sizes, []int{50, 500}) || c.pods != 1000 {
		t.Errorf("%+v, %v", c, err)
	}
	for args, want := range map[string]string{
		"-order -sizes 9":        "9 nodes have room for 1 to 288",
		"-sizes 100,20":          "20 follows 100",
		"-sizes 0":               "0 follows 0",
		"-sizes ,":               "no number of nodes",
		"-sizes many":            "many",
		"-sizes 9,500 -pods 145": "9 nodes have room for 1 to 144",
		"-pairs 1":               "needs 2 or more",
		"-goal-pairs -1":         "0 or more",
		"-starts 1":              "needs 2 or more",
		"-too-much -1":           "0 or more",
		"-sizes 100 nonsense":    `unexpected argument "nonsense"`,
		"-sizes 100 -unknown=1":  "unknown",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestWhatIsAddedRunsWithOneSize(t *testing.T) {
	m, err := shape.Machine()
	if err != nil {
		t.Fatal(err)
	}
	all, err := shape.All(m)
	if err != nil {
		t.Fatal(err)
	}
	mixes, err := shape.Mixes()
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]map[int][]int{
		"":                                     {100: {6, 3, 4, 3}, 500: {8 + 7 + 3, 2, 2}, 2000: {6, 2}},
		"-foreign 0 -too-much 0 -goal-pairs 0": {100: {6, 3, 4}, 500: {8 + 7}, 2000: {6}},
		"-growth":                              {500: {3}, 5000: {3}},
	} {
		c, err := parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		shapes, mixes := all, mixes
		if c.growth {
			shapes, mixes = only(all, page.InGrowth), nil
		}
		for _, nodes := range c.sizes {
			var trials []int
			for _, round := range c.rounds(nodes, only(shapes, func(s shape.Shape) bool { return page.Runs(s, nodes, c.sizes) }), mixes) {
				trials = append(trials, len(round.trials))
			}
			if !slices.Equal(trials, want[nodes]) {
				t.Errorf("%q, %d nodes: %v trials of each pair, want %v", args, nodes, trials, want[nodes])
			}
		}
	}
}

func TestNoTrialAlwaysFollowsTheSameOne(t *testing.T) {
	const pairs = 5
	for trials := 4; trials < 20; trials++ {
		first, before := map[int]bool{}, map[[2]int]int{}
		for pair := range pairs {
			list := order(trials, pair, pairs)
			first[list[0]] = true
			for i, trial := range list[1:] {
				before[[2]int{list[i], trial}]++
			}
			if sorted := slices.Compact(slices.Sorted(slices.Values(list))); len(sorted) != trials || sorted[0] != 0 || sorted[trials-1] != trials-1 {
				t.Errorf("%d trials, pair %d: %v", trials, pair, list)
			}
		}
		if want := min(trials, pairs); len(first) != want {
			t.Errorf("%d trials: %d are first, want %d", trials, len(first), want)
		}
		for two, times := range before {
			if times > 3 {
				t.Errorf("%d trials: %d follows %d in %d of %d pairs", trials, two[1], two[0], times, pairs)
			}
		}
	}
	if got, want := order(4, 1, 5), []int{0, 3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestDaemonsAreSpreadOverProcesses(t *testing.T) {
	if count, err := processes(1); err != nil || count != 1 {
		t.Errorf("one daemon: %d processes, %v", count, err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	fit := int(limit.Cur / filesOfDaemon)
	for daemons, want := range map[int]int{fit: 1, fit + 1: 2, 3 * fit: 3} {
		if count, err := processes(daemons); err != nil || count != want {
			t.Errorf("%d daemons: %d processes, %v, want %d", daemons, count, err, want)
		}
	}
}
