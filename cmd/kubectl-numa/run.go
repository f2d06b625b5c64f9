package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	daemon "github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Exit codes, the same as those of the daemons.
const (
	exitDone   = daemon.ExitDone
	exitFailed = daemon.ExitFailed
	exitUsage  = daemon.ExitUsage
)

const program = "kubectl-numa"

// cli is what the commands know about the process.
type cli struct {
	name   string // name of the program, as the user calls it
	env    func(string) string
	stdout io.Writer
	stderr io.Writer // for notes; errors are returned
	notes  *[]string // if it is not nil, notes are added to it instead
}

// run runs one command line. args[0] is the name by which the program was called.
func run(args []string, env func(string) string, stdout, stderr io.Writer) (exitCode int) {
	// Objects and answers of nodes have texts that tenants wrote.
	stdout, stderr = message.NewWriter(stdout), message.NewWriter(stderr)
	c := cli{name: program, env: env, stdout: stdout, stderr: stderr}
	if len(args) > 0 && strings.HasPrefix(filepath.Base(args[0]), "kubectl-") {
		c.name = "kubectl numa" // kubectl finds its plugins by this prefix
	}
	root := c.rootCommand()
	root.SetArgs(args[min(1, len(args)):])
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.InitDefaultCompletionCmd() // after SetOut, because it keeps that writer
	for _, command := range root.Commands() {
		if !command.Runnable() {
			asGroup(command)
		}
	}
	err := root.Execute()
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "%s: error: %s\n", program, message.OneLine(err.Error()))
	var hinted *hintedError
	if errors.As(err, &hinted) {
		for _, hint := range hinted.hints {
			fmt.Fprintf(stderr, "%s: hint: %s\n", program, message.OneLine(hint))
		}
	}
	var failure *failure
	if errors.As(err, &failure) {
		return exitFailed
	}
	return exitUsage
}

func (c cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   program,
		Short: "Show NUMA machines, and what the driver and the scheduler make of them",
		Long: `Show NUMA machines, and what the driver and the scheduler make of them.

The commands read the files of a machine, the cluster that kubectl talks to, or
files with the objects of a cluster. They change nothing.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: c.name},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	asGroup(root)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(printUsage)
	root.SetHelpCommand(helpCommand())
	for _, group := range table() {
		root.AddGroup(&cobra.Group{ID: group.question, Title: group.question})
		for _, r := range group.rows {
			command := c.command(r, r.name)
			command.GroupID = group.question
			root.AddCommand(command)
		}
	}
	return root
}

// asGroup makes a command that only has subcommands reject an unknown subcommand, with
// an error in one line. Without it, cobra accepts some of them and prints a long text
// for others.
func asGroup(command *cobra.Command) {
	command.SuggestionsMinimumDistance = 2
	command.Args = cobra.ArbitraryArgs
	command.RunE = func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return command.Help()
		}
		return unknownCommand(command, args[0])
	}
}

// helpCommand returns the same help command as cobra's, except that an unknown command
// is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(command *cobra.Command, args []string) error {
			found, rest, err := command.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(found, rest[0])
			}
			return found.Help()
		},
	}
}

func unknownCommand(command *cobra.Command, name string) error {
	var names []string
	for _, child := range command.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	err := fmt.Errorf("unknown command %q, allowed are %s", name, strings.Join(names, ", "))
	if near := command.SuggestionsFor(name); len(near) > 0 {
		return &hintedError{err, []string{fmt.Sprintf("did you mean %q?", near[0])}}
	}
	return err
}

// flagError replaces the errors of package strconv with errors that people understand.
func flagError(_ *cobra.Command, err error) error {
	var number *strconv.NumError
	if errors.As(err, &number) {
		text, _, _ := strings.Cut(err.Error(), ": "+number.Error())
		return fmt.Errorf("%s: want a whole number", text)
	}
	return err
}

// note prints something to stderr that is not an error. If the answer has notes, the
// note becomes a part of the answer instead.
func (c cli) note(format string, args ...any) {
	text := message.OneLine(fmt.Sprintf(format, args...))
	if c.notes != nil {
		*c.notes = append(*c.notes, text)
		return
	}
	fmt.Fprintf(c.stderr, "%s: note: %s\n", program, text)
}

// raw returns the writer below that of run, for escape sequences of the program itself.
// What is written to it must not have texts of objects, except in a drawing: those have
// only printable ASCII.
func raw(w io.Writer) io.Writer {
	if visible, is := w.(*message.Writer); is {
		return visible.Raw
	}
	return w
}

// failure is an error with the exit code exitFailed. All other errors have the exit
// code exitUsage.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// hintedError is an error with hints. Each hint is one thing that the user can do.
type hintedError struct {
	error
	hints []string
}

func (h *hintedError) Unwrap() error { return h.error }
