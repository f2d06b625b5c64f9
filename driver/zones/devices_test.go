package zones

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestFullLastMovesOnlyFullZonesBehindZones(t *testing.T) {
	zones := []Zone{
		{Device: "numa-0", CPUs: cpuset.New(0, 1)},
		{Device: "numa-1", CPUs: cpuset.New(2, 3)},
		{Device: "numa-2"},
		{Device: "numa-3", CPUs: cpuset.New(4, 5)},
	}
	for _, row := range []struct {
		taken cpuset.Set
		want  []string
	}{
		{cpuset.Set{}, []string{"numa-3", "numa-0", "numa-2", "cache-l3-0", "nvme-0"}},
		{cpuset.New(4), []string{"numa-3", "numa-0", "numa-2", "cache-l3-0", "nvme-0"}},
		{cpuset.New(0, 1, 4, 5), []string{"numa-2", "numa-3", "numa-0", "cache-l3-0", "nvme-0"}},
		{cpuset.New(0, 1, 2, 3, 4, 5, 6), []string{"numa-2", "numa-3", "numa-0", "cache-l3-0", "nvme-0"}},
	} {
		var devices []resourceapi.Device
		for _, name := range []string{"numa-3", "numa-0", "numa-2", "cache-l3-0", "nvme-0"} { // numa-1 is not published
			devices = append(devices, resourceapi.Device{Name: name})
		}
		FullLast(devices, zones, row.taken)
		var got []string
		for _, device := range devices {
			got = append(got, device.Name)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("with %s taken, the order is %q, want %q", row.taken, got, row.want)
		}
	}
	FullLast(nil, zones, cpuset.Set{})
}

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
