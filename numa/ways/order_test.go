package ways

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// arrangements are all ways to give each of n groups a run of the cache.
func arrangements(groups, n, least int) (all [][]Mask) {
	if groups == 0 {
		return [][]Mask{nil}
	}
	for _, rest := range arrangements(groups-1, n, least) {
		free := run(0, n)
		for _, m := range rest {
			free &^= m
		}
		for size := least; size <= n; size++ {
			for _, m := range runsOf(size, free) {
				all = append(all, append(slices.Clone(rest), m))
			}
		}
	}
	return all
}

// reachable are all arrangements that writes of any runs of the ways that are ours can
// lead to, none of them overlapping.
func reachable(from []Mask, ours Mask, least int) map[string]bool {
	seen := map[string]bool{fmt.Sprint(from): true}
	for queue := [][]Mask{from}; len(queue) > 0; queue = queue[1:] {
		for i := range queue[0] {
			free := ours
			for j, m := range queue[0] {
				if j != i {
					free &^= m
				}
			}
			for size := least; size <= free.Ways(); size++ {
				for _, m := range runsOf(size, free) {
					next := slices.Clone(queue[0])
					next[i] = m
					if key := fmt.Sprint(next); !seen[key] {
						seen[key] = true
						queue = append(queue, next)
					}
				}
			}
		}
	}
	return seen
}

// Whatever masks groups have and want: if any order of writes leads there, one is found,
// without a temporary mask if possible.
func TestOrderIsFoundIfThereIsOne(t *testing.T) {
	tried, around, impossible := 0, 0, 0
	for _, size := range []struct{ groups, ways, minBits int }{{2, 6, 1}, {2, 7, 2}, {3, 5, 1}} {
		cache := cacheOf(size.ways, size.minBits)
		all := arrangements(size.groups, size.ways, size.minBits)
		byOurs := map[string]map[string]bool{}
		for _, present := range all {
			for _, wanted := range all {
				changes, ours := make([]Change, size.groups), Mask(0)
				for i := range changes {
					changes[i] = Change{fmt.Sprint(i), present[i], wanted[i]}
					ours |= present[i] | wanted[i]
				}
				p, err := Order(cache, changes)
				tried++
				if writable(slices.Clone(present), wanted) {
					if err != nil || strings.Contains(p.String(), "temporary") {
						t.Fatalf("%v: plan %v, %v, but each can be written once", changes, p, err)
					}
				} else if key := fmt.Sprint(present, ours); true {
					if byOurs[key] == nil {
						byOurs[key] = reachable(present, ours, size.minBits)
					}
					if possible := byOurs[key][fmt.Sprint(wanted)]; possible != (err == nil) {
						t.Fatalf("%v: plan %v, %v; possible: %t", changes, p, err, possible)
					}
				}
				if err != nil {
					impossible++
					if !errors.Is(err, ErrNoOrder) {
						t.Fatal(err)
					}
					continue
				}
				if strings.Contains(p.String(), "temporary") {
					around++
				}
				now := presentOf(changes)
				carriedOut(t, cache, now, p)
				for _, c := range changes {
					if now[c.ID] != c.Wanted {
						t.Fatalf("%v: after %s, %s has %s", changes, p, c.ID, now[c.ID])
					}
				}
			}
		}
	}
	t.Logf("%d cases, %d with temporary masks, %d impossible", tried, around, impossible)
}
