package cluster

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
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
