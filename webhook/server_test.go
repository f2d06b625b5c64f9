package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
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
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
	}
	for range 2 {
		next := pair(t)
		current.Store(next)
		served := connect(t, dial, "h2").ConnectionState().PeerCertificates[0]
		if !served.Equal(next.Leaf) {
			t.Errorf("certificate %s is served, want %s", served.SerialNumber, next.Leaf.SerialNumber)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A webhook may be told to end while it still reads what the cluster has.
func TestRunEndsBeforeItServes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	certificate := pair(t)
	if err := Run(ctx, Options{Client: cluster(t, nil), Listener: listener, Certificate: func() (*tls.Certificate, error) { return certificate, nil }}); err != nil {
		t.Error(err)
	}
}

// API servers may have to speak a certain version of TLS (docs/platforms.md).
func TestWebhookTakesOnlyTheTLSOfTheOptions(t *testing.T) {
	certificate := pair(t)
	for _, row := range []struct {
		oldest, spoken uint16
		served         bool
	}{
		{tls.VersionTLS13, tls.VersionTLS12, false},
		{tls.VersionTLS13, tls.VersionTLS13, true},
		{tls.VersionTLS12, tls.VersionTLS12, true},
		{tls.VersionTLS12, tls.VersionTLS11, false},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := newServer(http.NotFoundHandler(), Options{
			MinVersion: row.oldest, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
			Certificate: func() (*tls.Certificate, error) { return certificate, nil },
		})
		go func() { _ = server.ServeTLS(listener, "", "") }()
		t.Cleanup(func() { server.Close() })
		connection, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: row.spoken})
		if (err == nil) != row.served {
			t.Errorf("the oldest version is %#x, a client with %#x: %v", row.oldest, row.spoken, err)
		}
		if err == nil {
			connection.Close()
		}
	}
}
