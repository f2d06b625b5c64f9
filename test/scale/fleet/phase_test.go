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
	type requests = map[kubeletplugin.APIRequest]uint64
	before := []Counts{{Requests: requests{request("create", "events", 201): 2, request("watch", "resourceslices", 200): 1}}, {}}
	after := []Counts{
		{Requests: requests{request("create", "events", 201): 5, request("create", "events", 429): 1, request("watch", "resourceslices", 200): 1}},
		{Requests: requests{request("get", "nodes", 200): 1, request("get", "pods", 0): 7}},
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

// An event whose answer was lost is sent again, and is a conflict then: it is stored, though no
// answer has said so.
func TestWhatFailsIsNotStored(t *testing.T) {
	request := func(verb, resource string, code int) kubeletplugin.APIRequest {
		return kubeletplugin.APIRequest{Verb: verb, Resource: resource, Code: code}
	}
	got := stored(Counts{Requests: map[kubeletplugin.APIRequest]uint64{
		request("create", "events", 201): 20, request("create", "events", 409): 1, request("create", "events", 500): 2, request("create", "events", 0): 3, request("create", "events", 429): 4,
		request("create", "resourceslices", 201): 1, request("update", "resourceslices", 200): 2, request("update", "resourceslices", 409): 16, request("delete", "resourceslices", 200): 4, request("dry-run", "resourceslices", 201): 8,
		request("get", "nodes", 200): 5,
	}})
	if want := map[string]uint64{"events": 21, "resourceslices": 7}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What came in while the machine was busy is no peak of one second.
func TestCountsOfALateLookAreSpread(t *testing.T) {
	get, watch := Kind{"get", "nodes"}, Kind{"watch", "resourceslices"}
	seconds := spread(map[Kind]uint64{get: 8, watch: 2}, 3)
	if len(seconds) != 3 {
		t.Fatalf("%d seconds, want 3", len(seconds))
	}
	sums := map[Kind]uint64{}
	for _, second := range seconds {
		sums[get], sums[watch] = sums[get]+second[get], sums[watch]+second[watch]
		if second[get] < 2 || second[get] > 3 {
			t.Errorf("%d of 8 gets in one of 3 seconds", second[get])
		}
	}
	if sums[get] != 8 || sums[watch] != 2 {
		t.Errorf("spread to %v", sums)
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
