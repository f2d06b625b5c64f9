package certificate

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

const (
	// validity is how long a certificate and its authority are valid. They are made
	// together, and the authority's key is not kept.
	validity = 90 * 24 * time.Hour
	// renewal is how long before its expiry a certificate is replaced.
	renewal = validity / 3
	// clockSkew is how far the API server's clock may be behind.
	clockSkew = time.Hour
)

// Keys of the Secret's data, as in Secrets of cert-manager. KeyAuthorities has the current
// authority and, until it expires, the previous one: the webhook may not have seen the new
// certificate yet.
const (
	KeyAuthorities = "ca.crt"
	KeyCertificate = "tls.crt"
	KeyPrivate     = "tls.key"
)

// check says why the Secret's data cannot serve as the certificate of a server with these
// names. It is nil if the certificate is valid and does not expire soon.
func check(data map[string][]byte, names []string, now time.Time) error {
	pair, err := tls.X509KeyPair(data[KeyCertificate], data[KeyPrivate])
	if err != nil {
		return err
	}
	if err := verify(pair.Leaf, data[KeyAuthorities], names, now); err != nil {
		return err
	}
	if left := pair.Leaf.NotAfter.Sub(now); left < renewal {
		return fmt.Errorf("the certificate expires in %s", left.Round(time.Hour))
	}
	return nil
}

// verify says why a client that trusts the authorities does not trust the certificate of
// a server with these names.
func verify(certificate *x509.Certificate, authorities []byte, names []string, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	for _, name := range names {
		if _, err := certificate.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return err
		}
	}
	return nil
}

// Issue makes a certificate with an authority of its own: the data of the Secret. It keeps
// the newest authority in previous, unless that has expired.
func Issue(names []string, previous []byte, now time.Time) (map[string][]byte, error) {
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: deviceclasses.DriverName + " webhook authority"},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(validity), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	authorityKey, authorityText, err := certify(authority, authority, nil)
	if err != nil {
		return nil, err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano() + 1), Subject: pkix.Name{CommonName: deviceclasses.DriverName + " webhook"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, name)
		}
	}
	key, certificate, err := certify(server, authority, authorityKey)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		KeyAuthorities: append(authorityText, stillValid(previous, now)...),
		KeyCertificate: certificate,
		KeyPrivate:     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// certify makes a key and a certificate for it, which parentKey signs. Without a
// parentKey, the key signs its own certificate.
func certify(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (key *ecdsa.PrivateKey, text []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), cmp.Or(parentKey, key))
	if err != nil {
		return nil, nil, fmt.Errorf("sign %q: %w", template.Subject.CommonName, err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// stillValid is the first certificate of a list, which is the newest, if it has not
// expired.
func stillValid(list []byte, now time.Time) []byte {
	block, _ := pem.Decode(list)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil || now.After(certificate.NotAfter) {
		return nil
	}
	return pem.EncodeToMemory(block)
}
