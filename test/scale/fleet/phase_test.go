package fleet

import (
	"maps"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
)

func TestRequestsOfAPhaseAreThoseInBetween(t *testing.T) {
	request := func(verb, resource string, code int) kubeletplugin.APIRequest {
		return kubeletplugin.APIRequest{Verb: verb, Resource: resource, Code: code}
	}
	before := []Counts{{request("create", "events", 201): 2, request("watch", "resourceslices", 200): 1}, {}}
	after := []Counts{
		{request("create", "events", 201): 5, request("create", "events", 429): 1, request("watch", "resourceslices", 200): 1},
		{request("get", "nodes", 200): 1},
	}
	want := map[Kind]uint64{{"create", "events"}: 3, {"get", "nodes"}: 1}
	if got := since(sum(before), sum(after)); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	p := Phase{Requests: want, Seconds: []map[Kind]uint64{{{"create", "events"}: 3}, {{"create", "events"}: 1, {"get", "nodes"}: 1}, {}}}
	if p.Total() != 4 || p.Writes() != 3 || p.Busiest() != 3 {
		t.Errorf("total %d, writes %d, busiest %d", p.Total(), p.Writes(), p.Busiest())
	}
}

func TestOnlyRequestsThatStoreAreWrites(t *testing.T) {
	for verb, want := range map[string]bool{
		"get": false, "list": false, "watch": false, "dry-run": false,
		"create": true, "update": true, "patch": true, "delete": true, "other": true,
	} {
		if got := (Kind{verb, "resourceslices"}).Writes(); got != want {
			t.Errorf("%s writes: %t, want %t", verb, got, want)
		}
	}
}
