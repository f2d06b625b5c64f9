package cdi

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// TestSpecIsReadBack as it was made, of each kind of share.
func TestSpecIsReadBack(t *testing.T) {
	claim := fullClaim()
	claim.Shares = append(claim.Shares, pciClaim().Shares...)
	text, err := Encode(claim, hook)
	if err != nil {
		t.Fatal(err)
	}
	dir := fstest.MapFS{
		fileName(uid):            {Data: text},
		fileName(uid) + ".new":   {Data: []byte("half")},
		"other-vendor.json":      {Data: []byte("{}")},
		fileName("a-torn-claim"): {Data: text[:len(text)/2]},
	}
	all, err := ReadSpecs(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range all {
		got = append(got, fmt.Sprintf("%s cpus %q problem %q", w.ClaimUID, w.CPUs, w.Problem))
		for _, d := range w.Devices {
			if d.Function {
				got = append(got, fmt.Sprintf("%s function, nodes %q", strings.TrimPrefix(d.ID, Kind+"="+uid), d.Nodes))
				continue
			}
			got = append(got, fmt.Sprintf("%s cpus %q idle %q mems %q %s %s", strings.TrimPrefix(d.ID, Kind+"="+uid), d.CPUs, d.Idle, d.Mems, d.Partition, d.Scope))
		}
	}
	want := []string{
		uid + ` cpus "4-10,12-13" problem ""`,
		`_fast-cpus.large_numa-0 cpus "4-7" idle "5,7" mems "0" isolated pod`,
		`_fast-cpus.large_numa-1 cpus "8-9" idle "" mems "1" root container`,
		`_io_numa-1 cpus "" idle "" mems "1" none container`,   // mixed: the hook leaves them alone
		`_io_numa-3 cpus "12" idle "" mems "3" none container`, // nobody is kept off the idle one
		`_memory_numa-2 cpus "" idle "" mems "2" none container`,
		`_drive_nvme-0000-3b-00-0 function, nodes ["/dev/nvme0" "/dev/nvme0n1"]`,
		`_cards_nic-0000-5e-00-0 function, nodes []`,
		`_cards_nic-0000-5e-00-1 function, nodes []`,
		`a-torn-claim cpus "" problem "unexpected end of JSON input"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("specs (-want +got):\n%s", diff)
	}
	if id := DeviceID(uid, "fast-cpus/large", "numa-0"); all[0].Devices[0].ID != id {
		t.Errorf("device %q, want %q", all[0].Devices[0].ID, id)
	}
}

func TestSpecOfSomebodyElseIsAProblem(t *testing.T) {
	for text, want := range map[string]string{
		`{"containerEdits": {"env": ["DRA_NUMA_CPUS=4-x"]}}`: `cpulist "4-x"`,
		`{"devices": [{"name": "d"}]}`:                       `device "d": it has no edits`,
		`{"devices": [{"name": "d", "containerEdits": {"hooks": [{"args": ["numa-pin", "pin", "--mems=99999999"]}]}}]}`: `device "d": --mems: `,
		`{"devices": [{"name": "d", "containerEdits": {"deviceNodes": [null]}}]}`:                                       `device "d": a device node is null`,
		`{"devices": [{"name": "d", "containerEdits": {"hooks": [null]}}]}`:                                             `device "d": a hook is null`,
		`[]`: "cannot unmarshal array",
	} {
		all, err := ReadSpecs(fstest.MapFS{fileName("u"): {Data: []byte(text)}})
		if err != nil || len(all) != 1 || !strings.Contains(all[0].Problem, want) || all[0].CPUs != (cpuset.Set{}) || all[0].Devices != nil {
			t.Errorf("%s: %+v, %v, want the problem %s", text, all, err, want)
		}
	}
	if _, err := ReadSpecs(fstest.MapFS{fileName("u") + "/x": {}}); err == nil {
		t.Error("a folder is a spec")
	}
}

func TestHookCallsAreThoseOfTheSpec(t *testing.T) {
	text, err := Encode(fullClaim(), hook)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := HookCalls(fstest.MapFS{fileName(uid): {Data: text}}, uid)
	if err != nil || len(calls) != 6 {
		t.Fatalf("%d calls, %v, want one of each device, and one of its memory policy", len(calls), err)
	}
	for i, call := range calls {
		want := "numa-pin pin --uid=" + uid
		if i == 5 {
			want = "numa-pin mempolicy --uid=" + uid
		}
		if got := strings.Join(call, " "); !strings.HasPrefix(got, want) {
			t.Errorf("call %s, want %s", got, want)
		}
	}
	for _, text := range []string{"{", `{"devices": [{"containerEdits": {"hooks": [null]}}]}`, `{"devices": [{"containerEdits": {"hooks": [{}]}}]}`} {
		if calls, err := HookCalls(fstest.MapFS{fileName(uid): {Data: []byte(text)}}, uid); err == nil || calls != nil {
			t.Errorf("%s: %q, %v, want an error", text, calls, err)
		}
	}
	if _, err := HookCalls(fstest.MapFS{}, uid); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a spec: %v", err)
	}
}

func FuzzParseSpecNeverPanics(f *testing.F) {
	text, err := Encode(fullClaim(), hook)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, data []byte) {
		if w, err := parseSpec(data); err != nil && (w.Devices != nil || w.CPUs != (cpuset.Set{})) {
			t.Errorf("%q: %+v with %v", data, w, err)
		}
	})
}
