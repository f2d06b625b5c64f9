// Package cli contains what the command lines of the programs have in common: exit
// codes for all programs, and flags and errors for the daemons. It prints and parses,
// and decides nothing.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Exit codes of the programs.
const (
	// ExitDone means that the program did what it was asked to do.
	ExitDone = 0
	// ExitFailed means that the flags make sense, but the answer is no or the work
	// failed.
	ExitFailed = 1
	// ExitUsage means that a flag, a setting or an input file makes no sense: the same
	// command line fails again.
	ExitUsage = 2
)

// UsageError is an error about a flag or a setting. The program exits with ExitUsage.
type UsageError struct{ Err error }

// Error returns the text of Err.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef formats a UsageError as fmt.Errorf does.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Parse parses arguments up to the first one that is not a flag. If the user asks for
// help, it prints the usage and the flags to stdout and returns flag.ErrHelp. All other
// errors are UsageErrors.
func Parse(flags *flag.FlagSet, args []string, usage string, stdout io.Writer) error {
	flags.SetOutput(io.Discard) // Exit prints the error, in one line
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

// FlagsOnly returns a UsageError if arguments are left after Parse.
func FlagsOnly(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return Usagef("unexpected argument %q, %s takes only flags", flags.Arg(0), flags.Name())
	}
	return nil
}

// maxVerbosity is the highest level that klog gets. From level 8, client-go logs the
// bodies of requests and answers, such as a Secret with a key.
const maxVerbosity = 7

// AddVerbosity adds the flag -v. Pass its value to SetVerbosity.
func AddVerbosity(flags *flag.FlagSet, level *int) {
	flags.IntVar(level, "v", 2, "log verbosity, 0 to 10; 8 to 10 log the same as 7, because client-go would log whole objects, also Secrets")
}

// SetVerbosity sets the log level of klog: 0 to 10, where 8 to 10 mean 7.
func SetVerbosity(level int) error {
	if level < 0 || level > 10 {
		return Usagef("-v %d: allowed are 0 to 10", level)
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags.Set("v", strconv.Itoa(min(level, maxVerbosity)))
}

// Exit prints the error that ended a program, in one line. It returns the exit code:
// ExitDone without an error or after help, ExitUsage for a UsageError, and otherwise
// ExitFailed.
func Exit(program string, err error, stderr io.Writer) (exitCode int) {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return ExitDone
	}
	fmt.Fprintf(stderr, "%s: error: %s\n", program, message.OneLine(err.Error()))
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		return ExitUsage
	}
	return ExitFailed
}
