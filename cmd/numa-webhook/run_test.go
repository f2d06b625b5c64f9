package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

func TestUsage(t *testing.T) {
	const valid = "--tls-cert=c --tls-key=k"
	const renew = "renew --namespace=ns --secret=s --names=a,b"
	for args, want := range map[string]string{
		"":                             "--tls-cert is missing",
		"--tls-cert=c":                 "--tls-key is missing",
		valid + " stray":               `unexpected argument "stray"`,
		valid + " -v=11":               "-v 11: allowed are 0 to 10",
		valid + " --mirror":            "mirror",
		valid + " --tls-min-version=x": "allowed are VersionTLS12 and VersionTLS13",
		valid + " --tls-min-version=VersionTLS12 --tls-cipher-suites=TLS_AES_128_GCM_SHA256": "HTTP/2 needs",
		valid + " --secret=s":             "secret",
		"renew":                           "--namespace is missing",
		"renew --namespace=ns":            "--secret is missing",
		"renew --namespace=ns --secret=s": "--names is missing",
		renew + " stray":                  `unexpected argument "stray"`,
		renew + " -v=11":                  "-v 11: allowed are 0 to 10",
		renew + " --listen=:1":            "listen",
	} {
		err := run(t.Context(), strings.Fields(args), &bytes.Buffer{})
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want usage with %q", args, err, want)
		}
	}
	o, err := parseFlags(cli.Call{Args: strings.Fields(valid + " --claim-controllers=a,b"), Stdout: &bytes.Buffer{}})
	if err != nil || !slices.Equal(o.ClaimControllers, []string{"a", "b"}) || o.listen != ":8443" || o.files.Certificate != "c" || o.files.Key != "k" || o.MinVersion != tls.VersionTLS13 {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = parseFlags(cli.Call{Args: strings.Fields(valid + " --tls-min-version=VersionTLS12 --tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), Stdout: &bytes.Buffer{}})
	if err != nil || o.MinVersion != tls.VersionTLS12 || !slices.Equal(o.CipherSuites, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}) {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"-h"}, {"renew", "-h"}} {
		var stdout bytes.Buffer
		if err := run(t.Context(), args, &stdout); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(stdout.String(), "Usage: numa-webhook "+strings.TrimSuffix(strings.Join(args, " "), "-h")) {
			t.Errorf("help of %q: %q, %v", args, stdout.String(), err)
		}
	}
}

func TestNeedsACluster(t *testing.T) {
	for _, args := range []string{"--tls-cert=c --tls-key=k", "renew --namespace=ns --secret=s --names=a"} {
		if err := run(t.Context(), strings.Fields(args+" --kubeconfig=/no/such"), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "/no/such") {
			t.Errorf("%s: error %v", args, err)
		}
	}
}
