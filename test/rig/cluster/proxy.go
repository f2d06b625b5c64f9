package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// Proxy serves HTTP CONNECT on the rig's Unix socket until its context ends: a connection
// to an address of a node or of its pods goes through that node's agent, any other
// address is refused.
func (r *Cluster) Proxy(ctx context.Context) error {
	_ = os.Remove(r.Path("proxy.sock"))
	l, err := net.Listen("unix", r.Path("proxy.sock"))
	if err != nil {
		return err
	}
	server := http.Server{Handler: http.HandlerFunc(r.proxyOne), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (r *Cluster) proxyOne(w http.ResponseWriter, request *http.Request) {
	host, _, err := net.SplitHostPort(request.Host)
	if request.Method != http.MethodConnect || err != nil {
		http.Error(w, "only CONNECT host:port is served", http.StatusMethodNotAllowed)
		return
	}
	for _, n := range r.Nodes {
		if host == n.Address() || strings.HasPrefix(host, n.PodPrefix()) {
			r.proxyTo(w, n, request.Host)
			return
		}
	}
	http.Error(w, host+" is no address of a node or pod of this rig", http.StatusForbidden)
}

func (r *Cluster) proxyTo(w http.ResponseWriter, n Node, address string) {
	target, err := r.connect(n, address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = target.Close()
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(target, client)
		_ = target.Close()
	}()
	_, _ = io.Copy(client, target)
	_ = client.Close()
}

// connect opens a connection to an address as seen from inside a node.
func (r *Cluster) connect(n Node, address string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", n.AgentPort), 5*time.Second)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nRig-Token: %s\r\n\r\n", address, address, r.Token)
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("connect to %s in node %s: %s", address, n.Name, answer.Status)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return buffered{conn, reader}, nil
}

// buffered reads first what arrived together with the answer.
type buffered struct {
	net.Conn
	reader *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }
