package zones

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// With numa=fake=, all memory of the CPUs is in their zone, if a zone may have several nodes.
func TestEmulatedNodesJoinTheZoneOfTheirCPUs(t *testing.T) {
	machine := &numa.Machine{Zones: []numa.Zone{
		{ID: 0, CPUs: cpuset.New(0, 1), Sockets: []int{0}},
		{ID: 1, CPUsIn: new(0)},
		{ID: 2, CPUs: cpuset.New(2, 3), Sockets: []int{1}},
		{ID: 3, CPUsIn: new(2)},
		{ID: 4}, // memory that no CPU is listed with
	}}
	for by, want := range map[string]string{
		deviceclasses.ZoneByNUMA:    "numa-0 [0] 0-1; numa-1 [1] ; numa-2 [2] 2-3; numa-3 [3] ; numa-4 [4] ",
		deviceclasses.ZoneBySocket:  "socket-0 [0 1] 0-1; socket-1 [2 3] 2-3; numa-4 [4] ",
		deviceclasses.ZoneByMachine: "machine [0 1 2 3] 0-3; numa-4 [4] ",
	} {
		var got []string
		for _, z := range Of(machine, by) {
			got = append(got, fmt.Sprintf("%s %v %s", z.Device, z.Nodes, z.CPUs))
			if by == deviceclasses.ZoneBySocket && z.CPUs.Size() > 0 && z.socket(machine) == nil {
				t.Errorf("%s has no socket", z.Device)
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %q", by, got, want)
		}
	}
}
