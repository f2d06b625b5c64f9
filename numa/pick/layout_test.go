package pick

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// parseMachine reads a machine as these tests draw it: "0-1 2-3 | 4,9p || 5e / ~ 6 7" has
// the zones 0 and 1 beside "/", dies beside "||", L3s beside "|" and in each the CPUs of
// its cores, a "p" or "e" behind those that are performance or efficient ones. "~" stands
// before cores without an L3, "*" behind an isolated core. L3s are numbered from 0.
func parseMachine(t testing.TB, drawing string) numa.Machine {
	t.Helper()
	var m numa.Machine
	var isolated cpuset.Set
	dies, l3s := 0, 0
	for id, zone := range strings.Split(drawing, " / ") {
		z := numa.Zone{ID: id}
		for die := range strings.SplitSeq(zone, "||") {
			for l3 := range strings.SplitSeq(die, "|") {
				l3, without := strings.CutPrefix(strings.TrimSpace(l3), "~")
				for field := range strings.FieldsSeq(l3) {
					c := numa.Core{ID: new(len(m.Cores)), Die: new(dies), Zone: id, Type: numa.StandardCores}
					if !without {
						c.L3 = new(l3s)
					}
					list, inIsolation := strings.CutSuffix(field, "*")
					if performance, ok := strings.CutSuffix(list, "p"); ok {
						list, c.Type = performance, numa.PerformanceCores
					} else if efficient, ok := strings.CutSuffix(list, "e"); ok {
						list, c.Type = efficient, numa.EfficientCores
					}
					c.CPUs = parseSet(t, list)
					if inIsolation {
						isolated = isolated.Union(c.CPUs)
					}
					m.Cores = append(m.Cores, c)
					z.CPUs = z.CPUs.Union(c.CPUs)
				}
				l3s++
			}
			dies++
		}
		m.Zones = append(m.Zones, z)
		m.Online = m.Online.Union(z.CPUs)
	}
	if !isolated.IsEmpty() {
		m.Isolated = &isolated
	}
	return m
}

func parseSet(t testing.TB, list string) cpuset.Set {
	t.Helper()
	set, err := cpuset.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// uniform is a machine of equal parts: each number is per one of what is before it.
// Siblings are numbered as on most servers: all first threads, then all second ones.
type uniform struct{ sockets, zones, dies, l3s, cores, threads int }

func (u uniform) machine() numa.Machine {
	var m numa.Machine
	total := u.sockets * u.zones * u.dies * u.l3s * u.cores
	for zone := range u.sockets * u.zones {
		z := numa.Zone{ID: zone, Kind: numa.CPUZone}
		for die := range u.dies {
			for l3 := range u.l3s {
				for range u.cores {
					number := len(m.Cores)
					c := numa.Core{
						Socket: new(zone / u.zones), Die: new(zone%u.zones*u.dies + die), ID: new(number),
						Zone: zone, L3: new((zone*u.dies+die)*u.l3s + l3), Type: numa.StandardCores,
					}
					for thread := range u.threads {
						c.CPUs.Insert(thread*total + number)
					}
					m.Cores = append(m.Cores, c)
					z.CPUs = z.CPUs.Union(c.CPUs)
				}
			}
		}
		m.Zones = append(m.Zones, z)
		m.Online = m.Online.Union(z.CPUs)
	}
	return m
}
