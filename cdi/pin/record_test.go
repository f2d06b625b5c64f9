package pin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func someRecord() record {
	return record{Boot: "boot", Cgroup: "k/be/pod/abc", Scope: ScopeContainer, Claims: []Claim{
		claimed("1", "2-3", "0", PartitionRoot), claimed("2", "", "1", PartitionNone),
	}}
}

const someText = `{"format":"dra.numa/pins","version":1,"boot":"boot","cgroup":"k/be/pod/abc","scope":"container","claims":[` +
	`{"uid":"1","name":"team/1","cpus":"2-3","mems":"0","partition":"root"},` +
	`{"uid":"2","name":"team/2","cpus":"","mems":"1","partition":"none"}]}` + "\n"

func TestRecordIsReadAsItIsWritten(t *testing.T) {
	data, err := someRecord().render()
	if err != nil || string(data) != someText {
		t.Errorf("rendered %s (%v), want %s", data, err, someText)
	}
	r, err := parseRecord([]byte(someText))
	if err != nil || !reflect.DeepEqual(r, someRecord()) {
		t.Errorf("parsed %+v (%v)", r, err)
	}
}

// The fields are left out where no quota is lifted: other builds read such records.
func TestRecordSaysWhichQuotaWasLifted(t *testing.T) {
	r := someRecord()
	r.Claims[0].LiftQuota, r.Claims[0].PodLimit, r.Quota, r.Inner = true, 2500, "200000 100000", true
	data, err := r.render()
	want := strings.Replace(someText, `"partition":"root"}`, `"partition":"root","liftQuota":true,"podLimit":2500}`, 1)
	want = strings.Replace(want, "]}\n", `],"quota":"200000 100000","inner":true}`+"\n", 1)
	if err != nil || string(data) != want {
		t.Errorf("rendered %s (%v), want %s", data, err, want)
	}
	if again, err := parseRecord(data); err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("parsed %+v (%v)", again, err)
	}
	if r, err := parseRecord([]byte(strings.Replace(want, "200000 100000", "200000 0", 1))); err == nil {
		t.Errorf("a quota without a period is read as %+v", r)
	}
}

