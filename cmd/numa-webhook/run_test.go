package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/webhook"
)

func TestUsage(t *testing.T) {
	const valid = "--tls-cert=c --tls-key=k"
	const renew = "renew --namespace=ns --secret=s --names=a,b"
	const templates = "templates --namespace=ns --lease=l"
	for args, want := range map[string]string{
		"":                             "--tls-cert is missing",
		"--tls-cert=c":                 "--tls-key is missing",
		valid + " stray":               `unexpected argument "stray"`,
		valid + " -v=11":               "-v 11: allowed are 0 to 10",
		valid + " --mirror":            "mirror",
		valid + " --tls-min-version=x": "allowed are VersionTLS12 and VersionTLS13",
		valid + " --tls-min-version=VersionTLS12 --tls-cipher-suites=TLS_AES_128_GCM_SHA256": "HTTP/2 needs",
		valid + " --translate-scope=node":         `invalid value "node" for flag -translate-scope: allowed are container, pod`,
		valid + " --translate-policy=one":         "-translate-policy: allowed are single-numa-node, restricted, best-effort, none",
		valid + " --translate-part-of-core=":      "-translate-part-of-core: allowed are round, leave",
		valid + " --translate-threads-per-core=0": "-translate-threads-per-core: want 1 or more",
		valid + " --translate-on-error=warn":      "-translate-on-error: allowed are refuse, leave",
		valid + " --translate-twins=gpu=a":        `-translate-twins: "gpu=a" is no extended resource with its class`,
		valid + " --secret=s":                     "secret",
		"renew":                                   "--namespace is missing",
		"renew --namespace=ns":                    "--secret is missing",
		"renew --namespace=ns --secret=s":         "--names is missing",
		renew + " stray":                          `unexpected argument "stray"`,
		renew + " -v=11":                          "-v 11: allowed are 0 to 10",
		renew + " --listen=:1":                    "listen",
		"templates --namespace=ns":                "--lease is missing",
		templates + " stray":                      `unexpected argument "stray"`,
		templates + " --scope=node":               "-scope: allowed are container, pod",
		templates + " --translate-scope=pod":      "translate-scope",
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
	if o.Translation != nil {
		t.Errorf("pods are translated without --translate: %+v", o.Translation)
	}
	twins, err := translate.ParseTwins("a/b=c,d/e=f.g")
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]webhook.Translation{
		"": {Options: translate.Options{Scope: "container", Policy: "single-numa-node", PartOfCore: "round", ThreadsPerCore: 2, CPULimit: "keep"}},
		" --translate-scope=pod --translate-policy=best-effort --translate-part-of-core=leave --translate-threads-per-core=1 --translate-cpu-limit=lift --translate-on-error=leave --translate-twins=a/b=c,d/e=f.g": {
			Leave:   true,
			Options: translate.Options{Scope: "pod", Policy: "best-effort", PartOfCore: "leave", ThreadsPerCore: 1, CPULimit: "lift", Twins: twins},
		},
	} {
		o, err := parseFlags(cli.Call{Args: strings.Fields(valid + " --translate" + args), Stdout: &bytes.Buffer{}})
		if err != nil || o.Translation == nil {
			t.Fatalf("%q: %v", args, err)
		}
		if diff := cmp.Diff(want, *o.Translation); diff != "" || o.Translation.Check() != nil {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
	for _, args := range [][]string{{"-h"}, {"renew", "-h"}, {"templates", "-h"}} {
		var stdout bytes.Buffer
		if err := run(t.Context(), args, &stdout); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(stdout.String(), "Usage: numa-webhook "+strings.TrimSuffix(strings.Join(args, " "), "-h")) {
			t.Errorf("help of %q: %q, %v", args, stdout.String(), err)
		}
	}
}

func TestNeedsACluster(t *testing.T) {
	for _, args := range []string{"--tls-cert=c --tls-key=k", "renew --namespace=ns --secret=s --names=a", "templates --namespace=ns --lease=l --twins=example.com/gpu=gpu.example.com,a.b/c=d"} {
		if err := run(t.Context(), strings.Fields(args+" --kubeconfig=/no/such"), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "/no/such") {
			t.Errorf("%s: error %v", args, err)
		}
	}
}
