package driver

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// The system cannot run on CPUs of isolcpus= alone.
func TestDefaultReservationIsACoreThatIsNotIsolated(t *testing.T) {
	machine := numa.Machine{
		Online: cpuset.New(0, 1, 2, 3, 4, 5), Zones: []numa.Zone{{CPUs: cpuset.New(0, 1, 4)}, {ID: 1, CPUs: cpuset.New(2, 3, 5)}},
		Cores: []numa.Core{{CPUs: cpuset.New(0, 4)}, {CPUs: cpuset.New(1)}, {Zone: 1, CPUs: cpuset.New(2, 3)}, {Zone: 1, CPUs: cpuset.New(5)}},
	}
	for isolated, want := range map[string]string{"": "0,4", "0": "0,4", "0,4": "1", "0-1,4": "2-3", "0-4": "5", "0-5": "isolcpus=0-5, which leaves the system none"} {
		set, err := cpuset.Parse(isolated)
		if err != nil {
			t.Fatal(err)
		}
		machine.Isolated = &set
		reserved, err := Reserved(machine, "", nil)
		if got := reserved.String(); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("isolcpus=%s: reserved %s, %v, want %s", isolated, got, err, want)
		}
	}
}
