package chart

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// Resctrl is what nodes say of their caches, by the name of the node. Nodes that were not
// asked are missing.
type Resctrl map[string]*nodestate.Resctrl

// meaning is a sign of ways that belong to no claim with a letter.
type meaning struct {
	sign byte
	text string
}

// Meanings, in the order of the legend.
const (
	ofOS = iota
	ofReserved
	ofGroups
	ofInfra
	ofShared
	ofTool
	ofNewClaim
)

func meanings() []meaning {
	return []meaning{
		ofOS:       {'_', "ways of everything that has no others (os)"},
		ofReserved: {':', "ways of the reserved CPUs"},
		ofGroups:   {'~', "ways of groups of reserved CPUs (cache.groups)"},
		ofInfra:    {'-', "ways of infra alone"},
		ofShared:   {'=', "ways of shared"},
		ofTool:     {'#', "ways of a group of another tool"},
		ofNewClaim: {lastSign, "ways of claims that came after the list was read"},
	}
}

// waysStrip draws each way of a cache, the lowest first, with the sign of its owner. If
// groups overlap, it shows the claim, then other tools, shared, os, reserved, groups and infra.
func (s *scene) waysStrip(l3 *nodestate.L3) (strip canvas.Strip, shown []int) {
	for way := range 64 {
		bit := nodestate.Mask(1) << way
		if l3.Ways&bit == 0 {
			continue
		}
		run, what := s.owner(l3, bit)
		if what >= 0 && !slices.Contains(shown, what) {
			shown = append(shown, what)
		}
		if last := len(strip) - 1; last >= 0 && strip[last].Sign == run.Sign && strip[last].Look == run.Look {
			strip[last].Cells++
		} else {
			strip = append(strip, run)
		}
	}
	return strip, shown
}

// owner returns the cell of a way, and which of the meanings it has; -1 for none.
func (s *scene) owner(l3 *nodestate.L3, way nodestate.Mask) (cell canvas.Run, what int) {
	what = -1
	rank := []int{ofTool, ofShared, ofOS, ofReserved, ofGroups, ofInfra}
	for i := range l3.Groups {
		group := &l3.Groups[i]
		if group.Ways&way == 0 {
			continue
		}
		if group.Pool == "" && len(group.Claims) > 0 {
			claim, known := s.of[group.Claims[0]]
			if !known {
				return canvas.Run{Cells: 1, Look: canvas.Blocked, Sign: lastSign}, ofNewClaim
			}
			return claim.run(1), -1
		}
		of := map[string]int{ways.OS: ofOS, ways.Reserved: ofReserved, ways.Groups: ofGroups, ways.Infra: ofInfra, ways.Shared: ofShared, "": ofTool}[group.Pool]
		if what < 0 || slices.Index(rank, of) < slices.Index(rank, what) {
			what = of
		}
	}
	if what < 0 {
		return canvas.Run{Cells: 1, Look: canvas.Free, Sign: freeSign}, what
	}
	return canvas.Run{Cells: 1, Look: canvas.Blocked, Sign: meanings()[what].sign}, what
}

// legendOfWays explains the signs that were drawn.
func legendOfWays(shown []int) canvas.Stack {
	slices.Sort(shown)
	var lines canvas.Stack
	for _, what := range slices.Compact(shown) {
		m := meanings()[what]
		lines.Parts = append(lines.Parts, canvas.Entry{Sample: canvas.Strip{{Cells: 1, Look: canvas.Blocked, Sign: m.sign}}, Text: m.text, Column: 2})
	}
	return lines
}

// suppliesOf returns a line such as "classes: 9 of 16 left, RMIDs: 20 of 32 left".
func suppliesOf(r *nodestate.Resctrl) canvas.Part {
	text := ""
	for _, supply := range []struct {
		name string
		of   *nodestate.Supply
	}{{"classes", r.Classes}, {"RMIDs", r.RMIDs}} {
		if supply.of == nil {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s: %d of %d left", supply.name, max(0, supply.of.Total-supply.of.Used), supply.of.Total)
	}
	return canvas.Text(text, canvas.Plain)
}

// useOf draws what the kernel counts of claims, a row for each claim and cache.
func useOf(claims []nodestate.ClaimUse) canvas.Part {
	if len(claims) == 0 {
		return canvas.Stack{}
	}
	table := canvas.Table{Corner: "counted by the kernel", Columns: []string{"cache", "occupied", "all memory", "near memory"}}
	var notes []canvas.Part
	row := func(name, cache string, c nodestate.Counts) {
		table.Rows = append(table.Rows, canvas.Printable(name))
		table.Cells = append(table.Cells, []string{cache, Bytes(c.OccupancyBytes), Bytes(c.TotalBytes), Bytes(c.LocalBytes)})
	}
	for i := range claims {
		use := &claims[i]
		name := use.Name
		if use.Shared {
			name += " and members"
		}
		for _, cache := range use.Caches {
			row(name, fmt.Sprint(cache.L3), cache.Counts)
			for _, zone := range cache.Zones {
				row(fmt.Sprintf("  NUMA node %d", zone.NUMANode), "", zone.Counts)
			}
		}
		if use.Why != "" {
			notes = append(notes, canvas.Text(fmt.Sprintf("Not all of %s is counted: %s.", use.Name, use.Why), canvas.Muted))
		}
	}
	all := canvas.Stack{}
	if len(table.Rows) > 0 {
		all.Parts = append(all.Parts, table, canvas.Text("Bytes from and to memory count since the claim was prepared, or its group last made.", canvas.Muted))
	}
	all.Parts = append(all.Parts, notes...)
	return all
}

// Bytes returns a counter as text, "-" if the kernel does not count it.
func Bytes(counter *uint64) string {
	if counter == nil {
		return "-"
	}
	return canvas.Printable(canvas.Size(*counter))
}

// Uses says in lines what the kernel counts of a claim; none if it counts nothing, or the
// node was not asked.
func Uses(r *nodestate.Resctrl, claim string) (lines []string) {
	if r == nil {
		return nil
	}
	for i := range r.Claims {
		use := &r.Claims[i]
		if use.Name != claim {
			continue
		}
		for _, cache := range use.Caches {
			var facts []string
			add := func(counter *uint64, format string) {
				if counter != nil {
					facts = append(facts, fmt.Sprintf(format, Bytes(counter)))
				}
			}
			add(cache.OccupancyBytes, "occupies %s")
			add(cache.TotalBytes, "%s from and to all memory")
			add(cache.LocalBytes, "%s from and to near memory")
			if use.Shared {
				facts = append(facts, "counted together with the other members")
			}
			if len(facts) > 0 {
				lines = append(lines, fmt.Sprintf("cache %d: %s", cache.L3, strings.Join(facts, ", ")))
			}
		}
		if use.Why != "" {
			lines = append(lines, canvas.Printable("not all of it is counted: "+use.Why))
		}
	}
	return lines
}
