// Package host describes the machine that benchmarks run on, and measures how programs
// start. It reads /proc.
package host

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is what a reader needs to know about the machine.
type Machine struct {
	Processor string
	CPUs      int
	Kernel    string
	Go        string
	Load      string // average number of runnable tasks in the last 1, 5 and 15 minutes
	Nice      int    // above 0: other programs go first
}

// Describe reads the machine.
func Describe() Machine {
	m := Machine{Processor: "unknown", CPUs: runtime.NumCPU(), Go: strings.TrimPrefix(runtime.Version(), "go"), Nice: nice()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				m.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel, _, _ = strings.Cut(strings.TrimSpace(string(text)), "-")
	}
	m.Load = Load()
	return m
}

// Rows describe the machine in a table: what, and value.
func (m Machine) Rows() [][]string {
	priority := "normal priority"
	if m.Nice > 0 {
		priority = fmt.Sprintf("nice %d, so other programs went first", m.Nice)
	}
	return [][]string{
		{"processor", m.Processor},
		{"CPUs", fmt.Sprint(m.CPUs)},
		{"kernel", "Linux " + m.Kernel},
		{"Go", m.Go},
		{"priority", priority},
		{"load averages before", m.Load},
	}
}

// Note tells the reader of a page what the load averages mean.
const Note = `
A load average above the number of CPUs means that other programs ran at the same time. Then the ranges are wider, and
times are longer than on a quiet machine. Ratios suffer less.
`

// Load returns the load averages of now.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], ", ")
}

// Busy says that more than one task ran on average in the last minute, or that nobody knows.
func Busy(load string) bool {
	first, _, _ := strings.Cut(load, ",")
	average, err := strconv.ParseFloat(first, 64)
	return err != nil || average > 1
}

// Unjudged says that a page has no verdicts, because the machine was busy when the command began
// to measure.
func Unjudged(command string) string {
	return "The load average was above 1 at the start, so this page judges no goal: run `" + command + "` on a machine where nothing else runs.\n"
}

// Patience is how long a benchmark waits for [Settle], which a build before it makes necessary.
const Patience = 2 * time.Minute

// Settle waits until the machine is not busy any more, for the given time at most.
func Settle(ctx context.Context, wait time.Duration, progress func(line string)) {
	if !Busy(Load()) || wait <= 0 {
		return
	}
	progress(fmt.Sprintf("wait up to %s for a load average of 1 or less", wait))
	limit := time.After(wait)
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for Busy(Load()) {
		select {
		case <-ctx.Done():
			return
		case <-limit:
			return
		case <-tick.C:
		}
	}
}

// nice reads field 19 of /proc/self/stat, proc_pid_stat(5).
func nice() (value int) {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), ") ")
	if fields := strings.Fields(after); len(fields) > 16 {
		_, _ = fmt.Sscan(fields[16], &value)
	}
	return value
}

// Program is the size and the start of a program.
type Program struct {
	Name   string
	Bytes  int64
	Starts []float64 // user and system time of each start, in nanoseconds
}

// Start runs the program so many times. The arguments have it print something and end.
func Start(path string, times int, args ...string) (Program, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Program{}, err
	}
	p := Program{Name: filepath.Base(path), Bytes: info.Size()}
	for range times {
		command := exec.Command(path, args...)
		if output, err := command.CombinedOutput(); err != nil {
			return p, fmt.Errorf("%s: %w\n%s", command, err, output)
		}
		state := command.ProcessState
		p.Starts = append(p.Starts, float64((state.UserTime()+state.SystemTime())/time.Nanosecond))
	}
	return p, nil
}
