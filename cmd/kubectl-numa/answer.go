package main

import (
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// answer is the result of the command pick.
type answer struct {
	Zone     string     `json:"zone"` // name of its device
	CPUs     cpuset.Set `json:"cpus"`
	Idle     cpuset.Set `json:"idle"` // siblings that stay idle; no other claim gets them
	Nodes    []part     `json:"nodes"`
	Why      string     `json:"why"`
	Tried    []refusal  `json:"tried"`    // zones that were tried and do not fit
	Reserved cpuset.Set `json:"reserved"` // CPUs that no claim gets
	Used     cpuset.Set `json:"used"`     // CPUs that other claims hold
}

// part is what one NUMA node gives.
type part struct {
	Node int        `json:"node"`
	CPUs cpuset.Set `json:"cpus"`
}

// refusal says why a zone cannot give the CPUs.
type refusal struct {
	Zone string `json:"zone"`
	Why  string `json:"why"`
}

func newAnswer(machine numa.Machine, zone zones.Zone, chosen driver.Choice, tried []refusal) answer {
	a := answer{Zone: zone.Device, CPUs: chosen.CPUs.Difference(chosen.Idle), Idle: chosen.Idle, Why: chosen.Why, Nodes: []part{}, Tried: []refusal{}}
	a.Tried = append(a.Tried, tried...)
	for i := range machine.Zones {
		node := &machine.Zones[i]
		if cpus := node.CPUs.Intersection(a.CPUs); !cpus.IsEmpty() {
			a.Nodes = append(a.Nodes, part{node.ID, cpus})
		}
	}
	return a
}

// text returns a line for each value that is not empty.
func (a answer) text() string {
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", key, value)
		}
	}
	line("zone", a.Zone)
	line("cpus", a.CPUs.String())
	line("idle", a.Idle.String())
	for _, node := range a.Nodes {
		line(fmt.Sprintf("node %d", node.Node), node.CPUs.String())
	}
	line("why", a.Why)
	for _, t := range a.Tried {
		line("not", t.Zone+" "+t.Why)
	}
	line("reserved", a.Reserved.String())
	line("used", a.Used.String())
	return b.String()
}
