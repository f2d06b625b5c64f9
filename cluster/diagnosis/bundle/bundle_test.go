package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/scenario"
)

func written(t *testing.T, b Bundle) []byte {
	t.Helper()
	var archive bytes.Buffer
	if err := Write(&archive, b); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func example(objects *snapshot.Snapshot) Bundle {
	return Bundle{
		Gathered: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Facts: &diagnosis.Facts{
			Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Version: "v1.37.1", Gates: map[string]bool{"A": true, "B": false}, Objects: objects,
			Kubelets: map[string]diagnosis.Kubelet{"n1": {CPUManagerPolicy: "static"}},
			Unread:   []diagnosis.Unread{{Node: "n1", Component: "kubelet", Setting: "configz", Why: "forbidden", Denied: true}},
			Missing:  []diagnosis.Unread{{Component: "kube-apiserver", Setting: "events", Why: "no answer"}},
			States: map[string]*nodestate.State{"n1.example.com": {
				Format: nodestate.Format, Version: nodestate.Version, Checkpoint: nodestate.Checkpoint{Version: 1, Grants: []ledger.Grant{{
					UID: "u", Namespace: "a", Name: "c", Order: 1, Shares: []ledger.Share{{Request: "r", Device: "numa-0", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(4, 5), Partition: "root"}}},
				}}},
				Pins: []nodestate.Pin{{Cgroup: "pods/x", CPUs: cpuset.New(4)}},
			}},
			Installation: diagnosis.Installation{PodSecurity: "baseline", Refusals: []diagnosis.Refusal{{Kind: "DaemonSet", Name: "d", Message: "no quota"}}, ConfigMaps: []*corev1.ConfigMap{{Data: map[string]string{diagnosis.ConfigKey: "kind: NodeConfig"}}}},
		},
		Client:   "v0.1.0",
		Machines: map[string][]byte{"n1.example.com": []byte("an archive")},
		Configs:  map[string][]byte{"n1.example.com": []byte("kind: EffectiveConfig\n")},
		Logs: []Log{
			{Namespace: "a", Pod: "p", Container: "driver", Text: []byte("now\n")},
			{Namespace: "a", Pod: "p", Container: "driver", Previous: true, Text: []byte("before\n")},
		},
	}
}

// A bundle that is written and read again has all facts that a diagnosis needs.
func TestReadIsTheInverseOfWrite(t *testing.T) {
	want := example(&snapshot.Snapshot{RuleVersion: "v1beta2"})
	got, err := Read(bytes.NewReader(written(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if version := got.Facts.Objects.RuleVersion; version != "v1beta2" {
		t.Errorf("the version of DeviceTaintRules is %q", version)
	}
	got.Facts.Objects, want.Facts.Objects = nil, nil
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b cpuset.Set) bool { return a == b })); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
}

// With the pods, nodes, claims and slices of a bundle, the scheduler gives the same pods
// the same devices.
func TestPlacementDependsOnNothingThatIsLeftOut(t *testing.T) {
	for seed := range uint64(60) {
		s := scenario.New(fmt.Sprintf("s%d", seed), seed)
		objects, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		want := outcome(t, objects)
		read, err := Read(bytes.NewReader(written(t, example(objects))))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, outcome(t, read.Facts.Objects)); diff != "" {
			t.Errorf("seed %d (-objects +bundle):\n%s", seed, diff)
		}
	}
}

