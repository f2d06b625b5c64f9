package main

import (
	"errors"
	"net"
	"net/http"
	"time"
)

// serve answers HTTP requests until stop is called. Stop waits for the server to end.
func serve(address string, handler http.Handler, fatal func(error)) (stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fatal(err)
		}
	}()
	return func() {
		_ = server.Close() // nobody else uses the listener, so an error does not matter
		<-done
	}, nil
}
