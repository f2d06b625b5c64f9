package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// defaultListen is where the pages are unless --listen says otherwise.
const defaultListen = "127.0.0.1:8480"

// pages is what the flags of ui say.
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
		Short: "Serve pages that show who holds what, for a browser on this machine",
		Long: `Serve pages that show who holds what, for a browser on this machine.

There is a page for all nodes, for each node, each claim, and each pod without a
node with what explain says of it. They change as the cluster does, can be used
without JavaScript, and write nothing anywhere. Everybody who may connect to
this machine's own address can read them, with the rights of your kubeconfig.
It ends with ctrl-c.`,
		Example: c.examples(`
# the cluster that kubectl talks to
ui
# at a port that is free
ui --listen 127.0.0.1:0
# what a folder of files says; it does not change
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
	command.Flags().StringVar(&p.listen, "listen", defaultListen, "`address` of this machine's own to listen at; port 0 is any that is free")
	return command
}

// run serves until ctx ends.
func (p *pages) run(ctx context.Context) error {
	if err := checkLoopback(p.listen); err != nil {
		return err
	}
	base, err := p.baseGates(ctx)
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
		return &failure{&hintedError{fmt.Errorf("--listen: %w", err), []string{"--listen 127.0.0.1:0 takes a port that is free"}}}
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

// follow fills the board as long as there is something to follow.
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

// checkLoopback keeps other machines out: what the user may read is shown to
// everybody who asks.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen %q: want an address and a port such as %s", address, defaultListen)
	}
	if parsed, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !parsed.IsLoopback()) {
		return fmt.Errorf("--listen %q: want an address that only this machine has, such as %s", address, defaultListen)
	}
	return nil
}

// baseGates are those that explanations are computed with.
func (p *pages) baseGates(ctx context.Context) (simulate.Gates, error) {
	known, err := p.from.Gates(ctx)
	if err != nil {
		p.note("feature gates are taken to be those of Kubernetes 1.37, --feature-gates says otherwise: %s", oneLine(err.Error()))
	}
	gates, err := simulate.ParseGates(p.gates, simulate.DefaultGates().Observed(known))
	if err != nil {
		return nil, fmt.Errorf("--feature-gates: %w", err)
	}
	return gates, nil
}

// explainer answers as the command explain does.
func (p *pages) explainer(gates simulate.Gates) func(context.Context, *snapshot.Snapshot, string, string) (simulate.Explanation, error) {
	return func(ctx context.Context, objects *snapshot.Snapshot, namespace, name string) (simulate.Explanation, error) {
		cluster, err := simulate.New(objects, gates)
		if err != nil {
			return simulate.Explanation{}, err
		}
		quiet := p.cli
		quiet.stderr = io.Discard // notes are for who calls the command
		q := question{cli: quiet, from: p.from, namespace: namespace}
		return q.pod(ctx, cluster, objects, name)
	}
}

// lastAnswers is how long requests may take that are under way at the end.
const lastAnswers = 2 * time.Second

// serve answers until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams of events end with it
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
