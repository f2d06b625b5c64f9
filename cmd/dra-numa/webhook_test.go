package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
)

func TestWebhookUsage(t *testing.T) {
	const valid = "webhook --namespace=ns --secret=s --names=a,b"
	for args, want := range map[string]string{
		"webhook":                                    "webhook: --namespace is missing",
		"webhook --namespace=ns":                     "webhook: --secret is missing",
		"webhook --namespace=ns --secret=s":          "webhook: --names is missing",
		valid + " stray":                             `webhook "stray": want flags only`,
		valid + " -v=11":                             "-v 11: allowed are 0 to 10",
		valid + " --mirror":                          "mirror",
		valid + " --node-name=of-no-matter-for-that": "node-name",
	} {
		err := run(t.Context(), strings.Fields(args), noEnv, &bytes.Buffer{})
		var usage *usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want usage with %q", args, err, want)
		}
	}
	o, err := parseWebhookFlags(strings.Fields(valid)[1:], &bytes.Buffer{})
	if err != nil || !slices.Equal(o.Names, []string{"a", "b"}) || o.listen != ":8443" {
		t.Errorf("%+v, %v", o, err)
	}
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"webhook", "-h"}, noEnv, &stdout); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(stdout.String(), "Usage: dra-numa webhook") {
		t.Errorf("help %q, %v", stdout.String(), err)
	}
}

func TestWebhookNeedsACluster(t *testing.T) {
	args := strings.Fields("webhook --namespace=ns --secret=s --names=a --kubeconfig=/no/such")
	if err := run(t.Context(), args, noEnv, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "/no/such") {
		t.Errorf("error %v", err)
	}
}
