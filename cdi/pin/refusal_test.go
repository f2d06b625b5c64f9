package pin

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestRefusalsAreLeftForTheDaemon(t *testing.T) {
	records := files.OpenTemp(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	leave := func(container, why string, at time.Time) error {
		return LeaveRefusal(records, Refusal{ClaimRef{"u", "team/job"}, container, at, why})
	}
	for _, why := range []string{"first", "in use"} {
		if err := leave("../../etc/x", why, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := leave("abc", strings.Repeat("é", refusalBytes), now); err != nil {
		t.Fatal(err)
	}
	if err := records.WriteFile("torn"+refusalSuffix, []byte(`{"claim":`), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := Refusals(records.FS(), now)
	if err != nil || len(list) != 2 {
		t.Fatalf("refusals %+v, %v, want two", list, err)
	}
	for _, r := range list {
		if r.Claim != (ClaimRef{"u", "team/job"}) || !r.At.Equal(now) || len(r.Why) > refusalBytes/2 || r.Container != "abc" && r.Why != "in use" {
			t.Errorf("refusal %+v", r)
		}
	}
	newer := fstest.MapFS{"x" + refusalSuffix: {Data: []byte(`{"more":{},"claim":{"uid":"u","name":"n"},"container":"c","at":"` + now.Format(time.RFC3339Nano) + `","why":"w"}`)}}
	if list, err := Refusals(newer, now); err != nil || len(list) != 1 || list[0] != (Refusal{ClaimRef{"u", "n"}, "c", now, "w"}) {
		t.Errorf("of a newer hook: %+v, %v", list, err)
	}
	if kept, faults, err := loadRecords(records.FS()); err != nil || len(kept)+len(faults) > 0 {
		t.Errorf("they count as records: %v, %v, %v", kept, faults, err)
	}
	// Later they are gone, first for readers, then on the disk.
	later := now.Add(refusalLasts + time.Second)
	if list, err := Refusals(records.FS(), later); err != nil || len(list) != 0 {
		t.Errorf("refusals %+v, %v after %s", list, err, refusalLasts)
	}
	if err := leave("abc", "again", later); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(records.Name())
	if err != nil || len(entries) != 1 {
		t.Errorf("files %v, %v, want one", entries, err)
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	records := files.OpenTemp(t)
	first := ""
	for i := range maxRefusals + 1 {
		for range 2 { // the second one replaces the first
			if err := LeaveRefusal(records, Refusal{ClaimRef{"u", "team/job"}, fmt.Sprint(i), time.Now(), "in use"}); err != nil {
				t.Fatal(err)
			}
		}
		if i > 0 {
			continue
		}
		left, err := os.ReadDir(records.Name())
		if err != nil || len(left) != 1 {
			t.Fatalf("files %v, %v", left, err)
		}
		first = left[0].Name()
		if err := os.Chtimes(records.Name()+"/"+first, time.Time{}, time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := Refusals(records.FS(), time.Now()); err != nil || len(list) != maxRefusals {
		t.Errorf("%d refusals, %v, want %d", len(list), err, maxRefusals)
	}
	if _, err := os.Stat(records.Name() + "/" + first); err == nil {
		t.Error("the oldest refusal is still there")
	}
	if list, err := Refusals(os.DirFS(records.Name()+"/none"), time.Now()); err != nil || list != nil {
		t.Errorf("no folder: %v, %v", list, err)
	}
}
