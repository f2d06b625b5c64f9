package tlsfiles

import (
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

func TestFlagsOfAPolicy(t *testing.T) {
	const rsa, large = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
	for flags, want := range map[string]struct {
		version uint16
		suites  []uint16
		fault   string
	}{
		"":                                             {version: tls.VersionTLS12},
		"--tls-min-version=VersionTLS13":               {version: tls.VersionTLS13},
		"--tls-min-version=VersionTLS12":               {version: tls.VersionTLS12},
		"--tls-min-version=VersionTLS11":               {fault: "allowed are VersionTLS12 and VersionTLS13"},
		"--tls-min-version=1.3":                        {fault: "allowed are VersionTLS12 and VersionTLS13"},
		"--tls-min-version=":                           {fault: "allowed are VersionTLS12 and VersionTLS13"},
		"--tls-cipher-suites=" + rsa:                   {version: tls.VersionTLS12, suites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}},
		"--tls-cipher-suites=" + large:                 {fault: "--tls-cipher-suites: with TLS 1.2, HTTP/2 needs " + rsa + " or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
		"--tls-cipher-suites=":                         {fault: `"" is not a secure cipher suite`},
		"--tls-cipher-suites=" + rsa + ",":             {fault: `"" is not a secure cipher suite`},
		"--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA": {fault: `"TLS_RSA_WITH_RC4_128_SHA" is not a secure cipher suite`},
		// Such as the suites of OpenShift's profiles, which name those of TLS 1.3, too.
		"--tls-min-version=VersionTLS13 --tls-cipher-suites=TLS_AES_128_GCM_SHA256": {version: tls.VersionTLS13, suites: []uint16{tls.TLS_AES_128_GCM_SHA256}},
		"--tls-cipher-suites=TLS_AES_128_GCM_SHA256," + large + "," + rsa: {
			version: tls.VersionTLS12, suites: []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		},
	} {
		policy := Policy{MinVersion: tls.VersionTLS12}
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		policy.AddFlags(set, "tls")
		err := set.Parse(strings.Fields(flags))
		if err == nil {
			err = policy.Validate()
			if usage := (*cli.UsageError)(nil); err != nil && !errors.As(err, &usage) {
				t.Errorf("%s: %v is no error of usage", flags, err)
			}
		}
		switch {
		case want.fault != "":
			if err == nil || !strings.Contains(err.Error(), want.fault) {
				t.Errorf("%s: error %v, want %s", flags, err, want.fault)
			}
		case err != nil || policy.MinVersion != want.version || !slices.Equal(policy.CipherSuites, want.suites):
			t.Errorf("%s: %+v, error %v, want %+v", flags, policy, err, want)
		}
		if given, _, _ := strings.Cut(flags, "="); policy.Given() != given {
			t.Errorf("%s: the first flag is %q", flags, policy.Given())
		}
	}
}
