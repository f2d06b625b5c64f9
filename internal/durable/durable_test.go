package durable

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestReplaceLeavesOldContentOnError(t *testing.T) {
	dir := files.OpenTemp(t)
	if err := Replace(dir, "f", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dir.MkdirAll("f.new/in-the-way", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Replace(dir, "f", []byte("new"), 0o600); err == nil || !strings.Contains(err.Error(), "f.new") {
		t.Errorf("error %v, want one that names f.new", err)
	}
	if got, err := dir.ReadFile("f"); err != nil || string(got) != "old" {
		t.Errorf("content %q, %v, want the old one", got, err)
	}
}
