package metrics

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

func TestImbalanceIsOfZonesThatClaimsCanGet(t *testing.T) {
	zone := func(device string, claimed, shared uint64) driver.ZoneFigures {
		return driver.ZoneFigures{Device: device, CPUs: driver.Amounts{Claimed: claimed, Shared: shared}}
	}
	zones := []driver.ZoneFigures{zone("a", 2, 2), zone("b", 1, 3), zone("c", 2, 0), zone("memory", 0, 0)}
	for _, row := range []struct {
		excluded []string
		by       float64
		several  bool
	}{
		{nil, 0.75, true},
		{[]string{"c"}, 0.25, true}, // what is left of it is a claim's
		{[]string{"b", "c"}, 0, false},
	} {
		if by, several := imbalance(zones, row.excluded); by != row.by || several != row.several {
			t.Errorf("without %v: %v, %t, want %v, %t", row.excluded, by, several, row.by, row.several)
		}
	}
}
