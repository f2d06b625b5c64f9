package archive

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestOrderOfFilesDoesNotMatter(t *testing.T) {
	list := []File{{"b", 0o755, []byte("two")}, {"a/c", 0o644, []byte("one")}}
	first, err := Compress(list)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(list)
	second, err := Compress(list)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the same files in another order give other bytes")
	}
	unpacked := files.Unpack(t, first)
	if len(unpacked) != 2 || unpacked[0].Name != "a/c" || unpacked[0].Text != "one" || unpacked[1].Text != "two" {
		t.Fatalf("the archive has %+v", unpacked)
	}
	for i, mode := range []int64{0o644, 0o755} {
		if got := unpacked[i]; got.Mode != mode || got.Uid != 0 || got.Uname != "" || !got.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("header of %s: %+v", got.Name, got.Header)
		}
	}
}
