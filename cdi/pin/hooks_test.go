package pin

import (
	"os"
	"testing"
	"time"
)

func TestHooksAreCountedInTheLock(t *testing.T) {
	lock := t.TempDir() + "/lock"
	expect := func(pinned, refused uint64, sum time.Duration) {
		t.Helper()
		hooks, err := ReadHooks(lock)
		if err != nil {
			t.Fatal(err)
		}
		if got := hooks.Pinned.Read(); got.Count != pinned || got.Sum != sum || hooks.Refused.Read().Count != refused {
			t.Errorf("%d hooks pinned in %s and %d refused, want %d, %s and %d", got.Count, got.Sum, hooks.Refused.Read().Count, pinned, sum, refused)
		}
	}
	expect(0, 0, 0) // there is no lock yet
	for range 2 {
		unlock, err := Lock(lock)
		if err != nil {
			t.Fatal(err)
		}
		if err := CountHook(lock, 5*time.Millisecond, false); err != nil {
			t.Fatal(err)
		}
		unlock()
	}
	if err := CountHook(lock, time.Minute, true); err != nil {
		t.Fatal(err)
	}
	expect(2, 1, 10*time.Millisecond)
	whole, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{whole[:len(whole)/2], append([]byte("{\"pinned\":{\"counts\":[9],\"sum\":9}}"), '\n'), make([]byte, 100)} {
		if err := os.WriteFile(lock, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if hooks, err := ReadHooks(lock); err == nil {
			t.Errorf("of %q the figures are %+v, want an error", damaged, hooks.Pinned.Read())
		}
	}
	if err := CountHook(lock, time.Millisecond, false); err != nil { // starts from nothing
		t.Fatal(err)
	}
	expect(1, 0, time.Millisecond)
}

func BenchmarkCountHook(b *testing.B) {
	lock := b.TempDir() + "/lock"
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := CountHook(lock, time.Millisecond, false); err != nil {
			b.Fatal(err)
		}
	}
}
