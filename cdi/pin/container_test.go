package pin

import (
	"io/fs"
	"strings"
	"testing"
)

func TestContainer(t *testing.T) {
	const id = "0f3a9c"
	for name, test := range map[string]struct{ text, want string }{
		"cgroupfs": {"0::/kubepods/besteffort/podA/0f3a9c\n", "kubepods/besteffort/podA/0f3a9c"},
		"systemd": {
			"0::/kubepods.slice/kubepods-podA.slice/cri-containerd-0f3a9c.scope\n",
			"kubepods.slice/kubepods-podA.slice/cri-containerd-0f3a9c.scope",
		},
		"crun's child":      {"0::/k.slice/crio-0f3a9c.scope/container\n", "k.slice/crio-0f3a9c.scope"},
		"beside cgroup v1":  {"2:cpu:/v1\n1:name=systemd:/\n0::/k/0f3a9c\n", "k/0f3a9c"},
		"without line feed": {"0::/k/0f3a9c", "k/0f3a9c"},
	} {
		if got, err := Container(test.text, id); err != nil || got != test.want {
			t.Errorf("%s: Container(%q) = %q, %v; want %q", name, test.text, got, err, test.want)
		}
	}
	if got, err := Container("0::/a/b\n", ""); got != "" || err == nil {
		t.Errorf("Container without id = %q, %v, want an error", got, err)
	}
}

func TestContainerRefusesWhatIsNoCgroupOfItsOwn(t *testing.T) {
	for text, want := range map[string]string{
		"2:cpuset:/k/0f3a9c\n": "no cgroup v2",
		"":                     "no cgroup v2",
		"0::/\n":               "want a cgroup of its own",
		"0::/../other\n":       "want a cgroup of its own", // outside of the cgroup namespace
		// The process of a hypervisor: its cgroup is not the container's.
		"0::/kubepods.slice/kubepods-podA.slice/kata_overhead\n": "does not have the container's id 0f3a9c in its name",
		"0::/machine/x\n": "does not have the container's id 0f3a9c in its name",
	} {
		if got, err := Container(text, "0f3a9c"); err == nil || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("Container(%q) = %q, %v; want an error with %q", text, got, err, want)
		}
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
		if err == nil && !strings.Contains(name, id) {
			t.Errorf("Container(%q, %q) = %q, which does not have the id", text, id, name)
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
