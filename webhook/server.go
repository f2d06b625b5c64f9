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
	// settlePeriod is how long trust may be broken by somebody, retryPeriod how
	// long it takes to try again what did not work.
	settlePeriod = time.Minute
	retryPeriod  = 2 * time.Second
	// drain is how long answers may take that have begun when the server stops.
	drain = 5 * time.Second
)

// Options are where the webhook finds its things.
type Options struct {
	Client kubernetes.Interface
	// Listener is closed by Run.
	Listener net.Listener
	// Namespace and Secret name the Secret of the certificate. It has to be
	// there, without data at first.
	Namespace, Secret string
	// Names are those by which the API server reaches the webhook, DNS names and
	// addresses.
	Names []string
	// Validating and Mutating name the configurations that are to trust the
	// certificate; "" for none.
	Validating, Mutating string
}

// Run answers until ctx ends. Before it does there is a certificate that the API
// server trusts, and everything is listed.
func Run(ctx context.Context, options Options) error {
	defer options.Listener.Close()
	trust := &trust{
		client: options.Client, namespace: options.Namespace, secret: options.Secret, names: options.Names,
		validating: options.Validating, mutating: options.Mutating, now: time.Now,
	}
	for {
		err := trust.settle(ctx)
		if err == nil {
			break
		}
		klog.FromContext(ctx).Error(err, "Not ready")
		if !sleep(ctx, retryPeriod) {
			return nil
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known, stop, err := startLookups(ctx, options.Client)
	if err != nil {
		return err
	}
	defer stop()
	defer cancel() // before stop, which waits for the watches
	return serve(ctx, options.Listener, NewReviewer(known).Handler(), trust)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler, trust *trust) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          klog.NewStandardLogger("INFO"),
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS13,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return trust.certificate.Load(), nil },
		},
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	klog.FromContext(ctx).Info("Ready", "address", listener.Addr().String())
	wait := settlePeriod
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
			defer cancel()
			_ = server.Shutdown(draining) // what is not answered by then the API server has given up
			if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		case <-time.After(wait):
		}
		wait = settlePeriod
		if err := trust.settle(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Certificate is not looked after")
			wait = retryPeriod
		}
	}
}

// sleep reports false if ctx ends first.
func sleep(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}
