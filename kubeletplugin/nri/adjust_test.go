package nri

import (
	"testing"

	"github.com/containerd/nri/pkg/api"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestAdjust(t *testing.T) {
	claim := driver.Pinned{CPUs: cpuset.New(4, 5), Mems: cpuset.New(1)}
	mixed := driver.Pinned{CPUs: cpuset.New(4, 5), Mems: cpuset.New(1), Mixed: true}
	memory := driver.Pinned{Mems: cpuset.New(0, 1)}
	alone := shared{pool: cpuset.New(0, 1, 2, 3)}
	restricted := shared{pool: cpuset.New(0, 1, 2, 3), restrict: true}
	for name, row := range map[string]struct {
		pinned            driver.Pinned
		claimed, narrowed bool
		rest              shared
		want              placement
	}{
		"no claim":                           {driver.Pinned{}, false, false, alone, placement{}},
		"no claim, restricted":               {driver.Pinned{}, false, false, restricted, placement{cpus: "0-3"}},
		"no claim, restricted before":        {driver.Pinned{}, false, true, alone, placement{cpus: "0-3"}},
		"claim":                              {claim, true, false, alone, placement{"4-5", "1"}},
		"claim, restricted":                  {claim, true, false, restricted, placement{"4-5", "1"}},
		"claim, restricted before":           {claim, true, true, alone, placement{"4-5", "1"}},
		"mixed claim":                        {mixed, true, false, alone, placement{"0-5", "1"}},
		"mixed claim, restricted":            {mixed, true, false, restricted, placement{"0-5", "1"}},
		"mixed claim, restricted before":     {mixed, true, true, alone, placement{"0-5", "1"}},
		"claim of memory":                    {memory, true, false, alone, placement{mems: "0-1"}},
		"claim of memory, restrict.":         {memory, true, false, restricted, placement{"0-3", "0-1"}},
		"claim of memory, restricted before": {memory, true, true, alone, placement{"0-3", "0-1"}},
	} {
		if got := adjust(row.pinned, row.claimed, row.narrowed, row.rest); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

func TestMissing(t *testing.T) {
	has := placement{"0-3", "0"}
	for name, row := range map[string]struct{ aim, want placement }{
		"all there":    {placement{"0-3", "0"}, placement{}},
		"left alone":   {placement{}, placement{}},
		"other CPUs":   {placement{"4", "0"}, placement{cpus: "4"}},
		"other mems":   {placement{mems: "1"}, placement{mems: "1"}},
		"nothing fits": {placement{"4", "1"}, placement{"4", "1"}},
	} {
		if got := has.missing(row.aim); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
		if after := has.with(has.missing(row.aim)); after.missing(row.aim) != (placement{}) {
			t.Errorf("%s: after the change it has %+v, which still is not %+v", name, after, row.aim)
		}
	}
}

func TestMemoryMode(t *testing.T) {
	for _, row := range []struct {
		policy string
		nodes  int
		want   api.MpolMode
	}{
		{"bind", 1, api.MpolMode_MPOL_BIND},
		{"bind", 2, api.MpolMode_MPOL_BIND},
		{"preferred", 1, api.MpolMode_MPOL_PREFERRED},
		{"preferred", 2, api.MpolMode_MPOL_PREFERRED_MANY},
		{"interleave", 2, api.MpolMode_MPOL_INTERLEAVE},
		{"weighted-interleave", 2, api.MpolMode_MPOL_WEIGHTED_INTERLEAVE},
	} {
		if got, err := memoryMode(row.policy, row.nodes); got != row.want || err != nil {
			t.Errorf("%s over %d nodes: %v, %v, want %v", row.policy, row.nodes, got, err, row.want)
		}
	}
	for _, policy := range []string{"", "Bind", "local"} {
		if got, err := memoryMode(policy, 1); err == nil {
			t.Errorf("policy %q: %v, want an error", policy, got)
		}
	}
}

func TestContainerOfAMessage(t *testing.T) {
	hook := func(args ...string) *api.Hooks {
		return &api.Hooks{CreateRuntime: []*api.Hook{{Path: "/x", Args: args}}}
	}
	for name, row := range map[string]struct {
		message *api.Container
		want    placement
		unknown bool
	}{
		"nothing said":       {&api.Container{}, placement{}, false},
		"another's list":     {withCPUs(&api.Container{}, "3,2, 1", "0"), placement{mems: "0"}, false},
		"list in other form": {withCPUs(&api.Container{}, "2,1,3\n", "0,1"), placement{"1-3", "0-1"}, false},
		"hook, no device":    {&api.Container{Hooks: hook("numa-pin", "pin", "--cpus=1")}, placement{}, true},
		"hook and device": {&api.Container{
			Hooks: hook("numa-pin", "pin"), CDIDevices: []*api.CDIDevice{{Name: "a=b"}},
		}, placement{}, false},
		"another's hook": {&api.Container{Hooks: hook("nvidia", "pin")}, placement{}, false},
		"short hook":     {&api.Container{Hooks: hook("numa-pin")}, placement{}, false},
	} {
		if got := newContainer(row.message); got.has != row.want || got.unknown != row.unknown {
			t.Errorf("%s: has %+v, unknown %v, want %+v, %v", name, got.has, got.unknown, row.want, row.unknown)
		}
	}
}

func TestNameOfAContainer(t *testing.T) {
	message := &api.Container{Id: "afb87d", Name: "main"}
	if got := nameOf(message); got != "afb87d" {
		t.Errorf("without the kubelet's labels: %q", got)
	}
	message.Labels = map[string]string{"io.kubernetes.pod.namespace": "db", "io.kubernetes.pod.name": "pg-0"}
	if got, want := nameOf(message), "db/pg-0/main (afb87d)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
