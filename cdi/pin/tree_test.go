package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// cgroupFS has the cpuset files of each cgroup of a drawn tree.
func cgroupFS(t *testing.T, text string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{"cgroup.controllers": {}, "cgroup.procs": {}}
	for _, g := range drawTree(t, text) {
		for name, value := range map[string]string{
			exclusiveFile: g.exclusive.String(), partitionFile: g.state,
			cpusFile: g.cpus.String(), memsFile: g.mems.String(),
		} {
			files[g.path+"/"+name] = &fstest.MapFile{Data: []byte(value + "\n")}
		}
	}
	return files
}

func TestReadTreeKeepsWhatMatters(t *testing.T) {
	files := cgroupFS(t, `
k 4-7
k/be 4-5
k/be/dead 4
k/be/dead/c 4
k/be/idle
k/be/idle/c
k/be/p - member 3
k/be/p/c - member 2 1
k/be/p/c/child 9 root 9
k/bu 6-7
k/bu/q 6-7 root_invalid_(x) 6
sys
sys/deep 1
vm - root 8`)
	files["nocpuset/cgroup.procs"] = &fstest.MapFile{}
	tr, err := readTree(files, "k/be/p/c")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, g := range tr {
		fmt.Fprintf(&got, "\n%s exclusive=%s state=%s cpus=%s mems=%s", g.path, g.exclusive, g.state, g.cpus, g.mems)
	}
	want := `
k exclusive=4-7 state=member cpus= mems=
k/be exclusive=4-5 state=member cpus= mems=
k/be/dead exclusive=4 state=member cpus= mems=
k/be/dead/c exclusive=4 state=member cpus= mems=
k/be/p exclusive= state=member cpus= mems=
k/be/p/c exclusive= state=member cpus=2 mems=1
k/bu exclusive=6-7 state=member cpus= mems=
k/bu/q exclusive=6-7 state=root invalid (x) cpus=6 mems=
vm exclusive= state=root cpus=8 mems=`
	if got.String() != want {
		t.Errorf("tree:%s\nwant:%s", got.String(), want)
	}
}

func TestReadTreeErrors(t *testing.T) {
	const drawn = "k\nk/p\nk/p/c"
	for _, test := range []struct {
		name, container, want string
		is                    error
		spoil                 func(fstest.MapFS)
	}{
		{
			"not a cgroup mount", "k/p/c", "cgroup v2 is not mounted here", ErrNotSupported,
			func(f fstest.MapFS) { delete(f, "cgroup.controllers") },
		},
		{
			"controller withheld", "k/p/c", "cgroup k/p/c has no cpuset files: cgroup.subtree_control of k/p lacks cpuset", ErrNotSupported,
			func(f fstest.MapFS) { delete(f, "k/p/c/cpuset.cpus") },
		},
		{
			"controller withheld by the root", "k/p/c", "cgroup.subtree_control of the root cgroup lacks cpuset", ErrNotSupported,
			func(f fstest.MapFS) { delete(f, "k/cpuset.cpus") },
		},
		{"container gone", "k/p/x", "k/p/x", fs.ErrNotExist, func(fstest.MapFS) {}},
		{
			"damaged", "k/p/c", "read k/cpuset.cpus.exclusive: ", nil,
			func(f fstest.MapFS) { f["k/cpuset.cpus.exclusive"].Data = []byte("4-x") },
		},
		{"the mount itself", ".", `cgroup ".": want a path below the cgroup mount`, nil, func(fstest.MapFS) {}},
		{"outside", "k/../../etc", `want a path below`, nil, func(fstest.MapFS) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := cgroupFS(t, drawn)
			test.spoil(files)
			_, err := readTree(files, test.container)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("readTree(%s) = %v, want %q", test.container, err, test.want)
			}
		})
	}
}
