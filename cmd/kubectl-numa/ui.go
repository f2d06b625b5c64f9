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
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/web"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// defaultListen is the default of --listen.
const defaultListen = "127.0.0.1:8480"

// pages is the command ui with its flags.
type pages struct {
	cli
	from    source
	rules   rules
	listen  string
	anyUser bool
	layout  bool
}

func uiCommand(c cli, command *cobra.Command) runner {
	p := pages{cli: c}
	p.from.addTo(command)
	p.from.addDriverTo(command)
	p.rules.addTo(command)
	command.Flags().StringVar(&p.listen, "listen", defaultListen, "loopback `address` and port of the server; port 0 is any free port")
	command.Flags().BoolVar(&p.layout, "layout", false, "ask the driver's pods where the CPUs of nodes are, and draw them")
	command.Flags().BoolVar(&p.anyUser, "any-user", false, "let every user of this machine read the pages, with the rights of your kubeconfig")
	return func(ctx context.Context, _ []string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return p.run(ctx)
	}
}

// run serves the pages until ctx ends.
func (p *pages) run(ctx context.Context) error {
	if err := checkLoopback(p.listen); err != nil {
		return err
	}
	options, err := p.options(ctx)
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
	if _, err := fmt.Fprintln(p.stdout, options.Address(listener.Addr().String())); err != nil {
		return &failure{fmt.Errorf("write address: %w", err)}
	}
	err = serve(ctx, listener, web.Handler(board, options))
	cancel()
	return errors.Join(<-followed, err)
}

// options returns what the pages need, with a new token.
func (p *pages) options(ctx context.Context) (web.Options, error) {
	if p.layout && !p.from.live() {
		return web.Options{}, errors.New("--layout asks the nodes of a cluster, but no cluster is read; a bundle of gather has their answers")
	}
	if p.from.live() {
		// Without a cluster, there is nothing to serve: print no address.
		if _, _, err := p.from.connect(); err != nil {
			return web.Options{}, err
		}
	}
	rules, err := p.rulesFor(ctx, &p.from, p.rules)
	if err != nil {
		return web.Options{}, err
	}
	states, err := p.states(ctx)
	if err != nil {
		return web.Options{}, err
	}
	options := web.Options{Live: p.from.canFollow(), From: p.from.String(), Explain: p.explainer(rules), State: states, Events: p.events()}
	if p.anyUser {
		p.note("--any-user: every user of this machine can read the pages, with the rights of your kubeconfig")
	} else {
		options.Token = web.NewToken()
	}
	return options, nil
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
func (p *pages) explainer(rules simulate.Rules) func(context.Context, *snapshot.Snapshot, string, string) (simulate.Explanation, error) {
	return func(ctx context.Context, objects *snapshot.Snapshot, namespace, name string) (simulate.Explanation, error) {
		cluster, err := simulate.New(objects, rules)
		if err != nil {
			return simulate.Explanation{}, err
		}
		var notes []string
		noting := p.cli
		noting.notes = &notes
		q := question{reading: reading{cli: noting, from: p.from}, namespace: namespace}
		pod, err := q.pod(objects, name)
		if err != nil {
			return simulate.Explanation{}, err
		}
		answer, err := q.explainPod(ctx, cluster, objects, pod)
		answer.Notes = append(answer.Notes, notes...)
		return answer, err
	}
}

// states returns a function that says where the CPUs of a node are, or nil if nothing says
// it.
func (p *pages) states(ctx context.Context) (func(context.Context, *snapshot.Snapshot, string) (*nodestate.State, error), error) {
	if p.layout {
		return p.from.stateReader()
	}
	if p.from.bundle == "" {
		return nil, nil
	}
	facts, err := p.from.Facts(ctx)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, _ *snapshot.Snapshot, node string) (*nodestate.State, error) {
		return gatheredState(facts, node)
	}, nil
}

// events returns a function that returns the events about objects, and what is missing.
func (p *pages) events() func(context.Context, *snapshot.Snapshot, []corev1.ObjectReference) ([]*corev1.Event, []string) {
	read := newRecent[readEvents]()
	return func(ctx context.Context, objects *snapshot.Snapshot, about []corev1.ObjectReference) ([]*corev1.Event, []string) {
		if !p.from.live() {
			return p.from.ownEvents(objects)
		}
		answer, err := read.of(ctx, fmt.Sprint(about), func(ctx context.Context) (r readEvents) {
			r.events, r.missing = p.from.listEvents(ctx, about)
			return r
		})
		if err != nil {
			return nil, []string{err.Error()}
		}
		return answer.events, answer.missing
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
