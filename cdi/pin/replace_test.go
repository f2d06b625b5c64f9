package pin

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// While a DaemonSet is updated, or two releases are on a node, two keepers write one file.
// They used to fill one temporary file together: a reader found half a text, or the end of
// another one, and the second rename failed.
func TestReplaceByTwoWriters(t *testing.T) {
	dir := files.OpenTemp(t)
	texts := [][]byte{[]byte(strings.Repeat("short ", 100) + "."), []byte(strings.Repeat("a longer one ", 1000) + ".")}
	const name = "heartbeat.json"
	if err := Replace(dir, name, texts[0]); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for _, text := range texts {
		for range 2 {
			writers.Go(func() {
				for range 100 {
					if err := Replace(dir, name, text); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		got, err := dir.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, texts[0]) && !bytes.Equal(got, texts[1]) {
			t.Fatalf("a reader finds %d bytes, which nobody wrote at once", len(got))
		}
	}
	if entries, err := os.ReadDir(dir.Name()); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v, want %s only", entries, err, name)
	}
}

// A writer that is killed leaves its file, and holds up nobody.
func TestReplaceAfterAWriterWasKilled(t *testing.T) {
	dir := files.OpenTemp(t)
	if err := dir.WriteFile("a.new", []byte("much longer than what comes next"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Replace(dir, "a.json", []byte("next")); err != nil {
		t.Fatal(err)
	}
	if got, err := dir.ReadFile("a.json"); err != nil || string(got) != "next" {
		t.Errorf("the file has %q, %v", got, err)
	}
}
