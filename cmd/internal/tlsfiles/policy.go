package tlsfiles

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

// Policy is what a server accepts from its clients.
type Policy struct {
	// MinVersion is the oldest version of TLS, as crypto/tls numbers it. 0 is TLS 1.2.
	MinVersion uint16
	// CipherSuites are those of TLS 1.2; nil for the ones that Go chooses. In TLS 1.3,
	// crypto/tls has no choice.
	CipherSuites []uint16

	given string // the first of the flags that was given
}

// versions are the names that the programs of Kubernetes have for them. Older ones are broken.
var versions = map[string]uint16{"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}

// forHTTP2 are the cipher suites of TLS 1.2 of which HTTP/2 needs one. net/http refuses to
// serve without them (RFC 7540, section 9.2.2).
var forHTTP2 = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}

// AddFlags adds the flags --PREFIX-min-version and --PREFIX-cipher-suites. The policy has the
// default values.
func (p *Policy) AddFlags(flags *flag.FlagSet, prefix string) {
	initial := "VersionTLS12"
	if p.MinVersion == tls.VersionTLS13 {
		initial = "VersionTLS13"
	}
	p.add(flags, prefix+"-min-version", "oldest `version` of TLS that clients may use: VersionTLS12 or VersionTLS13 (default: "+initial+")", p.setVersion)
	p.add(flags, prefix+"-cipher-suites", "`list` of the cipher suites of TLS 1.2, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; TLS 1.3 has no choice (default: those of Go)", p.setSuites)
}

func (p *Policy) add(flags *flag.FlagSet, name, usage string, set func(string) error) {
	flags.Func(name, usage, func(value string) error {
		if p.given == "" {
			p.given = "--" + name
		}
		return set(value)
	})
}

// Given returns the first of the flags that was given, or "".
func (p *Policy) Given() string { return p.given }

func (p *Policy) setVersion(name string) error {
	version, known := versions[name]
	if !known {
		return errors.New("allowed are VersionTLS12 and VersionTLS13")
	}
	p.MinVersion = version
	return nil
}

func (p *Policy) setSuites(list string) error {
	p.CipherSuites = nil
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("%q is not a secure cipher suite of Go's crypto/tls", name)
		}
		p.CipherSuites = append(p.CipherSuites, tls.CipherSuites()[i].ID)
	}
	return nil
}

// Validate returns an error of usage if the server could not serve.
func (p *Policy) Validate() error {
	serves := slices.ContainsFunc(forHTTP2, func(id uint16) bool { return slices.Contains(p.CipherSuites, id) })
	if serves || p.CipherSuites == nil || p.MinVersion == tls.VersionTLS13 {
		return nil
	}
	return cli.Usagef("%s: with TLS 1.2, HTTP/2 needs %s or %s", p.given, tls.CipherSuiteName(forHTTP2[0]), tls.CipherSuiteName(forHTTP2[1]))
}
