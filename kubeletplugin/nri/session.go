package nri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

const (
	pluginName = driver.Name
	// pluginIndex orders plugins. No two plugins may set the same thing, so the order
	// matters only to plugins that look at what others have set.
	pluginIndex = "50"

	// abandonAfter is how long a stub may still be starting after its connection has
	// ended.
	abandonAfter = 2 * time.Second

	firstRefreshRetry = time.Second
	lastRefreshRetry  = 30 * time.Second
)

var errLost = errors.New("connection closed by the runtime")

// runtimeStub is the part of a stub that sends requests to the runtime, and knows it.
type runtimeStub interface {
	UpdateContainers([]*api.ContainerUpdate) ([]*api.ContainerUpdate, error)
	RuntimeNRIVersion() string
}

// session is one connection to the runtime.
type session struct {
	stub     runtimeStub
	lost     chan struct{}   // closed when the connection ends
	requests chan chan error // each waits for the result of a refresh
	awake    chan struct{}   // has room for one: a refresh may be due
	runtime  string          // name and version
	policies bool            // it sets memory policies
	ended    bool            // guarded by the plugin's lock
}

func (s *session) wake() {
	select {
	case s.awake <- struct{}{}:
	default:
	}
}

func (s *session) isLost() bool {
	select {
	case <-s.lost:
		return true
	default:
		return false
	}
}

// serve connects to the runtime and works until the connection ends. The error says why
// it did not connect, or why the connection ended.
func (p *Plugin) serve(ctx context.Context) (connected bool, err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", p.options.Socket)
	if err != nil {
		return false, err
	}
	link := &link{Conn: conn, down: make(chan struct{})}
	defer context.AfterFunc(ctx, func() { link.Close() })()
	defer link.Close()
	s := &session{lost: link.down, requests: make(chan chan error), awake: make(chan struct{}, 1)}
	runtime, err := stub.New(handlers{p, s}, stub.WithConnection(link),
		stub.WithPluginName(pluginName), stub.WithPluginIdx(pluginIndex), stub.WithLogger(logger{}))
	if err != nil {
		return false, fmt.Errorf("set up NRI plugin: %w", err)
	}
	s.stub = runtime
	defer p.end(s)
	if err := start(ctx, runtime, link.down); err != nil {
		return false, err
	}
	defer runtime.Stop()
	klog.FromContext(ctx).Info("Connected to the container runtime", "socket", p.options.Socket, "runtime", s.runtime)
	p.work(ctx, s)
	return true, errLost
}

func (p *Plugin) end(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.ended = true
	if p.session == s {
		p.session = nil
	}
}

// start returns when the runtime has configured the plugin. If the runtime dies between
// registration and configuration, the stub's Start never returns (nri 0.12.3). Its
// goroutine is then left behind, and waits for nothing.
func start(ctx context.Context, runtime stub.Stub, down <-chan struct{}) error {
	started := make(chan error, 1)
	go func() { started <- runtime.Start(ctx) }()
	select {
	case err := <-started:
		return err
	case <-down:
	}
	select {
	case err := <-started:
		return err
	case <-time.After(abandonAfter):
		return errLost
	}
}

// work refreshes on request and whenever something has changed, one refresh at a time,
// until the connection ends. It repeats a refresh that failed.
func (p *Plugin) work(ctx context.Context, s *session) {
	var retry <-chan time.Time
	wait := firstRefreshRetry
	for {
		var answer chan error
		select {
		case <-s.lost:
			return
		case answer = <-s.requests:
		case <-s.awake:
		case <-retry:
		}
		err := p.refresh(s)
		p.refused.Store(err != nil)
		if answer != nil {
			answer <- err
		}
		if retry = nil; err == nil || s.isLost() {
			wait = firstRefreshRetry
			continue
		}
		klog.FromContext(ctx).Error(err, "Updating containers failed, trying again", "retryIn", wait)
		retry, wait = time.After(wait), min(2*wait, lastRefreshRetry)
	}
}

// link closes the channel down when the connection ends. A stub that is still starting
// does not report that.
type link struct {
	net.Conn
	once sync.Once
	down chan struct{}
}

func (l *link) Read(buffer []byte) (int, error) {
	n, err := l.Conn.Read(buffer)
	if err != nil {
		l.once.Do(func() { close(l.down) })
	}
	return n, err
}

func (l *link) Close() error {
	l.once.Do(func() { close(l.down) })
	return l.Conn.Close()
}

// logger logs what the stub says, but only at a high verbosity: the stub also returns
// all of that to its caller.
type logger struct{}

func (logger) Debugf(ctx context.Context, format string, args ...any) { logf(ctx, format, args) }
func (logger) Infof(ctx context.Context, format string, args ...any)  { logf(ctx, format, args) }
func (logger) Warnf(ctx context.Context, format string, args ...any)  { logf(ctx, format, args) }
func (logger) Errorf(ctx context.Context, format string, args ...any) { logf(ctx, format, args) }

func logf(ctx context.Context, format string, args []any) {
	klog.FromContext(ctx).V(5).Info("NRI: " + fmt.Sprintf(format, args...))
}
