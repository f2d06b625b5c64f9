package main

import (
	"io/fs"
	"maps"
	"syscall"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/types"
)

// unreadable has a folder that cannot be read.
type unreadable struct {
	fs.FS
	folder string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.folder {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}
	return u.FS.Open(name)
}

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
	if _, err := readContainers(cgroups, unreadable{fstest.MapFS{}, "."}, own); err == nil {
		t.Error("the records cannot be read: no error")
	}
	seen, err = readContainers(unreadable{cgroups, "kubepods/besteffort"}, fstest.MapFS{}, own)
	if want := "cgroups cannot be read: open kubepods/besteffort: permission denied"; err != nil || !seen.Pods[own] || seen.AllPods || seen.Unseen != want {
		t.Errorf("a cgroup cannot be read: %+v, %v, want own pod and %q", seen, err, want)
	}
}
