package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// retryPeriod is the time until the certificate is looked for again.
	retryPeriod = 2 * time.Second
	// drain is how long requests that are under way may take when the server stops.
	drain = 5 * time.Second
)

// Options are the settings of the webhook.
type Options struct {
	Client kubernetes.Interface
	// Listener is closed by Run.
	Listener net.Listener
	// Certificate returns the certificate to serve. It is called for each connection, and
	// has an error as long as there is none.
	Certificate func() (*tls.Certificate, error)
	// MinVersion is the oldest version of TLS, and CipherSuites are those of TLS 1.2, as in
	// tls.Config.
	MinVersion   uint16
	CipherSuites []uint16
	// Enforced makes each pod request all that its claims may hold. The webhook must then
	// be allowed to list pods.
	Enforced bool
	// ClaimControllers are the users as which Kubernetes creates claims for pods. Without
	// them, Enforced compares the claims that it generates with all pods that wait.
	ClaimControllers []string
	// Translation gives pods for static managers claims; nil leaves them as they are.
	Translation *Translation
}

// Run answers reviews until ctx ends. It starts to answer when it has a certificate and all
// lists are complete.
func Run(ctx context.Context, options Options) error {
	defer options.Listener.Close()
	for {
		_, err := options.Certificate()
		if err == nil {
			break
		}
		klog.FromContext(ctx).Error(err, "Not ready, trying again")
		if !sleep(ctx, retryPeriod) {
			return nil
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known, stop, err := startLookups(ctx, options.Client)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	known.enforced, known.creators, known.translation = options.Enforced, options.ClaimControllers, options.Translation
	defer stop()
	defer cancel() // runs before stop, which waits for the watches
	return serve(ctx, options.Listener, newServer(newHandler(known.during, newReviewLimits()), options))
}

// newServer returns a server that no client can keep busy: any client in the cluster can
// connect, not only the API server.
func newServer(handler http.Handler, options Options) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      5*time.Second + ReviewTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		// A connection can have so many requests at a time, and so many bytes that no
		// request has read: enough for a large review in a second, from an API server that
		// is 50 ms away. It makes another connection when it needs more.
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: 64, MaxReceiveBufferPerConnection: 512 << 10, MaxReceiveBufferPerStream: 256 << 10},
		ErrorLog: klog.NewStandardLogger("INFO"),
		TLSConfig: &tls.Config{
			MinVersion: options.MinVersion, CipherSuites: options.CipherSuites,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return options.Certificate() },
		},
	}
}

func serve(ctx context.Context, listener net.Listener, server *http.Server) error {
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	klog.FromContext(ctx).Info("Ready", "address", listener.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	_ = server.Shutdown(draining) // by then the API server has given up on what is not answered
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}
