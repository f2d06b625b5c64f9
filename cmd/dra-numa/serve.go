package main

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// serve answers HTTP requests until stop is called. Stop waits for the server to end. With
// a TLS configuration it answers HTTPS only.
func serve(address string, handler http.Handler, secure *tls.Config, fatal func(error)) (stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	// Any pod of the cluster may connect, and must not keep the server busy.
	server := &http.Server{
		Handler: handler, TLSConfig: secure, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
	}
	answer := func() error { return server.Serve(listener) }
	if secure != nil {
		answer = func() error { return server.ServeTLS(listener, "", "") }
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := answer(); !errors.Is(err, http.ErrServerClosed) {
			fatal(err)
		}
	}()
	return func() {
		_ = server.Close() // nobody else uses the listener, so an error does not matter
		<-done
	}, nil
}
