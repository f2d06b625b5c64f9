package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/topology"
)

// testPace gives guests 3 s to boot, and 1.2 s without a word: a test may be that long without a CPU.
const testPace = float64(3*time.Second) / float64(bootTime)

// testGuest is the agent of a node that answers when "booted" is in the folder, and is
// well unless "sick" is. Each time it says that it is well, "asked" grows by a byte.
func testGuest(t *testing.T) (r *Cluster, n Node) {
	t.Helper()
	r = &Cluster{Dir: t.TempDir(), Log: t.Output()}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(r.Path("booted")); err != nil {
			http.Error(w, "not booted", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Trailer", "Rig-Exit")
		w.WriteHeader(http.StatusOK)
		code := "0"
		if _, err := os.Stat(r.Path("sick")); err == nil {
			code = "1"
		} else if asked, err := os.OpenFile(r.Path("asked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = asked.WriteString(".")
			_ = asked.Close()
		}
		w.Header().Set("Rig-Exit", code)
	}))
	t.Cleanup(agent.Close)
	return r, Node{Name: "node", AgentPort: agent.Listener.Addr().(*net.TCPAddr).Port}
}

// starts counts the lines that the machine's script has written.
func starts(t *testing.T, r *Cluster) int {
	t.Helper()
	text, err := os.ReadFile(r.Path("starts"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func TestInterruptedProbeOfKVMIsNotKept(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "accelerator")
	interrupted, interrupt := context.WithCancel(t.Context())
	probes := 0
	probe := func() bool {
		probes++
		interrupt() // matters to the first one only
		return false
	}
	if got, err := probed(interrupted, cache, "boot", probe); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted probe says %q, %v", got, err)
	}
	for range 2 { // the second answer is that of the file
		if got, err := probed(t.Context(), cache, "boot", probe); got != TCG || err != nil {
			t.Errorf("a probe that fails says %q, %v", got, err)
		}
	}
	if _, err := probed(t.Context(), cache, "next boot", probe); err != nil || probes != 3 {
		t.Errorf("%d probes (%v), want 3", probes, err)
	}
}

func TestRunMachineStartsAnewUntilItDoesNotBoot(t *testing.T) {
	r, n := testGuest(t)
	// Boots three times, and goes on for a while when it was asked: ends well, with an error,
	// well. Then it ends at once.
	script := `cd "$0"; echo . >>starts; i=$(wc -l <starts); [ "$i" -le 3 ] || exit 0; : >asked; : >booted; until [ -s asked ]; do sleep 0.1; done; sleep 1; rm booted; [ "$i" != 2 ]`
	err := r.runMachine(t.Context(), n, 1, []string{"sh", "-c", script, r.Dir})
	if err == nil || !strings.Contains(err.Error(), "run sh: the guest has not booted 3 times") {
		t.Errorf("error %v, want that the guest has not booted", err)
	}
	if got := starts(t, r); got != 3+bootAttempts {
		t.Errorf("%d starts, want %d", got, 3+bootAttempts)
	}
}

func TestRunMachineStartsAnewWhatHangs(t *testing.T) {
	r, n := testGuest(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(r.Dir, "second")); err == nil {
				stop()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	// Its agent answers, but its kubelet is not well.
	script := `cd "$0"; : >sick; : >booted; echo . >>starts; [ "$(wc -l <starts)" = 1 ] || : >second; exec sleep 1000`
	if err := r.runMachine(ctx, n, testPace, []string{"sh", "-c", script, r.Dir}); err != nil {
		t.Error(err)
	}
	if got := starts(t, r); got != 2 {
		t.Errorf("%d starts, want 2", got)
	}
}

func TestRunMachineNamesWhatCannotBeStarted(t *testing.T) {
	r, n := testGuest(t)
	var log strings.Builder
	r.Log = &log
	if err := r.runMachine(t.Context(), n, testPace, []string{r.Path("no-qemu")}); err == nil {
		t.Error("no error")
	}
	if !strings.Contains(log.String(), "no such file or directory") {
		t.Errorf("log %q, want why it is not started", log.String())
	}
}

func TestMachineWithRDTIsEmulated(t *testing.T) {
	plain, err := topology.Parse(topology.Default)
	if err != nil {
		t.Fatal(err)
	}
	machine := plain
	machine.RDT = &topology.RDT{Ways: 12, Classes: 4}
	if got, err := PickAccelerator(t.Context(), machine, Boot{}, filepath.Join(t.TempDir(), "answer")); err != nil || got != TCG {
		t.Errorf("accelerator %q, %v; want %q", got, err, TCG)
	}
	if got := strings.Join(TCG.args(machine), " "); !strings.HasSuffix(got, machine.CPUProperties()) {
		t.Errorf("arguments %q without %q", got, machine.CPUProperties())
	}
	if got := strings.Join(TCG.args(plain), " "); strings.Contains(got, "rdt") {
		t.Errorf("arguments %q of a machine without RDT", got)
	}
}
