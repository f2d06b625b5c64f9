package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// takesEscapes reports whether a console takes escape sequences. Windows has them since
// version 10, and only for programs that ask for them.
func takesEscapes(file *os.File) bool {
	console := windows.Handle(file.Fd())
	var mode uint32
	err := windows.GetConsoleMode(console, &mode)
	return err == nil && windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
