// Package cli is the skeleton of the programs: a table of commands with their usage, help
// and flags, the end of a program, and its exit codes. It decides nothing. It imports only
// the standard library and what that needs, because the hook imports it.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/version"
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

// Program is a program and the table of its commands.
type Program struct {
	Name     string
	Commands []Command
}

// Command is a row of the table.
type Command struct {
	Name  string // "" for what the program does without a command
	Args  string // as the usage has them, such as "--secret NAME [flags]"
	About string // what it does, for its help: lines without the last newline
	Run   func(ctx context.Context, c Call) error
}

// Call is a command with the arguments of one call.
type Call struct {
	Name   string // of program and command, such as "dra-numa state"
	Args   []string
	Stdout io.Writer
	help   string
}

// Main runs a program until it ends. SIGINT and SIGTERM end its context. Then Main exits.
func Main(program string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	os.Exit(Exit(program, err, os.Stderr))
}

// Run runs the command that the first argument names, else the one without a name. If
// the user asks for help or the version, it prints that to stdout and returns
// [flag.ErrHelp].
func (p Program) Run(ctx context.Context, args []string, stdout io.Writer) error {
	word := ""
	if len(args) > 0 {
		word = args[0]
	}
	if word == "--version" {
		fmt.Fprintln(stdout, p.Name, version.String())
		return flag.ErrHelp
	}
	var names []string
	for _, command := range p.Commands {
		if command.Name == word && word != "" {
			help := usage(p.line(command)) + "\n" + command.About + "\n\n"
			return Confined(command.Run(ctx, Call{p.Name + " " + word, args[1:], stdout, help}))
		}
		names = append(names, command.Name)
	}
	var lines []string
	for _, command := range p.Commands {
		lines = append(lines, p.line(command))
	}
	if first := p.Commands[0]; first.Name == "" {
		return Confined(first.Run(ctx, Call{p.Name, args, stdout, usage(lines...) + "\n" + first.About + "\n\n"}))
	}
	switch word {
	case "-h", "-help", "--help", "help":
		fmt.Fprint(stdout, usage(lines...))
		return flag.ErrHelp
	}
	return Usagef("unknown command %q, allowed are %s", word, strings.Join(names, ", "))
}

// line is how users write a command.
func (p Program) line(c Command) string {
	return strings.Join(strings.Fields(p.Name+" "+c.Name+" "+c.Args), " ")
}

// usageColumns is the highest length of a line of a usage.
const usageColumns = 100

// usage returns the lines of commands. Those that are too long go on in the next line.
func usage(commands ...string) string {
	const begin, next, more = "Usage:", "      ", "          "
	var b strings.Builder
	for i, command := range commands {
		line := next
		if i == 0 {
			line = begin
		}
		for word := range strings.FieldsSeq(command) {
			if len(line)+1+len(word) > usageColumns {
				b.WriteString(line + "\n")
				line = more
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Flags returns a new set of flags for the call.
func (c Call) Flags() *flag.FlagSet { return flag.NewFlagSet(c.Name, flag.ContinueOnError) }

// Parse parses the arguments up to the first one that is not a flag. If the user asks for
// help, it prints the usage and the flags to stdout and returns [flag.ErrHelp]. All other
// errors are UsageErrors.
func (c Call) Parse(flags *flag.FlagSet) error {
	flags.SetOutput(io.Discard) // Exit prints the error, in one line
	err := flags.Parse(c.Args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(c.Stdout, c.help)
		flags.SetOutput(c.Stdout)
		flags.PrintDefaults()
		return err
	case err != nil:
		return &UsageError{err}
	}
	return nil
}

// ParseAll parses the arguments of a command that takes only flags. Those that are needed
// must have a value.
func (c Call) ParseAll(flags *flag.FlagSet, needed ...string) error {
	if err := c.Parse(flags); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return Usagef("unexpected argument %q, %s takes only flags", flags.Arg(0), flags.Name())
	}
	for _, name := range needed {
		if flags.Lookup(name).Value.String() == "" {
			return Usagef("--%s is missing", name)
		}
	}
	return nil
}

// DetailedError is an error that Exit prints with lines that explain it.
type DetailedError struct {
	Err     error
	Details string // lines
}

// Error returns the text of Err.
func (e *DetailedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *DetailedError) Unwrap() error { return e.Err }

// Exit prints the error that ended a program, in one line, and the details of a
// DetailedError below it. It returns the exit code: ExitDone without an error or after help,
// ExitUsage for a UsageError, and otherwise ExitFailed.
func Exit(program string, err error, stderr io.Writer) (exitCode int) {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return ExitDone
	}
	fmt.Fprintf(stderr, "%s: error: %s\n", program, message.OneLine(err.Error()))
	if detailed := (*DetailedError)(nil); errors.As(err, &detailed) {
		for line := range strings.Lines(detailed.Details) {
			fmt.Fprintf(stderr, "  %s\n", message.OneLine(line))
		}
	}
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		return ExitUsage
	}
	return ExitFailed
}
