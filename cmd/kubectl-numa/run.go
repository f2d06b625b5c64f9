package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone     = 0
	exitCouldNot = 1 // the question makes sense, the answer is no
	exitUsage    = 2 // flags or input files do not
)

const program = "kubectl-numa"

// cli is what the commands need of the process.
type cli struct {
	name   string // as the user calls the program
	env    func(string) string
	stdout io.Writer
	stderr io.Writer // notes; errors are returned
}

// run executes one command line; args[0] is how the program was called.
func run(args []string, env func(string) string, stdout, stderr io.Writer) (exitCode int) {
	c := cli{name: program, env: env, stdout: stdout, stderr: stderr}
	if len(args) > 0 && strings.HasPrefix(filepath.Base(args[0]), "kubectl-") {
		c.name = "kubectl numa" // so kubectl finds and calls its plugins
	}
	root := c.rootCommand()
	root.SetArgs(args[min(1, len(args)):])
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.InitDefaultCompletionCmd() // it keeps the output that it finds
	for _, command := range root.Commands() {
		if !command.Runnable() {
			asGroup(command)
		}
	}
	err := root.Execute()
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "%s: error: %s\n", program, oneLine(err.Error()))
	var hinted *hintedError
	if errors.As(err, &hinted) {
		for _, hint := range hinted.hints {
			fmt.Fprintf(stderr, "%s: hint: %s\n", program, hint)
		}
	}
	var failure *failure
	if errors.As(err, &failure) {
		return exitCouldNot
	}
	return exitUsage
}

func (c cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   program,
		Short: "Show NUMA machines and what driver and scheduler make of them",
		Long: `Show NUMA machines and what driver and scheduler make of them.

The commands read the files of a machine, the cluster that kubectl talks to, or
files with a cluster's objects. They change nothing.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: c.name},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	asGroup(root)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		c.driftCommand(),
		c.explainCommand(),
		c.gatherCommand(),
		c.generateCommand(),
		c.lintCommand(),
		c.pickCommand(),
		c.simulateCommand(),
		c.slicesCommand(),
		c.statusCommand(),
		c.suggestEvictionsCommand(),
		c.topologyCommand(),
		c.uiCommand(),
		c.validateCommand(),
	)
	return root
}

// asGroup makes a command that has only others below it refuse what is none of
// them, in one line; cobra itself takes some and answers others at length.
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

// helpCommand is cobra's, but that asking for what is not there is an error.
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

// flagError says what a number is in the words of people.
func flagError(_ *cobra.Command, err error) error {
	var number *strconv.NumError
	if errors.As(err, &number) {
		text, _, _ := strings.Cut(err.Error(), ": "+number.Error())
		return fmt.Errorf("%s: want a whole number", text)
	}
	return err
}

// flagsOnly refuses what is no flag.
func (c cli) flagsOnly(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q, %s takes flags only", args[0], command.CommandPath())
	}
	return nil
}

// note says on stderr what is no error.
func (c cli) note(format string, args ...any) {
	fmt.Fprintf(c.stderr, "%s: note: %s\n", program, fmt.Sprintf(format, args...))
}

// failure is an error that leads to exitCouldNot; all others lead to exitUsage.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// hintedError is an error with what to do about it, each hint one thing.
type hintedError struct {
	error
	hints []string
}

func (h *hintedError) Unwrap() error { return h.error }

// oneLine keeps messages of other modules to the rule that an error is a line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
