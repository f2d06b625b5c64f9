package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"
)

// How long a guest that boots may print nothing, at pace 1, and how long it may need to go on
// after its kernel has said that a CPU does. Linux says so after 21 s
// (Documentation/RCU/stallwarn.rst). It may go on; nodes of Linux 7.2 that hung had said it.
const (
	silenceTime = 60 * time.Second
	stallTime   = 20 * time.Second
)

// stallLine is what Linux prints when a CPU does nothing.
var stallLine = regexp.MustCompile(`(?m)^.*(?:detected (?:expedited )?stalls on|self-detected stall|soft lockup).*$`)

// console follows what a guest prints, to see whether it hangs.
type console struct {
	name   string // of the file, which grows
	read   int64
	rest   []byte    // the beginning of a line
	grown  time.Time // when it last did
	stall  string    // the first line that says that a CPU does nothing; "" if there is none
	stalls time.Time // when that was read
}

// openConsole follows a file from its present end.
func openConsole(name string, now time.Time) *console {
	c := &console{name: name, grown: now}
	if info, err := os.Stat(name); err == nil {
		c.read = info.Size()
	}
	return c
}

// hangs is an error that says why the guest will not go on. A guest of which one knows
// nothing may go on.
func (c *console) hangs(now time.Time, pace float64) error {
	c.follow(now)
	switch {
	case c.stall != "" && now.Sub(c.stalls) > times(stallTime, pace):
		return fmt.Errorf("the guest hangs since its kernel said %q", c.stall)
	case now.Sub(c.grown) > times(silenceTime, pace):
		return fmt.Errorf("the guest hangs: it has printed nothing for %.0f s", now.Sub(c.grown).Seconds())
	}
	return nil
}

func (c *console) follow(now time.Time) {
	file, err := os.Open(c.name)
	if err != nil {
		return // QEMU has not made it yet
	}
	defer func() { _ = file.Close() }() // opened for reading
	text, err := io.ReadAll(io.NewSectionReader(file, c.read, 1<<20))
	if err != nil || len(text) == 0 {
		return
	}
	c.grown = now
	c.read += int64(len(text))
	if c.stall != "" {
		return
	}
	text = append(c.rest, text...)
	end := bytes.LastIndexByte(text, '\n') + 1
	if line := stallLine.Find(text[:end]); line != nil {
		c.stall, c.stalls = string(bytes.TrimSpace(line)), now
	}
	c.rest = text[end:]
}

// positions says of each CPU of a guest what it executes and whether it waits for an
// interrupt, in one line. The addresses are in System.map of the kernel's package.
func (r *Cluster) positions(ctx context.Context, n Node) string {
	var text string
	err := eventually(3*time.Second, 200*time.Millisecond, func() (err error) { // wake is at the monitor now and then
		text, err = r.Monitor(ctx, n, "info registers -a")
		if errors.Is(err, fs.ErrNotExist) {
			return nil // QEMU has ended
		}
		return err
	})
	if err != nil {
		return err.Error()
	}
	return strings.Join(positionsIn(text), ", ")
}

var (
	cpuLine  = regexp.MustCompile(`^CPU#\d+`)
	ripField = regexp.MustCompile(`\bRIP=[0-9a-f]+`)
	hltField = regexp.MustCompile(`\bHLT=1`)
)

func positionsIn(registers string) (list []string) {
	cpu := ""
	for line := range strings.Lines(registers) {
		if found := cpuLine.FindString(line); found != "" {
			cpu = found
		}
		if at := ripField.FindString(line); at != "" {
			position := cpu + " " + at
			if hltField.MatchString(line) {
				position += " halted"
			}
			list = append(list, position)
		}
	}
	return list
}