func outcome(t *testing.T, objects *snapshot.Snapshot) string {
	t.Helper()
	text, err := json.MarshalIndent(simulated(t, objects), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func simulated(t *testing.T, objects *snapshot.Snapshot) simulate.Result {
	t.Helper()
	cluster, err := simulate.New(objects, simulate.DefaultRules())
	if err != nil {
		t.Fatal(err)
	}
	result, err := cluster.Run(t.Context(), objects.Waiting(), simulate.Options{AllNodes: true})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// packed is an archive that another program wrote.
func packed(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	files := tar.NewWriter(compressed)
	for _, header := range headers {
		text := strings.Repeat("x", int(header.Size))
		if err := files.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	files.Close()
	compressed.Close()
	return archive.Bytes()
}

func TestHostileArchivesAreRefused(t *testing.T) {
	regular := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 3} }
	for what, row := range map[string]struct {
		headers []tar.Header
		want    string
	}{
		"path above":   {[]tar.Header{regular("../x")}, `unpack: "../x": want a regular file with a relative path`},
		"path in root": {[]tar.Header{regular("/etc/x")}, `unpack: "/etc/x": want a regular file with a relative path`},
		"path within":  {[]tar.Header{regular("objects/../../x")}, `unpack: "objects/../../x": want a regular file with a relative path`},
		"link": {
			[]tar.Header{{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
			`unpack: "x": want a regular file with a relative path`,
		},
		"device":   {[]tar.Header{{Name: "x", Typeflag: tar.TypeChar}}, `unpack: "x": want a regular file with a relative path`},
		"twice":    {[]tar.Header{regular("x"), regular("x")}, `unpack: "x" occurs twice`},
		"no index": {[]tar.Header{regular("x")}, `the bundle has no index.json`},
		"no JSON":  {[]tar.Header{regular("index.json")}, `read index.json: invalid character 'x'`},
	} {
		if _, err := Read(bytes.NewReader(packed(t, row.headers...))); err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %s", what, err, row.want)
		}
	}
}

func TestSizesAreBounded(t *testing.T) {
	archive := packed(t, tar.Header{Name: "a", Size: 3, Typeflag: tar.TypeReg}, tar.Header{Name: "b", Size: 3, Typeflag: tar.TypeReg})
	for _, row := range []struct {
		files int
		room  int64
		want  string
	}{{2, 6, ""}, {1, 6, "the bundle has more than 1 files"}, {2, 5, "the unpacked bundle is too large"}} {
		compressed, err := gzip.NewReader(bytes.NewReader(archive))
		if err != nil {
			t.Fatal(err)
		}
		b := &reader{files: make(map[string][]byte)}
		if err := b.unpack(tar.NewReader(compressed), row.files, row.room); err == nil != (row.want == "") || err != nil && err.Error() != row.want {
			t.Errorf("%d files, %d bytes: error %v, want %q", row.files, row.room, err, row.want)
		}
	}
}

func TestNewerLayoutIsRefused(t *testing.T) {
	archive := written(t, example(&snapshot.Snapshot{}))
	if _, err := Read(bytes.NewReader(archive[:len(archive)/2])); err == nil {
		t.Error("half a bundle is one")
	}
	b := &reader{files: map[string][]byte{indexFile: []byte(`{"version": 2}`)}}
	if _, err := b.bundle(); err == nil || err.Error() != "the bundle has version 2, want 1: use the kubectl-numa that wrote the bundle" {
		t.Errorf("error %v", err)
	}
}

func TestVersionOfTheLayoutIsDocumented(t *testing.T) {
	files.Contains(t, files.Read(t, "../../../docs/upgrading.md"), fmt.Sprintf("| bundle of `kubectl numa gather` | %d | %[1]d |", version))
}

// Fields of a newer state would be ignored, and that would look like drift.
func TestStateOfAnotherBuildIsRefused(t *testing.T) {
	facts := &diagnosis.Facts{}
	for name, want := range map[string]string{
		"nodes/n1.json": `read the state of a node: written by another build: format "", version 2, this build reads format "dra.numa/state", version 1; use the kubectl-numa of the driver's build`, "nodes/n1": "", "n1.json": "",
	} {
		err := addState(facts, name, []byte(`{"version": 2}`))
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	var archive bytes.Buffer
	if err := Write(&archive, example(&snapshot.Snapshot{})); err != nil {
		f.Fatal(err)
	}
	f.Add(archive.Bytes())
	f.Fuzz(func(_ *testing.T, archive []byte) {
		_, _ = Read(bytes.NewReader(archive))
	})
}
