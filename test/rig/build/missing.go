package build

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// thing is what once makes: the cache has it if it was made from the same inputs.
type thing struct{ name, inputs string }

func (c Cache) has(t thing) bool {
	have, err := os.ReadFile(c.Path(t.name + ".made"))
	return err == nil && string(have) == t.inputs
}

// Needs says what a cluster is made of.
type Needs struct {
	Kubernetes   string // version
	Nodes        bool   // whether the cluster has any; if not, the other fields do not count
	Kernel, Init string
	CRI          string
	RDT          bool // whether the machines have it, which takes a QEMU of our own
	SELinux      bool // whether the nodes enforce it
}

// AnnounceMissing logs what the cache lacks, and about how long it takes to make it. It
// logs nothing if nothing is missing, and leaves out what takes a few seconds. It makes
// nothing.
func (c Cache) AnnounceMissing(needs Needs) error {
	missing, err := c.missing(needs)
	if err != nil || len(missing) == 0 {
		return err
	}
	var total time.Duration
	lines := make([]string, len(missing))
	for i, name := range missing {
		total += about(name)
		lines[i] = fmt.Sprintf("rig:   %s, about %d s", name, seconds(about(name)))
	}
	c.logf("rig: the cache %s lacks the following. Making it takes about %s on 2 cores, less if Go has compiled it before.\n%s", c.Dir, roughly(total), strings.Join(lines, "\n"))
	return nil
}

// missing are the names of what will be made, in this order.
func (c Cache) missing(needs Needs) (names []string, err error) {
	if packages := c.missingPackages(needs); len(packages) > 0 {
		names = append(names, "install "+strings.Join(packages, " "))
	}
	sets, err := c.controlPlane(needs.Kubernetes)
	if err != nil {
		return nil, err
	}
	if needs.Nodes {
		sets = append(sets, nodePrograms(needs.CRI)...)
	}
	var things []thing
	for _, b := range sets {
		t, err := c.thingOf(b)
		if err != nil {
			return nil, err
		}
		things = append(things, t)
	}
	if needs.Nodes {
		things = append(things, systemThing(needs.Init, needs.CRI), kernelThing(needs.Kernel))
		if needs.RDT {
			things = append(things, qemuThing())
		}
		if needs.SELinux {
			things = append(things, policyThing())
		}
	}
	for _, t := range things {
		if !c.has(t) {
			names = append(names, t.name)
		}
	}
	return names, nil
}

// about is how long a thing took to make on 2 cores with empty caches of Go, download
// included. A set of programs in bin is one of six, which took 140 s together.
func about(name string) time.Duration {
	switch {
	case strings.HasPrefix(name, "kubernetes/"):
		return 330 * time.Second
	case name == "qemu":
		return 400 * time.Second
	case name == "bin-crio":
		return 240 * time.Second
	case strings.HasPrefix(name, "bin"):
		return 25 * time.Second
	}
	return 20 * time.Second // Debian packages
}

// roughly is in minutes, rounded up, from a minute on.
func roughly(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", seconds(d))
	}
	return fmt.Sprintf("%d min", int((d+time.Minute-1)/time.Minute))
}
