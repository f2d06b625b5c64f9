package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

func TestUsage(t *testing.T) {
	const valid = "--namespace=ns --secret=s --names=a,b"
	for args, want := range map[string]string{
		"":                          "--namespace is missing",
		"--namespace=ns":            "--secret is missing",
		"--namespace=ns --secret=s": "--names is missing",
		valid + " stray":            `unexpected argument "stray"`,
		valid + " -v=11":            "-v 11: allowed are 0 to 10",
		valid + " --mirror":         "mirror",
		valid + " --node-name=of-no-matter-for-that": "node-name",
	} {
		err := run(t.Context(), strings.Fields(args), &bytes.Buffer{})
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want usage with %q", args, err, want)
		}
	}
	o, err := parseFlags(strings.Fields(valid), &bytes.Buffer{})
	if err != nil || !slices.Equal(o.Names, []string{"a", "b"}) || o.listen != ":8443" {
		t.Errorf("%+v, %v", o, err)
	}
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, &stdout); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(stdout.String(), "Usage: numa-webhook") {
		t.Errorf("help %q, %v", stdout.String(), err)
	}
}

func TestNeedsACluster(t *testing.T) {
	args := strings.Fields("--namespace=ns --secret=s --names=a --kubeconfig=/no/such")
	if err := run(t.Context(), args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "/no/such") {
		t.Errorf("error %v", err)
	}
}
