package main

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
)

// goal is what the time of one case / that of another one must be.
type goal struct {
	version     string
	what        string
	a, b        string // cases
	least, most float64
}

// The versions of Kubernetes.
const now, next = "1.37", "1.38"

// goals are those of the page. A limit of 0 is none.
func goals() (list []goal) {
	for _, v := range []struct {
		version string
		least   float64
	}{{now, 0.9}, {next, 0.65}} {
		list = append(list,
			goal{version: v.version, what: "a GPU's claim / ours, empty node", a: gpu, b: ours, least: v.least},
			goal{version: v.version, what: "a GPU's claim / ours, 75 % full", a: gpuFilled, b: oursFilled, least: v.least})
	}
	list = append(list,
		goal{next, "ours with 5,000 shares elsewhere / with none", oursFew, ours, 0.85, 1.15},
		goal{next, "ours with 50,000 shares elsewhere / with none", oursMany, ours, 0.85, 1.15},
		goal{version: next, what: "a GPU's claim beside 4 zones / alone", a: besideZones, b: gpu, most: 2.2},
		goal{version: next, what: fmt.Sprintf("a GPU's claim beside 4 zones and %d functions / alone", functions), a: besideFunctions, b: gpu, most: 4.5},
		goal{version: next, what: "a GPU's claim beside 4 zones / beside one device per CPU", a: besideZones, b: besidePerCPU, most: 0.25},
		goal{version: next, what: fmt.Sprintf("a GPU's claim beside 4 zones and %d functions / beside one device per CPU", functions), a: besideFunctions, b: besidePerCPU, most: 0.25},
	)
	return list
}

func (g goal) limit() string {
	switch {
	case g.least > 0 && g.most > 0:
		return fmt.Sprintf("%s to %s", plot.Number(g.least), plot.Number(g.most))
	case g.least > 0:
		return "≥ " + plot.Number(g.least)
	}
	return "≤ " + plot.Number(g.most)
}

// judge: the middle half of the rounds must be within the limits.
func (g goal) judge(s compare.Spread) compare.Verdict {
	verdict := compare.Met
	for _, limit := range []struct {
		value float64
		judge func(float64) compare.Verdict
	}{{g.least, s.AtLeast}, {g.most, s.AtMost}} {
		if limit.value == 0 {
			continue
		}
		switch limit.judge(limit.value) {
		case compare.Missed:
			return compare.Missed
		case compare.NotDecided:
			verdict = compare.NotDecided
		case compare.Met:
		}
	}
	return verdict
}
