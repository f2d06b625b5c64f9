package kernelfs

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func pipe(t testing.TB) (read, write int) {
	t.Helper()
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = syscall.Close(ends[0]), syscall.Close(ends[1]) })
	return ends[0], ends[1]
}

func newPulse(t testing.TB, period time.Duration, files ...int) *Pulse {
	t.Helper()
	p, err := NewPulse(period, files...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestBeatsEachPeriod(t *testing.T) {
	const period = 20 * time.Millisecond
	begin := time.Now()
	p := newPulse(t, period)
	for range 5 {
		if !p.Wait() {
			t.Fatal("closed")
		}
	}
	if took := time.Since(begin); took < 5*period {
		t.Errorf("five beats took %s, want %s", took, 5*period)
	}
	time.Sleep(4 * period)
	begin = time.Now()
	for range 4 { // the first at once, for all that were missed
		if !p.Wait() {
			t.Fatal("closed")
		}
	}
	if took := time.Since(begin); took < 2*period {
		t.Errorf("beats that were missed are made up for: four took %s", took)
	}
}

func TestFileThatCanBeReadIsABeat(t *testing.T) {
	read, write := pipe(t)
	p := newPulse(t, time.Hour, read)
	buf := make([]byte, 8)
	for range 3 {
		time.AfterFunc(5*time.Millisecond, func() {
			if _, err := syscall.Write(write, []byte("x")); err != nil {
				t.Error(err)
			}
		})
		if !p.Wait() {
			t.Fatal("closed")
		}
		if !p.Wait() { // until it is read
			t.Fatal("closed")
		}
		if n, err := Read(read, buf); n != 1 || err != nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
	}
	if _, err := Read(read, buf); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("an empty pipe: %v, want EAGAIN", err)
	}
}

func TestCloseEndsWait(t *testing.T) {
	p := newPulse(t, time.Hour)
	time.AfterFunc(10*time.Millisecond, func() { _ = p.Close() })
	for range 2 {
		if p.Wait() {
			t.Error("a beat after the end")
		}
	}
	if err := p.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
}

func TestFilesThatCannotBeWaitedFor(t *testing.T) {
	if p, err := NewPulse(time.Second, -1); err == nil {
		t.Errorf("NewPulse returned %v", p)
	}
}

func TestReadStart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("0-3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for range 2 {
		buf := make([]byte, 16)
		if n, err := readStart(int(file.Fd()), buf); err != nil || string(buf[:n]) != "0-3\n" {
			t.Errorf("read %q, %v", buf[:n], err)
		}
	}
	if _, err := readStart(-1, nil); !errors.Is(err, syscall.EBADF) {
		t.Errorf("no file: %v, want EBADF", err)
	}
}

// BenchmarkWait compares a beat with that of a timer of the Go runtime. The number that
// matters is how often threads are woken for one.
func BenchmarkWait(b *testing.B) {
	const period = 20 * time.Millisecond
	b.Run("pulse", func(b *testing.B) {
		p := newPulse(b, period)
		defer countWakes(b)()
		for b.Loop() {
			p.Wait()
		}
	})
	b.Run("ticker", func(b *testing.B) {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		defer countWakes(b)()
		for b.Loop() {
			<-ticker.C
		}
	})
}

// countWakes reports how often threads of the process have waited, until the result is
// called.
func countWakes(b *testing.B) (report func()) {
	count := func() (waits int) {
		tasks, _ := filepath.Glob("/proc/self/task/*/status")
		for _, task := range tasks {
			text, _ := os.ReadFile(task)
			_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:\t")
			number, _, _ := strings.Cut(rest, "\n")
			n, _ := strconv.Atoi(number)
			waits += n
		}
		return waits
	}
	before := count()
	return func() { b.ReportMetric(float64(count()-before)/float64(b.N), "wakes/op") }
}
