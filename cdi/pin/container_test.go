package pin

import (
	"io/fs"
	"strings"
	"testing"
)

func TestContainer(t *testing.T) {
	const id = "0f3a9c"
	for _, test := range []struct{ name, text, want, err string }{
		{"cgroupfs", "0::/kubepods/besteffort/podA/0f3a9c\n", "kubepods/besteffort/podA/0f3a9c", ""},
		{
			"systemd", "0::/kubepods.slice/kubepods-podA.slice/cri-containerd-0f3a9c.scope\n",
			"kubepods.slice/kubepods-podA.slice/cri-containerd-0f3a9c.scope", "",
		},
		{"crun's child", "0::/k.slice/crio-0f3a9c.scope/container\n", "k.slice/crio-0f3a9c.scope", ""},
		{"named otherwise", "0::/machine/x\n", "machine/x", ""},
		{"beside cgroup v1", "2:cpu:/v1\n1:name=systemd:/\n0::/k/0f3a9c\n", "k/0f3a9c", ""},
		{"without line feed", "0::/k/0f3a9c", "k/0f3a9c", ""},
		{"cgroup v1", "2:cpuset:/k/0f3a9c\n", "", "no cgroup v2"},
		{"empty", "", "", "no cgroup v2"},
		{"the root", "0::/\n", "", "not in one of its own"},
		{"outside of the cgroup namespace", "0::/../other\n", "", "not in one of its own"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Container(test.text, id)
			switch {
			case got != test.want, (err == nil) != (test.err == ""):
				t.Errorf("Container = %q, %v", got, err)
			case err != nil && !strings.Contains(err.Error(), test.err):
				t.Errorf("error %q, want %q", err, test.err)
			}
		})
	}
	if got, err := Container("0::/a/b\n", ""); got != "a/b" || err != nil {
		t.Errorf("Container without id = %q, %v, want the process's own cgroup", got, err)
	}
}

func FuzzContainer(f *testing.F) {
	f.Add("0::/kubepods/podA/id\n", "id")
	f.Add("0::/../x\n1:cpu:/", "")
	f.Fuzz(func(t *testing.T, text, id string) {
		name, err := Container(text, id)
		if (err == nil) != (name != "") {
			t.Errorf("Container(%q, %q) = %q, %v", text, id, name, err)
		}
		// What readTree would take is inside the process's own path.
		if fs.ValidPath(name) && !strings.Contains(text, "0::/"+name) {
			t.Errorf("Container(%q, %q) = %q is no prefix of a v2 path", text, id, name)
		}
	})
}

func TestParsePartition(t *testing.T) {
	for p := PartitionNone; p <= PartitionIsolated; p++ {
		if got, err := ParsePartition(p.String()); got != p || err != nil {
			t.Errorf("ParsePartition(%q) = %v, %v", p.String(), got, err)
		}
	}
	if _, err := ParsePartition("member"); err == nil || err.Error() != `partition "member": want one of none, root, isolated` {
		t.Errorf("ParsePartition(member): %v", err)
	}
}
