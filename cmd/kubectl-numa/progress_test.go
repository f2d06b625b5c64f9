package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Progress is shown only on a terminal.
func TestProgressIsOneLineThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		p := &progress{out: &terminal, what: "pods placed"}
		for i := range 1000 {
			p.at(i+1, 1000)
		}
		if got := terminal.String(); got != "\r\x1b[K1 of 1000 pods placed" {
			t.Errorf("within a moment it writes %q", got)
		}
		p.next = time.Now()
		p.at(1000, 1000)
		p.done()
		p.done()
		if got := terminal.String(); !strings.HasSuffix(got, "\r\x1b[K1000 of 1000 pods placed\r\x1b[K") || strings.Contains(got, "\n") {
			t.Errorf("in the end it has written %q", got)
		}
		var file bytes.Buffer
		p = cli{stderr: &file, env: func(string) string { return "" }}.progress("pods placed")
		p.next = time.Time{}
		p.at(1, 2)
		p.done()
		if file.Len() > 0 {
			t.Errorf("into a file it writes %q", file.String())
		}
	})
}
