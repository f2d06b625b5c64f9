package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestParse(t *testing.T) {
	for _, row := range []struct{ args, wantErr string }{
		{"--size 3", ""},
		{"", ""},
		{"--size x", `invalid value "x" for flag -size: parse error`},
		{"--other", "flag provided but not defined: -other"},
		{"--size 3 more", `unexpected argument "more", tool takes only flags`},
	} {
		flags := flag.NewFlagSet("tool", flag.ContinueOnError)
		flags.Int("size", 1, "a `number`")
		err := Parse(flags, strings.Fields(row.args), "", io.Discard)
		if err == nil {
			err = FlagsOnly(flags)
		}
		usage := (*UsageError)(nil)
		if (err == nil) != (row.wantErr == "") || err != nil && (err.Error() != row.wantErr || !errors.As(err, &usage)) {
			t.Errorf("%q: %v, want the usage error %q", row.args, err, row.wantErr)
		}
	}
}

func TestParseHelp(t *testing.T) {
	flags := flag.NewFlagSet("tool", flag.ContinueOnError)
	flags.Int("size", 1, "a `number`")
	var stdout strings.Builder
	err := Parse(flags, []string{"--help"}, "Usage: tool [flags]\n", &stdout)
	if want := "Usage: tool [flags]\n  -size number\n"; !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(stdout.String(), want) {
		t.Errorf("%v, and on standard output %q, want it to begin with %q", err, stdout.String(), want)
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
		{fmt.Errorf("read: %w", Usagef("--size %d: too much", 9)), 2, "tool: error: read: --size 9: too much\n"},
	} {
		var stderr strings.Builder
		if status := Exit("tool", row.err, &stderr); status != row.wantStatus || stderr.String() != row.wantStderr {
			t.Errorf("%v: status %d, %q, want %d, %q", row.err, status, stderr.String(), row.wantStatus, row.wantStderr)
		}
	}
}

func TestSetVerbosity(t *testing.T) {
	for level, allowed := range map[int]bool{-1: false, 0: true, 4: true, 10: true, 11: false} {
		if err := SetVerbosity(level); (err == nil) != allowed {
			t.Errorf("level %d: %v", level, err)
		} else if want := klog.Level(min(level, maxVerbosity)); allowed && (!klog.V(want).Enabled() || klog.V(want+1).Enabled()) {
			t.Errorf("level %d is not %d in klog", level, want)
		}
	}
}
