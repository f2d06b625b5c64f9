package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
)

// tool is a program with a command, and one without a name.
func tool(done *string) Program {
	set := func(name string) func(context.Context, Call) error {
		return func(_ context.Context, c Call) error {
			flags := c.Flags()
			flags.Int("size", 1, "a `number`")
			flags.String("name", "x", "a `name`")
			*done = name
			return c.ParseAll(flags, "name")
		}
	}
	return Program{"tool", []Command{
		{"", "[flags]", "Does something.", set("tool")},
		{"other", strings.Repeat("[--flag=VALUE] ", 20), "Does\nmore.", set("other")},
	}}
}

func TestRun(t *testing.T) {
	for _, row := range []struct{ args, want, wantErr string }{
		{"--size 3", "tool", ""},
		{"", "tool", ""},
		{"other --size 3", "other", ""},
		{"--size x", "tool", `invalid value "x" for flag -size: parse error`},
		{"--other", "tool", "flag provided but not defined: -other"},
		{"--size 3 more", "tool", `unexpected argument "more", tool takes only flags`},
		{"other more", "other", `unexpected argument "more", tool other takes only flags`},
		{"other --name=", "other", `--name is missing`},
	} {
		done := ""
		err := tool(&done).Run(t.Context(), strings.Fields(row.args), io.Discard)
		usage := (*UsageError)(nil)
		if (err == nil) != (row.wantErr == "") || err != nil && (err.Error() != row.wantErr || !errors.As(err, &usage)) || done != row.want {
			t.Errorf("%q: %q, %v, want %q and the usage error %q", row.args, done, err, row.want, row.wantErr)
		}
	}
}

// A program whose commands all have names needs one.
func TestRunWithoutACommand(t *testing.T) {
	done := ""
	p := tool(&done)
	p.Commands = p.Commands[1:]
	for _, args := range []string{"", "more", "--size"} {
		err := p.Run(t.Context(), strings.Fields(args), io.Discard)
		if want := fmt.Sprintf("unknown command %q, allowed are other", args); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
	var stdout strings.Builder
	if err := p.Run(t.Context(), []string{"--help"}, &stdout); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(stdout.String(), "Usage: tool other [--flag=VALUE] ") {
		t.Errorf("%v, %s", err, stdout.String())
	}
}

func TestHelp(t *testing.T) {
	for args, want := range map[string]string{
		"--help":       "Usage: tool [flags]\n       tool other [--flag=VALUE] ",
		"other --help": "Usage: tool other [--flag=VALUE] ",
		"--version":    "tool dev\n",
	} {
		done := ""
		var stdout strings.Builder
		err := tool(&done).Run(t.Context(), strings.Fields(args), &stdout)
		if !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(stdout.String(), want) {
			t.Errorf("%q: %v, and on standard output %q, want it to begin with %q", args, err, stdout.String(), want)
		}
		for line := range strings.Lines(stdout.String()) {
			if len(line) > usageColumns+1 {
				t.Errorf("%q: a line has %d columns: %s", args, len(line)-1, line)
			}
		}
		if args == "other --help" && !strings.Contains(stdout.String(), "\n\nDoes\nmore.\n\n  -name name\n") {
			t.Errorf("%s has not what it does", stdout.String())
		}
	}
}

func TestExit(t *testing.T) {
	for _, row := range []struct {
		err        error
		wantStatus int
		wantStderr string
	}{
		{nil, 0, ""},
		{flag.ErrHelp, 0, ""},
		{errors.New("two\n\tlines"), 1, "tool: error: two lines\n"},
		{fmt.Errorf("do: %w", &DetailedError{errors.New("no"), "plan:\na <- b\n"}), 1, "tool: error: do: no\n  plan:\n  a <- b\n"},
		{fmt.Errorf("read: %w", Usagef("--size %d: too much", 9)), 2, "tool: error: read: --size 9: too much\n"},
	} {
		var stderr strings.Builder
		if status := Exit("tool", row.err, &stderr); status != row.wantStatus || stderr.String() != row.wantStderr {
			t.Errorf("%v: status %d, %q, want %d, %q", row.err, status, stderr.String(), row.wantStatus, row.wantStderr)
		}
	}
}
