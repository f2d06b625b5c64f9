package main

import (
	"fmt"
	"io"
	"time"
)

// progressEvery is the time between two updates. Work that takes less time shows no
// progress.
const progressEvery = 200 * time.Millisecond

// progress is a line on a terminal that shows how much of a long task is done. Only one
// goroutine may use it.
type progress struct {
	out     io.Writer // nil if there is no terminal
	what    string
	next    time.Time
	written bool
}

// progress starts a task that may take long. what names the things that are counted,
// such as "pods placed". The caller must call done before it writes anything else.
func (c cli) progress(what string) *progress {
	p := &progress{what: what, next: time.Now().Add(progressEvery)}
	if file, isTerminal := terminal(c.stderr); isTerminal && c.env("TERM") != "dumb" {
		p.out = file
	}
	return p
}

// at shows that part of the whole is done. It is cheap, so the caller may call it very
// often.
func (p *progress) at(part, whole int) {
	if p.out == nil {
		return
	}
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next, p.written = now.Add(progressEvery), true
	fmt.Fprintf(p.out, "\r\x1b[K%d of %d %s", part, whole, p.what)
}

// done removes the line.
func (p *progress) done() {
	if p.written {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.written = false
	}
}