func TestRecordRefusesWhatItDidNotWrite(t *testing.T) {
	for _, edit := range []struct{ old, fresh string }{
		{"k/be/pod/abc", "/k/abc"},
		{"k/be/pod/abc", "k/../../etc"},
		{"k/be/pod/abc", "."},
		{"k/be/pod/abc", ""},
		{`"container"`, `"shared"`},
		{`"2-3"`, `"2,3"`},
		{`"2-3"`, `"3-2"`},
		{`"2-3"`, `"9999"`},
		{`"2-3"`, `""`},
		{`"root"`, `"member"`},
		{`"uid":"2"`, `"uid":"1"`},
		{`"uid":"2"`, `"uid":"0"`},
		{`"boot"`, `"BOOT"`},
		{"}\n", "}"},
		{"}\n", "}\n{}"},
		{`"boot":`, `"more":1,"boot":`},
		{`"dra.numa/pins"`, `"dra.numa/other"`},
		{`"version":1`, `"version":2`},
		{`"format":"dra.numa/pins","version":1,`, ``},
	} {
		text := strings.Replace(someText, edit.old, edit.fresh, 1)
		if r, err := parseRecord([]byte(text)); err == nil || !reflect.DeepEqual(r, record{}) {
			t.Errorf("with %s for %s: %+v, %v, want an error", edit.fresh, edit.old, r, err)
		}
	}
	for i := range someText {
		if _, err := parseRecord([]byte(someText[:i])); err == nil {
			t.Errorf("the first %d bytes are a record", i)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(someText))
	f.Add([]byte(`{"format":"dra.numa/pins","version":1,"boot":"","cgroup":"a\u003cb","scope":"pod","claims":[{"uid":"","name":"","cpus":"1","mems":"","partition":"none"}]}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRecord(data)
		if err != nil {
			if !reflect.DeepEqual(r, record{}) {
				t.Errorf("record %+v beside error %v", r, err)
			}
			return
		}
		if !fs.ValidPath(r.Cgroup) {
			t.Errorf("cgroup %q", r.Cgroup)
		}
		if again, err := r.render(); err != nil || string(again) != string(data) {
			t.Errorf("rendered %q (%v), parsed %q", again, err, data)
		}
	})
}

func TestParseScope(t *testing.T) {
	for _, scope := range []Scope{ScopeContainer, ScopePod} {
		if got, err := ParseScope(string(scope)); got != scope || err != nil {
			t.Errorf("ParseScope(%q) = %q, %v", scope, got, err)
		}
	}
	if _, err := ParseScope("shared"); err == nil || err.Error() != `scope "shared": want one of container, pod` {
		t.Errorf("ParseScope(shared): %v", err)
	}
}

// Files that are no records are a fault to report; they stop nobody.
func TestForeignRecords(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "0", PartitionRoot))
	for name, text := range map[string]string{
		"torn.json": someText[:20], "other.json": someText, "empty.json": "", "abc.new": "x", "README": "x",
		"big.json": strings.Repeat(" ", recordBytes+1),
	} {
		files.Write(t, filepath.Join(m.records, name), text)
	}
	if err := os.Mkdir(filepath.Join(m.records, "folder.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(m.records, "link.json")); err != nil {
		t.Fatal(err)
	}
	list, err := Inspect(m.host().Cgroups.FS(), m.host().Records.FS())
	if len(list) != 1 || list[0].Cgroup != ctrA || list[0].Fault != "" || err == nil {
		t.Errorf("Inspect = %+v, %v", list, err)
	}
	files.Contains(t, err.Error(),
		`read record "torn.json": unexpected end of JSON input`, `read record "other.json": it belongs to cgroup "k/be/pod/abc"`,
		`"empty.json"`, `"big.json": more than`, `"folder.json": not a regular file`, `"link.json": not a regular file`,
	)
	running(m, ctrB)
	mustPin(m, ctrB, ScopeContainer, claimed("next", "4", "0", PartitionRoot))
	var lines []string
	k := keeper(m.host(), &lines)
	for range 2 {
		if healthy := k.pass(t.Context(), &watch{}); !healthy {
			t.Error("the keeper is not content")
		}
	}
	if len(lines) != 1 || strings.Count(lines[0], "read record") != 6 || strings.Contains(lines[0], "\n") {
		t.Errorf("the keeper says %q, want one line", lines)
	}
}

// A build that was rolled back finds records of another hook. It cannot tell what they give,
// so it neither repairs nor releases their cgroups, and the kernel keeps the CPUs.
func TestRecordOfAnotherBuildIsPassedOver(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "0", PartitionRoot))
	newer := strings.Replace(files.Read(t, m.records+"/a.json"), `"version":1`, `"version":2`, 1)
	files.Write(t, m.records+"/a.json", newer)

	list, err := Inspect(m.host().Cgroups.FS(), m.host().Records.FS())
	const want = `read record "a.json": written by another build of numa-pin: drain the node and delete the file`
	if len(list) != 0 || err == nil || err.Error() != want {
		t.Errorf("Inspect = %+v, %v, want no cgroup and %s", list, err, want)
	}
	if lines := keep(m); len(lines) != 1 || lines[0] != want {
		t.Errorf("the keeper says %q, want %s", lines, want)
	}
	running(m, ctrB)
	mustPin(m, ctrB, ScopeContainer, claimed("next", "4", "0", PartitionRoot))
	running(m, ctrC)
	if err := Pin(m.host(), ctrC, ScopeContainer, claimed("other", "3", "0", PartitionRoot)); !errors.Is(err, ErrInUse) {
		t.Errorf("a hook that gives a CPU of the partition again: %v, want ErrInUse", err)
	}
	checkLine(m, ctrA+"/"+partitionFile, "root")
	if now := files.Read(t, m.records+"/a.json"); now != newer {
		t.Errorf("the record is now %s", now)
	}
}

func TestInspectWithoutRecords(t *testing.T) {
	if list, err := Inspect(fstest.MapFS{}, os.DirFS(t.TempDir()+"/missing")); list != nil || err != nil {
		t.Errorf("Inspect without folder = %v, %v", list, err)
	}
}

func TestRecordsAreForEverybodyToRead(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA)
	defer syscall.Umask(syscall.Umask(0o077))
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "0", PartitionRoot))
	info, err := os.Stat(filepath.Join(m.records, "a.json"))
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := LeaveRefusal(m.host().Records, Refusal{ClaimRef{"u", "team/job"}, "x", time.Now(), "in use"}); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(m.records + "/*" + refusalSuffix)
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	if info, err := os.Stat(left[0]); err != nil || info.Mode() != 0o644 {
		t.Errorf("refusal: mode %v, %v", info.Mode(), err)
	}
	if names := recordFiles(m); len(names) != 2 {
		t.Errorf("files %q", names)
	}
}

func TestInspectSaysWhenTheControllerIsGone(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "0", PartitionRoot))
	if err := os.Remove(filepath.Join(m.dir, ctrA, partitionFile)); err != nil {
		t.Fatal(err)
	}
	checkLive(m, "a root job fault")
	if lines := keep(m); len(lines) != 1 || !strings.Contains(lines[0], partitionFile) {
		t.Errorf("the keeper says %q", lines)
	}
}

// The folder of the mounts of cgroup v1 is read-only, so the probe must not need to write there.
func TestProbeWithoutCgroupV2(t *testing.T) {
	dir := t.TempDir()
	files.Write(t, dir+"/"+probeLeaf+"/in-the-way", "")
	before := files.Tree(t, dir)
	if supported, err := Probe(files.Open(t, dir), 1); supported || err != nil {
		t.Errorf("Probe = %v, %v", supported, err)
	}
	if after := files.Tree(t, dir); !reflect.DeepEqual(after, before) {
		t.Errorf("the probe leaves %v of %v", after, before)
	}
}
