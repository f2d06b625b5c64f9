package cli

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

func TestLogFormat(t *testing.T) {
	for args, want := range map[string]string{
		"":                      "2023-11-14T22:13:20Z tool: repaired \"a\"\n",
		"--logging-format=text": "2023-11-14T22:13:20Z tool: repaired \"a\"\n",
		"--logging-format=json": `{"ts":1700000000123,"msg":"repaired \"a\"","v":0}` + "\n",
		"--logging-format=xml":  `invalid value "xml" for flag -logging-format: allowed are text and json`,
		"--logging-format=":     `invalid value "" for flag -logging-format: allowed are text and json`,
	} {
		call := Call{Name: "tool", Args: strings.Fields(args), Stdout: io.Discard}
		flags := call.Flags()
		var format LogFormat
		format.AddFlag(flags)
		got := ""
		if err := call.ParseAll(flags); err == nil {
			got = format.Line(time.UnixMilli(1_700_000_000_123), "tool", `repaired "a"`)
		} else if got = err.Error(); !errors.As(err, new(*UsageError)) {
			t.Errorf("%s: %v is no error of usage", args, err)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestLogFormatHasADefault(t *testing.T) {
	var help strings.Builder
	call := Call{Name: "tool", Args: []string{"-h"}, Stdout: &help}
	flags := call.Flags()
	new(LogFormat).AddFlag(flags)
	if err := call.ParseAll(flags); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "(default text)") {
		t.Errorf("%v: %s", err, help.String())
	}
}
