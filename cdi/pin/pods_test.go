package pin

import (
	"errors"
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestPodsAreFoundByNameAnywhere(t *testing.T) {
	const a, b, c, d, static = "0e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60", "1e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60", "2e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60", "3e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60", "0123456789abcdef0123456789abcdef"
	events := func(populated string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("populated " + populated + "\nfrozen 0\n")}
	}
	cgroups := fstest.MapFS{
		"cgroup.controllers": {},
		"kubepods.slice/kubepods-pod" + under(a) + ".slice/cgroup.events":                                    events("1"),
		"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under(b) + ".slice/cgroup.events": events("0"),
		"node/kubelet/kubepods/besteffort/pod" + c + "/cgroup.events":                                        events("1"),
		"node/kubelet/kubepods/pod" + static + "/cgroup.events":                                              events("1"),
		// A tenant with a writable cgroup makes one that is named like another pod's.
		"kubepods.slice/kubepods-pod" + under(a) + ".slice/scope/pod" + b + "/cgroup.events": events("1"),
		"my-pods.slice/my-pods-kubepods-pod" + under(d) + ".slice/cgroup.events":             events("1"),
		"machine.slice/podman-1.scope/cgroup.events":                                         events("1"),
		"db.slice/-.slice/cgroup.events":                                                     events("1"),
	}
	pods, unread, err := Pods(cgroups)
	if want := map[string]bool{a: true, b: false, c: true, d: true, static: true}; err != nil || unread != nil || !maps.Equal(pods, want) {
		t.Errorf("pods %v, %v, %v, want %v", pods, unread, err, want)
	}
	if _, _, err := Pods(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "cgroup v2 is not mounted") {
		t.Errorf("without cgroup v2: error %v", err)
	}
}

func under(uid string) string { return strings.ReplaceAll(uid, "-", "_") }

func TestRecordedClaimsHaveAProcess(t *testing.T) {
	claim := func(uid string) []Claim {
		return []Claim{{ClaimRef: ClaimRef{uid, "default/" + uid}, Pinning: Pinning{CPUs: cpuset.New(4)}}}
	}
	records := fstest.MapFS{
		"bad.json":     {Data: []byte("{")},
		"outside.json": {Data: []byte(`{"cgroup":"../x","claims":[{"uid":"uid-x"}]}`)},
		"other.json":   {Data: []byte(`{"format":"dra.numa/pins","version":2,"cgroup":"pods/other","more":{},"claims":[{"uid":"uid-other","cpus":[4]}]}`)},
		"hidden.json":  {Data: []byte(`{"cgroup":"pods/hidden","claims":[{"uid":"uid-hidden"}]}`)},
	}
	for _, r := range []record{{Boot: "boot", Cgroup: "pods/a", Scope: ScopeContainer, Claims: claim("uid-a")}, {Boot: "boot", Cgroup: "pods/b", Scope: ScopeContainer, Claims: claim("uid-b")}} {
		text, err := r.render()
		if err != nil {
			t.Fatal(err)
		}
		records[r.file()] = &fstest.MapFile{Data: text}
	}
	cgroups := fstest.MapFS{
		"pods/a/cgroup.events": {Data: []byte("populated 1\n")},
		"pods/b/cgroup.events": {Data: []byte("populated 0\n")},

		"pods/other/cgroup.events":  {Data: []byte("populated 1\n")},
		"pods/hidden/cgroup.events": {Data: []byte("populated 0\n")},
	}
	claims, err := Recorded(denied{cgroups, map[string]error{"pods/hidden": syscall.EACCES}}, records)
	if want := map[string]string{"uid-a": "pods/a", "uid-other": "pods/other", "uid-hidden": "pods/hidden"}; !maps.Equal(claims, want) || err != nil {
		t.Errorf("claims %v, %v, want %v", claims, err, want)
	}
	for _, hidden := range []string{"other.json", "."} { // then it is not known what it names
		unreadable := denied{records, map[string]error{hidden: syscall.EIO}}
		if claims, err := Recorded(cgroups, unreadable); err == nil || !strings.Contains(err.Error(), "record") {
			t.Errorf("%s cannot be read: claims %v, %v", hidden, claims, err)
		}
	}
	if claims, err := Recorded(cgroups, os.DirFS(t.TempDir()+"/none")); err != nil || len(claims) > 0 {
		t.Errorf("no folder: %v, %v", claims, err)
	}
}

// With --cgroups-per-qos=false, the parent is system.slice or the cgroup of the container
// runtime.
func TestOnlyAPodsCgroupBecomesThatOfScopePod(t *testing.T) {
	const uid = "0e6f1d1a-3b1c-4a57-9d4a-1b2c3d4e5f60"
	for parent, isPod := range map[string]bool{
		"kubepods/burstable/pod" + uid:                                                                 true,
		"kubepods/pod0123456789abcdef0123456789abcdef":                                                 true, // a static pod
		"kubepods.slice/kubepods-pod" + under(uid) + ".slice":                                          true,
		"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort-pod" + under(uid) + ".slice": true, // kind
		"docker/0f3a/kubelet/kubepods/besteffort/pod" + uid:                                            true,
		"system.slice":            false,
		"system.slice/crio.scope": false,
		"k8s.io":                  false,
		"kubepods.slice/kubepods-burstable.slice": false,
		"kubepods/burstable":                      false,
	} {
		err := CheckPod(parent + "/crio-0f3a.scope")
		if (err == nil) != isPod || err != nil && (!errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), ": "+parent+" is not a pod's (cgroupsPerQOS ")) {
			t.Errorf("%s: %v, want a pod: %t", parent, err, isPod)
		}
	}
	if err := CheckPod("0f3a"); err == nil {
		t.Error("directly below the mount: no error")
	}
}
