package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/webhook/certificate"
)

// pair returns a new certificate.
func pair(t *testing.T) *tls.Certificate {
	t.Helper()
	data, err := certificate.Issue([]string{"127.0.0.1"}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(data[certificate.KeyCertificate], data[certificate.KeyPrivate])
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// The certificate comes when the webhook runs already, and is renewed while it runs.
func TestRunServesTheCertificateOfTheMoment(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var current atomic.Pointer[tls.Certificate]
	client := cluster(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Client: client, Listener: listener, Certificate: func() (*tls.Certificate, error) {
			if pair := current.Load(); pair != nil {
				return pair, nil
			}
			return nil, errors.New("there is none yet")
		}})
	}()
	for range 2 {
		next := pair(t)
		current.Store(next)
		served := dial(t, listener.Addr().String(), "h2").ConnectionState().PeerCertificates[0]
		if !served.Equal(next.Leaf) {
			t.Errorf("certificate %s is served, want %s", served.SerialNumber, next.Leaf.SerialNumber)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
