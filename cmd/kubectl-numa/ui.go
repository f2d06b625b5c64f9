package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/web"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// defaultListen is the default of --listen.
const defaultListen = "127.0.0.1:8480"

// pages is the command ui with its flags.
type pages struct {
	cli
	from   source
	gates  string
	listen string
}

func (c cli) uiCommand() *cobra.Command {
	p := pages{cli: c}
	command := &cobra.Command{
		Use:   "ui",
		Short: "Serve the status as web pages, for a browser on this machine",
		Long: `Serve the status as web pages, for a browser on this machine.

There is a page for all nodes, for each node, for each claim, and for each pod
without a node. The page of such a pod shows the answer of explain. The pages
follow the cluster, work without JavaScript, and change nothing. All users of
this machine can read them, with the rights of your kubeconfig. To stop the
server, press ctrl-c.`,
		Example: c.examples(`
# the cluster that kubectl talks to
ui
# use any free port
ui --listen 127.0.0.1:0
# a folder of files with objects; the pages do not change
ui -f cluster/`),
		Args: c.flagsOnly,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return p.run(ctx)
		},
	}
	p.from.addTo(command)
	addGates(command, &p.gates)
	command.Flags().StringVar(&p.listen, "listen", defaultListen, "loopback `address` and port of the server; port 0 is any free port")
	return command
}

// run serves the pages until ctx ends.
func (p *pages) run(ctx context.Context) error {
	if err := checkLoopback(p.listen); err != nil {
		return err
	}
	base, err := p.parseGates(ctx, &p.from, p.gates)
	if err != nil {
		return err
	}
	board := web.NewBoard()
	if !p.from.canFollow() {
		objects, err := p.from.Snapshot(ctx)
		if err != nil {
			return err
		}
		board.Show(objects)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.listen)
	if err != nil {
		return &failure{&hintedError{fmt.Errorf("--listen: %w", err), []string{"set --listen 127.0.0.1:0 to use any free port"}}}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	followed := make(chan error, 1)
	go func() {
		defer cancel()
		followed <- p.follow(ctx, board)
	}()
	if _, err := fmt.Fprintf(p.stdout, "http://%s/\n", listener.Addr()); err != nil {
		return &failure{fmt.Errorf("write address: %w", err)}
	}
	handler := web.Handler(board, web.Options{Live: p.from.canFollow(), From: p.from.String(), Explain: p.explainer(base)})
	err = serve(ctx, listener, handler)
	cancel()
	return errors.Join(<-followed, err)
}

// follow keeps the board up to date until ctx ends.
func (p *pages) follow(ctx context.Context, board *web.Board) error {
	if !p.from.canFollow() {
		<-ctx.Done()
		return nil
	}
	return p.from.follow(ctx, func(objects *snapshot.Snapshot) error {
		board.Show(objects)
		return nil
	}, board.Fail)
}

// checkLoopback rejects addresses that other machines can reach, because the server
// shows everything that the user may read to anyone who can connect.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen %q: want an address and a port such as %s", address, defaultListen)
	}
	if parsed, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !parsed.IsLoopback()) {
		return fmt.Errorf("--listen %q: want a loopback address, which other machines cannot reach, such as %s", address, defaultListen)
	}
	return nil
}

// explainer returns a function that answers as the command explain does.
func (p *pages) explainer(gates simulate.Gates) func(context.Context, *snapshot.Snapshot, string, string) (simulate.Explanation, error) {
	return func(ctx context.Context, objects *snapshot.Snapshot, namespace, name string) (simulate.Explanation, error) {
		cluster, err := simulate.New(objects, gates)
		if err != nil {
			return simulate.Explanation{}, err
		}
		var notes []string
		noting := p.cli
		noting.notes = &notes
		q := question{reading: reading{cli: noting, from: p.from}, namespace: namespace}
		answer, err := q.explainPod(ctx, cluster, objects, name)
		answer.Notes = notes
		return answer, err
	}
}

// lastAnswers is how long the server waits for requests in progress when it stops.
const lastAnswers = 2 * time.Second

// serve answers requests until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, // so streams of events end with ctx
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		last, cancel := context.WithTimeout(context.Background(), lastAnswers)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return &failure{fmt.Errorf("serve pages: %w", err)}
}
