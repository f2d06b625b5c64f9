// Command rig-agent runs inside a virtual node and is the rig's way in: it carries the
// API server's connections to kubelet and pods (HTTP CONNECT), carries pods' connections
// to the API server, and runs commands as root. Every request has to show the rig's
// token; the port is forwarded to the loopback of the host only.
package main

import (
	"crypto/subtle"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

func main() {
	listen := flag.String("listen", ":9000", "`address` to serve the rig on")
	service := flag.String("service", "", "`address` of the kubernetes Service to answer on")
	apiserver := flag.String("apiserver", "", "`address` that reaches the API server from this node")
	tokenFile := flag.String("token-file", "/etc/rig/token", "`file` with the rig's token")
	flag.Parse()
	if err := run(*listen, *service, *apiserver, *tokenFile); err != nil {
		log.Fatalf("rig-agent: error: %v", err)
	}
}

func run(listen, service, apiserver, tokenFile string) error {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return err
	}
	forward, err := net.Listen("tcp", service)
	if err != nil {
		return err
	}
	go forwardAll(forward, apiserver)
	server := http.Server{Addr: listen, Handler: agent{token: strings.TrimSpace(string(token))}, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

type agent struct{ token string }

// ServeHTTP serves CONNECT, and POST /exec?arg=…&arg=…, whose body is the command's
// standard input, whose answer is its output as it comes, and whose trailer Rig-Exit is
// its exit code.
func (a agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Rig-Token")), []byte(a.token)) != 1 {
		http.Error(w, "wrong token", http.StatusForbidden)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		connect(w, r.Host)
	case r.Method == http.MethodPost && r.URL.Path == "/exec" && r.URL.Query().Has("arg"):
		execute(w, r)
	default:
		http.NotFound(w, r)
	}
}

func connect(w http.ResponseWriter, address string) {
	target, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		_ = target.Close()
		http.Error(w, "connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	client, _, err := hijacker.Hijack()
	if err != nil {
		_ = target.Close()
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = target.Close()
		_ = client.Close()
		return
	}
	splice(client, target)
}

func execute(w http.ResponseWriter, r *http.Request) {
	args := r.URL.Query()["arg"]
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // HTTP/2 has it anyway
	w.Header().Set("Trailer", "Rig-Exit")
	cmd := exec.CommandContext(r.Context(), args[0], args[1:]...)
	cmd.Stdin = r.Body
	cmd.Stdout = flushing{w, control}
	cmd.Stderr = cmd.Stdout
	cmd.WaitDelay = time.Second // a background child may hold the output open
	err := cmd.Run()
	code := cmd.ProcessState.ExitCode()
	if code < 0 && err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		_, _ = fmt.Fprintf(w, "rig-agent: %v\n", err)
		code = 127
	}
	w.Header().Set("Rig-Exit", strconv.Itoa(code))
}

type flushing struct {
	w       io.Writer
	control *http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, f.control.Flush()
}

func forwardAll(l net.Listener, to string) {
	for {
		client, err := l.Accept()
		if err != nil {
			log.Printf("rig-agent: accept on %s: %v", l.Addr(), err)
			time.Sleep(time.Second)
			continue
		}
		go func() {
			target, err := net.DialTimeout("tcp", to, 10*time.Second)
			if err != nil {
				_ = client.Close()
				return
			}
			splice(client, target)
		}()
	}
}

// splice copies both ways until both are done; the end of one way is passed on, so that a
// half-closed stream still ends.
func splice(a, b net.Conn) {
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			if half, ok := pair[0].(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			done <- struct{}{}
		}()
	}
	<-done
	<-done
	_ = a.Close()
	_ = b.Close()
}
