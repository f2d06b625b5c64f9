package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progressEvery is how often a line is rewritten, and how long work takes before it
// is worth one.
const progressEvery = 200 * time.Millisecond

// progress is a line on a terminal that says how far long work is. It is for one
// goroutine.
type progress struct {
	out     io.Writer // nil is no terminal
	what    string
	next    time.Time
	written bool
}

// progress begins work that may take long; what is what is counted, such as "pods
// placed". Done has to be called before anything else is written.
func (c cli) progress(what string) *progress {
	p := &progress{what: what, next: time.Now().Add(progressEvery)}
	if file, ok := c.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) && c.env("TERM") != "dumb" {
		p.out = file
	}
	return p
}

// at says that part of the whole is done. It may be called very often.
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

// done takes the line away.
func (p *progress) done() {
	if p.written {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.written = false
	}
}
