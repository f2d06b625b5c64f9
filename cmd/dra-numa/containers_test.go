package main

import (
	"maps"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/types"
)

func TestContainersOfPods(t *testing.T) {
	const own, other = "0e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60", "1e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60"
	cgroups := fstest.MapFS{
		"cgroup.controllers":                                 {},
		"kubepods/burstable/pod" + own + "/cgroup.events":    {Data: []byte("populated 1\n")},
		"kubepods/besteffort/pod" + other + "/cgroup.events": {Data: []byte("populated 0\n")},
	}
	seen, err := readContainers(cgroups, fstest.MapFS{}, own)
	if want := map[types.UID]bool{own: true, other: false}; err != nil || !maps.Equal(seen.Pods, want) || !seen.AllPods {
		t.Errorf("pods %v, all of them: %t, %v, want %v, all", seen.Pods, seen.AllPods, err, want)
	}
	for _, unknown := range []types.UID{"", other, "2e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60"} {
		if seen, err := readContainers(cgroups, fstest.MapFS{}, unknown); err != nil || seen.AllPods {
			t.Errorf("own pod %q: all pods %t, %v, want that some may be missing", unknown, seen.AllPods, err)
		}
	}
	if _, err := readContainers(fstest.MapFS{}, fstest.MapFS{}, own); err == nil {
		t.Error("without cgroup v2: no error")
	}
}
