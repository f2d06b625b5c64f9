package webhook

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

const (
	// validity is that of a certificate and its authority, which are made
	// together; the authority's key is not kept.
	validity = 90 * 24 * time.Hour
	// renewal is how long before its end a certificate is replaced.
	renewal = validity / 3
	// clockSkew is how much the API server's clock may be behind.
	clockSkew = time.Hour
)

// Keys of the Secret's data. Authorities are the present one and, until it
// expires, the one before: a replica may not have seen the new one yet.
const (
	keyAuthorities = "ca.crt"
	keyCertificate = "tls.crt"
	keyPrivate     = "tls.key"
)

// check says why a Secret's data is of no use as the certificate of a server with
// these names, nil if it is and will be for a while.
func check(data map[string][]byte, names []string, now time.Time) error {
	pair, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	if err != nil {
		return err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(data[keyAuthorities])
	for _, name := range names {
		options := x509.VerifyOptions{DNSName: name, Roots: authorities, CurrentTime: now}
		if _, err := pair.Leaf.Verify(options); err != nil {
			return err
		}
	}
	if left := pair.Leaf.NotAfter.Sub(now); left < renewal {
		return fmt.Errorf("certificate expires in %s", left.Round(time.Hour))
	}
	return nil
}

// issue makes a certificate of an authority of its own, and keeps the authorities
// in previous that are still valid.
func issue(names []string, previous []byte, now time.Time) (map[string][]byte, error) {
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: deviceclasses.DriverName + " webhook authority"},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(validity), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	authorityText, err := sign(authority, authority, authorityKey.Public(), authorityKey)
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := sign(server, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		keyAuthorities: append(authorityText, stillValid(previous, now)...),
		keyCertificate: certificate,
		keyPrivate:     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign %q: %w", template.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// stillValid keeps the newest certificate of a list that has not expired.
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

// load is the certificate to serve with.
func load(data map[string][]byte) (*tls.Certificate, error) {
	if !bytes.HasPrefix(data[keyAuthorities], []byte("-----BEGIN CERTIFICATE-----")) {
		return nil, errors.New(keyAuthorities + ": no certificate")
	}
	pair, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	return &pair, err
}
