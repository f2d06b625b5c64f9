// Command suites runs what suites.yaml lists: the end-to-end suites on clusters of the rig,
// and all else that tests or measures the driver. It decides what a suite runs (plan), which
// -n prints, and then runs it: it starts clusters, stops them whatever happens, keeps their
// logs after a failure, and says where the time went. It never decides what a spec checks.
//
// It runs in the root of the repository. make builds it, and calls it with the variables of
// its own command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `suites: run what test/suites/suites.yaml lists

  suites [-n] NAME [VARIABLE=value…]
                         run a suite; with -n, print the commands only
  suites help            list all targets, suites and variables

Exit status: 0 done, 1 not possible, 2 wrong usage.
`

// usageError is a mistake of the caller: exit status 2.
type usageError struct{ error }

func main() {
	// SIGPIPE: clusters are stopped even if nobody reads what is written.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := start(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.As(err, &usageError{}):
		fmt.Fprintf(os.Stderr, "suites: error: %v\n", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "suites: error: %v\n", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string, stdout io.Writer) error {
	t, err := parse(file)
	if err != nil {
		return err
	}
	dry := len(args) > 0 && args[0] == "-n"
	if dry {
		args = args[1:]
	}
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
		fmt.Fprint(stdout, usage)
		return nil
	}
	if args[0] == "help" {
		t.help(stdout)
		return nil
	}
	s, found := t.suite(args[0])
	if !found {
		return usageError{fmt.Errorf("no suite %q; suites help lists them", args[0])}
	}
	given, err := t.given(args[1:])
	if err != nil {
		return usageError{err}
	}
	v := newValues(t, given, os.Getenv)
	if dry {
		return t.print(stdout, s, v)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := os.Stat("test/suites/suites.yaml"); err != nil {
		return usageError{fmt.Errorf("run it in the root of the repository: %w", err)}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r := &runner{
		table: t, host: newMachine(ctx, root), memory: inMemory, self: self, patience: time.Minute,
		stdout: os.Stdout, stderr: os.Stderr, environment: os.Environ(),
	}
	return r.suite(ctx, s, v)
}

// given returns the variables of arguments such as KERNEL=7.2.
func (t table) given(args []string) (map[string]string, error) {
	given := map[string]string{}
	for _, arg := range args {
		name, value, isAssignment := strings.Cut(arg, "=")
		if !isAssignment {
			return nil, fmt.Errorf("unexpected argument %q: after the suite come variables, such as KERNEL=7.2", arg)
		}
		if !t.hasVariable(name) {
			return nil, fmt.Errorf("%s: no such variable; suites help lists them", arg)
		}
		given[name] = value
	}
	return given, nil
}
