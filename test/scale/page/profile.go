package page

import (
	"fmt"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/profile"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// perPod is the CPU time of each part for one pod, in the order of profile.Split. It is nil
// if the shape was not profiled with so many nodes.
func (p Page) perPod(nodes int, name string) (list []profile.Part) {
	for _, measured := range p.Profiles {
		if measured.Nodes == nodes && measured.Shape == name {
			for _, part := range measured.Parts {
				list = append(list, profile.Part{Name: part.Name, CPU: part.CPU / time.Duration(measured.Pods)})
			}
		}
	}
	return list
}

// profiled is "" if no shape was profiled.
func (p Page) profiled() string {
	text := ""
	for _, nodes := range p.sizes() {
		header, rows, all := []string{"part"}, [][]string(nil), []string{"all"}
		for _, s := range p.Shapes {
			parts := p.perPod(nodes, s.Name)
			if parts == nil {
				continue
			}
			header = append(header, s.Name)
			var sum time.Duration
			for i, part := range parts {
				if len(rows) <= i {
					rows = append(rows, []string{part.Name})
				}
				rows[i] = append(rows[i], milliseconds(part.CPU))
				sum += part.CPU
			}
			all = append(all, milliseconds(sum))
		}
		if len(rows) > 0 {
			text += fmt.Sprintf("\n%d nodes, ms of CPU time for a pod:\n\n", nodes) + plot.Table(header, append(rows, all))
		}
	}
	if text == "" {
		return ""
	}
	return "## What the scheduler's time goes to\nOne more trial of each shape, while the scheduler writes a CPU profile. A part has the memory that it allocates, but not what\n" +
		"it calls of another part. `make scale` leaves the profiles in `bin/profiles`.\n" + text + p.reason()
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond))
}

// reasonNodes is the size whose profiles are explained, and the one of what runs with one size only.
const reasonNodes = 500

// reason says what a pod of this driver costs the scheduler that one with the cheapest claim does not. It is "" if that was not profiled.
func (p Page) reason() string {
	ours, cheapest := p.perPod(reasonNodes, shape.Ours), p.perPod(reasonNodes, shape.Cheapest)
	if ours == nil || cheapest == nil {
		return ""
	}
	var all time.Duration
	more := map[string]time.Duration{}
	for i := range ours {
		more[ours[i].Name] = ours[i].CPU - cheapest[i].CPU
		all += more[ours[i].Name]
	}
	return fmt.Sprintf("\nWith %d nodes, a pod of this driver takes %s ms more of the scheduler's CPU time than one with the cheapest claim: %s ms\n"+
		"for selectors, %s ms for what claims take of capacities, %s ms for garbage collection, and %s ms for the rest. The class of\n"+
		"the cheapest claim has no selector, which only a class of all devices of all drivers can do without, and its devices have no\n"+
		"capacity, so nothing can be shared. What only Kubernetes can change is in [upstream.md](upstream.md).\n",
		reasonNodes, milliseconds(all), milliseconds(more[profile.Selectors]), milliseconds(more[profile.Capacity]), milliseconds(more[profile.Garbage]),
		milliseconds(all-more[profile.Selectors]-more[profile.Capacity]-more[profile.Garbage]))
}
