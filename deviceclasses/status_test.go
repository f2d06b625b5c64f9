package deviceclasses

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestKindOfAStatusIsKnownByItsKey(t *testing.T) {
	cache := CacheStatus{Pool: "besteffort", L3: 1, Group: "dra-numa.2", Request: "cpus", Ways: 2, MaxWays: 5, BandwidthPercent: 40}
	for name, row := range map[string]struct {
		document any
		want     ShareStatus
	}{
		"cache":    {cache, ShareStatus{Cache: &cache}},
		"zone":     {map[string]any{"cpus": "", "mems": ""}, ShareStatus{Zone: &ZoneStatus{}}},
		"function": {map[string]any{"pci": "0000:3b:00.0"}, ShareStatus{Function: &FunctionStatus{PCI: "0000:3b:00.0"}}},
	} {
		text, err := json.Marshal(row.document)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadShareStatus(text)
		if err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, row.want)
		}
	}
	newer, err := ReadShareStatus([]byte(`{"cpus": "2-3", "mems": "", "more": {"x": 1}}`))
	if want := (ShareStatus{Zone: &ZoneStatus{CPUs: cpuset.New(2, 3)}}); err != nil || !reflect.DeepEqual(newer, want) {
		t.Errorf("of a newer driver: %+v, %v, want %+v", newer, err, want)
	}
	for _, text := range []string{"", "{}", `{"l3": 0}`, `{"pool": "shared", "l3": "zero"}`} {
		if _, err := ReadShareStatus([]byte(text)); err == nil {
			t.Errorf("%q is the status of a share", text)
		}
	}
}
