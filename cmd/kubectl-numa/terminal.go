package main

import (
	"cmp"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
)

// textOptions returns the options for stdout. width is the user's choice, or 0 for the
// width of the terminal.
func (c cli) textOptions(width int) draw.TextOptions {
	file, isTerminal := terminal(c.stdout)
	if isTerminal {
		columns, _, _ := term.GetSize(int(file.Fd())) // 0 if the terminal does not know it
		width = cmp.Or(width, columns)
	}
	return draw.TextOptions{Width: width, Colour: isTerminal && c.env("NO_COLOR") == "" && c.env("TERM") != "dumb"}
}

// terminal returns the writer as a file if it is a terminal that takes escape sequences.
func terminal(w io.Writer) (file *os.File, isTerminal bool) {
	file, isFile := raw(w).(*os.File)
	return file, isFile && term.IsTerminal(int(file.Fd())) && takesEscapes(file)
}
