package nri

import (
	"slices"
	"testing"

	"github.com/containerd/nri/pkg/api"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// placed is a container with CDI devices that runs on these CPUs, as an NRI resource policy
// gives them to every container.
func placed(id, cpus string, devices ...string) *api.Container {
	return withCPUs(containerMessage(id, devices...), cpus, "")
}

func TestCpusetsThatNothingExplains(t *testing.T) {
	core := coreWith(map[string]driver.Pinned{"a": claimA, "gpu": {Claims: []string{"ns/gpu"}}})
	core.holdInKernel(core.claims)
	p := New(Options{Core: core})
	p.narrowed.add("narrowed")
	s := &session{awake: make(chan struct{}, 1)}
	h := handlers{p, s}
	hooked := placed("hooked", "2-3")
	hooked.Hooks = &api.Hooks{CreateRuntime: []*api.Hook{{Args: []string{"numa-pin", "pin"}}}}
	p.begin(s, nil)
	p.containers = map[string]*container{}
	for _, message := range []*api.Container{
		placed("balloon", "4-7"), placed("anywhere", ""), placed("narrowed", "0-1,4-7"), placed("claim", "2-3", "a"),
		placed("gone", "4-5", "dra.numa/claim=uid_zone_numa-0"), placed("device", "5", "gpu"), placed("other", "6", "gpu.example.com/gpu=0"),
		placed("reserved", "0-1"), hooked,
	} {
		if err := h.PostCreateContainer(t.Context(), nil, message); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"balloon with cpus 4-7", "device with cpus 5", "other with cpus 6"}
	if got := p.Unexplained(); !slices.Equal(got, want) {
		t.Errorf("unexplained are %q, want %q", got, want)
	}
	for _, id := range []string{"balloon", "device", "other"} {
		if _, err := h.StopContainer(t.Context(), nil, placed(id, "")); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.Unexplained(); len(got) > 0 {
		t.Errorf("unexplained are %q once these containers have ended", got)
	}
}
