package zones

import (
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

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
