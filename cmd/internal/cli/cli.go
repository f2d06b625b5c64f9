// Package cli is the command line that the long-lived programs have in common:
// flags only, errors in one line, and what the exit status says.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

// Exit statuses.
const (
	exitDone     = 0
	exitCouldNot = 1
	exitUsage    = 2 // repeating it is of no use
)

// UsageError is a flag or a setting that makes no sense.
type UsageError struct{ Err error }

// Error is that of Err.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef is a UsageError with the error of fmt.Errorf.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Parse parses arguments up to the first that is no flag. If they ask for help, it
// goes to stdout after the usage, and the error is flag.ErrHelp; all other errors
// are UsageErrors.
func Parse(flags *flag.FlagSet, args []string, usage string, stdout io.Writer) error {
	flags.SetOutput(io.Discard) // an error is one line, printed by Exit
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return err
	case err != nil:
		return &UsageError{err}
	}
	return nil
}

// FlagsOnly is a UsageError if Parse has left an argument.
func FlagsOnly(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return Usagef("unexpected argument %q, %s takes flags only", flags.Arg(0), flags.Name())
	}
	return nil
}

// AddVerbosity gives a program the flag -v, for SetVerbosity.
func AddVerbosity(flags *flag.FlagSet, level *int) {
	flags.IntVar(level, "v", 2, "log verbosity, 0 to 10")
}

// SetVerbosity has klog log up to a level, of 0 to 10.
func SetVerbosity(level int) error {
	if level < 0 || level > 10 {
		return Usagef("-v %d: allowed are 0 to 10", level)
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags.Set("v", strconv.Itoa(level))
}

// Exit says what ended a program, in one line, and returns its exit status: 0
// without an error or after help, 2 for a UsageError, else 1.
func Exit(program string, err error, stderr io.Writer) (status int) {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	fmt.Fprintf(stderr, "%s: error: %s\n", program, OneLine(err))
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		return exitUsage
	}
	return exitCouldNot
}

// OneLine is the error's text without the line breaks that messages of other
// modules may have.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
