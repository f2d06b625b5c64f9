package page

import (
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/placement"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
)

// What kubectl-numa may take.
const (
	programBytes = 45_000_000
	kubectl      = "kubectl-numa"
)

func (p Page) goals(ratios []ratio) string {
	var rows [][]string
	why := ""
	goal := func(what, limit, measured string, verdict compare.Verdict) {
		rows = append(rows, []string{what, limit, measured, "**" + string(verdict) + "**"})
	}
	for _, r := range ratios {
		if r.Goal > 0 {
			goal(r.Name, "≤ "+fraction(r.Goal), spread(r.Spread, fraction), r.AtMost(r.Goal))
		}
	}
	for i, program := range placement.Programs() {
		if program.Ours {
			continue
		}
		worse := p.worseThan(i)
		verdict, measured := compare.Met, fmt.Sprintf("better on %d of %d machines, equal on %d", p.betterThan(i), len(p.Placements), len(p.Placements)-p.betterThan(i)-len(worse))
		if len(worse) > 0 {
			verdict, measured = compare.Missed, measured+fmt.Sprintf(", worse on %v", worse)
		}
		goal("placement / "+program.Name, "never worse", measured, verdict)
	}
	for _, program := range p.Programs {
		if program.Name == kubectl {
			bytes := float64(program.Bytes)
			verdict := compare.Spread{Median: bytes, Low: bytes, High: bytes}.AtMost(programBytes)
			goal("`kubectl numa` on disk", "≤ 45 MB", fmt.Sprintf("%.1f MB", bytes/1e6), verdict)
			if verdict != compare.Met {
				why = "The largest part of `kubectl numa` is the types of all of Kubernetes' APIs. client-go registers them, with the methods by which each is encoded and copied.\n"
			}
		}
	}
	return "## Goals\nA goal is met if all rounds meet it, and missed if none does. In between it is not decided.\n\n" +
		plot.Table([]string{"what", "goal", "measured", "verdict"}, rows) + "\nWhat a claim adds to the start of a pod is in [bench-start.md](bench-start.md).\n" + why
}

// rival is our program that places the same kind of claim as program i.
func rival(i int) int {
	programs := placement.Programs()
	return slices.IndexFunc(programs, func(p placement.Program) bool { return p.Ours && p.Spans == programs[i].Spans })
}

// worseThan returns the machines on which ours is worse than program i.
func (p Page) worseThan(i int) (machines []string) {
	for _, r := range p.Placements {
		if r.Scores[rival(i)].Compare(r.Scores[i]) > 0 {
			machines = append(machines, r.Machine)
		}
	}
	return machines
}

func (p Page) betterThan(i int) (machines int) {
	for _, r := range p.Placements {
		if r.Scores[rival(i)].Compare(r.Scores[i]) < 0 {
			machines++
		}
	}
	return machines
}

// fraction returns a ratio as people say it: 0.002 is 1/500.
func fraction(v float64) string {
	if v > 0 && v <= 0.1 {
		return "1/" + plot.Number(1/v)
	}
	return plot.Number(v)
}

// spread returns the median and the range.
func spread(s compare.Spread, text func(float64) string) string {
	if s.Low == s.High {
		return text(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", text(s.Median), text(s.Low), text(s.High))
}

func kib(bytes float64) string { return fmt.Sprintf("%.1f KiB", bytes/1024) }
