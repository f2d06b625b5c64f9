package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConsoleTellsGuestsThatHang(t *testing.T) {
	const stall = "[   31.2] rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 5-.... } 5252 jiffies s: 81 root: 0x1/."
	type step struct {
		after  int // seconds
		prints string
		want   string // part of the error
	}
	for _, row := range []struct {
		name  string
		pace  float64
		steps []step
	}{
		{"boots", 1, []step{{3, "RIG: booted 3.1\n", ""}, {20, "RIG: kubelet starts 22\n", ""}, {50, "", ""}}},
		{"silent", 1, []step{{61, "", "printed nothing for 61 s"}}},
		{"silent behind a line that does not end", 1, []step{{1, "/ # ", ""}, {59, "", ""}, {2, "", "printed nothing for 61 s"}}},
		{"silent on a slow host", 2, []step{{100, "", ""}, {21, "", "printed nothing for 121 s"}}},
		{"stall", 1, []step{{25, stall + "\n", ""}, {19, "", ""}, {2, "", stall}}},
		{"stall in two parts", 1, []step{{25, stall[:40], ""}, {1, stall[40:] + "\n", ""}, {21, "", stall}}},
		{"stall that talks on", 1, []step{{25, stall + "\n", ""}, {15, "Sending NMI\n", ""}, {6, "NMI backtrace\n", stall}}},
		{"lockup", 1, []step{{25, "watchdog: BUG: soft lockup - CPU#3 stuck for 26s!\n", ""}, {21, "", "soft lockup"}}},
	} {
		file := filepath.Join(t.TempDir(), "console")
		if err := os.WriteFile(file, []byte(stall+" of the boot before\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		c := openConsole(file, now)
		for i, step := range row.steps {
			now = now.Add(time.Duration(step.after) * time.Second)
			appendTo(t, file, step.prints)
			err := c.hangs(now, row.pace)
			if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
				t.Errorf("%s, step %d: error %v, want %q", row.name, i, err, step.want)
			}
		}
	}
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// A guest that hangs ends before the time that it has for its boot.
func TestRunMachineEndsWhatHangsEarly(t *testing.T) {
	r, n := testGuest(t)
	if err := os.MkdirAll(filepath.Dir(r.Console(n)), 0o700); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	r.Log = &log
	script := `cd "$0"; echo . >>starts; [ "$(wc -l <starts)" = 1 ] || exit 0; echo "rcu_preempt self-detected stall on CPU" >>"$1"; exec sleep 1000`
	const pace = float64(500*time.Millisecond) / float64(stallTime)
	if err := r.runMachine(t.Context(), n, pace, []string{"sh", "-c", script, r.Dir, r.Console(n)}); err == nil {
		t.Error("no error, although the guest never boots")
	}
	if !strings.Contains(log.String(), `the guest hangs since its kernel said "rcu_preempt self-detected stall on CPU"`) {
		t.Errorf("log %q, want why the guest was ended", log.String())
	}
}

func TestPositionsOfCPUs(t *testing.T) {
	const registers = "\r\nCPU#0\r\nRAX=0000000000000000 RBX=0000000000000001\r\nRIP=ffffffff81e0b1ef RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\n" +
		"CPU#10\r\nRIP=ffffffff8118a3c2 RFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n"
	want := "CPU#0 RIP=ffffffff81e0b1ef halted, CPU#10 RIP=ffffffff8118a3c2"
	if got := strings.Join(positionsIn(registers), ", "); got != want {
		t.Errorf("positions %q, want %q", got, want)
	}
}
