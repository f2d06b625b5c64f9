package nri

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// wire is the plugin's way to a runtime that may die, which NRI's own side does
// not offer: its Stop leaves connections open.
type wire struct {
	t      *testing.T
	socket string
	// cut is asked for each message from the runtime; if it is true the
	// connection ends there.
	cut      func(connection int32, to multiplex.ConnID) bool
	open     atomic.Int32 // connections now
	most     atomic.Int32 // at a time, ever
	accepted atomic.Int32
	down     func()
}

func never(int32, multiplex.ConnID) bool { return false }

// up begins to connect to the runtime's own socket, until down.
func (w *wire) up(runtime string) {
	w.t.Helper()
	listener, err := net.Listen("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	context.AfterFunc(ctx, func() { listener.Close() })
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for {
			plugin, err := listener.Accept()
			if err != nil {
				return
			}
			n := w.accepted.Add(1)
			w.most.Store(max(w.most.Load(), w.open.Add(1)))
			carrying.Go(func() { w.carry(ctx, n, plugin, runtime) })
		}
	})
	w.down = func() {
		cancel()
		carrying.Wait()
	}
}

func (w *wire) carry(ctx context.Context, n int32, plugin net.Conn, socket string) {
	defer plugin.Close()
	defer w.open.Add(-1) // before the plugin learns of it and connects again
	runtime, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer runtime.Close()
	defer context.AfterFunc(ctx, func() { runtime.Close() })()
	go func() {
		_, _ = io.Copy(runtime, plugin)
		runtime.Close()
	}()
	for {
		var header [8]byte // connection and length
		if _, err := io.ReadFull(runtime, header[:]); err != nil {
			return
		}
		if w.cut(n, multiplex.ConnID(binary.BigEndian.Uint32(header[:4]))) {
			return
		}
		if _, err := plugin.Write(header[:]); err != nil {
			return
		}
		if _, err := io.CopyN(plugin, runtime, int64(binary.BigEndian.Uint32(header[4:]))); err != nil {
			return
		}
	}
}

// wired is a runtime and the wire to it.
func wired(t *testing.T, cut func(int32, multiplex.ConnID) bool) (*fakeRuntime, *wire) {
	t.Helper()
	dir := t.TempDir()
	r := newRuntime(t, filepath.Join(dir, "0.sock"))
	w := &wire{t: t, socket: filepath.Join(dir, "nri.sock"), cut: cut}
	w.up(filepath.Join(dir, "0.sock"))
	return r, w
}

// logged collects what is logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func TestReconnect(t *testing.T) {
	core := &fakeCore{}
	dir := t.TempDir()
	w := &wire{t: t, socket: filepath.Join(dir, "nri.sock"), cut: never}
	log := &logged{}
	ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log))))
	p := run(ctx, t, w.socket, core)
	eventually(t, "tried", func() bool { return log.count("no such file or directory") > 0 })
	time.Sleep(3 * firstReconnect)
	if err := p.Refresh(t.Context()); !errors.Is(err, ErrNotConnected) {
		t.Errorf("error %v before there is a runtime, want %v", err, ErrNotConnected)
	}
	r := newRuntime(t, filepath.Join(dir, "0.sock"))
	w.up(filepath.Join(dir, "0.sock"))
	eventually(t, "connected", p.Connected)
	r.create("c")
	r.create("claim", "a") // not of a grant yet
	for _, socket := range []string{"1.sock", "2.sock"} {
		w.down()
		eventually(t, "lost", func() bool { return !p.Connected() })
		core.hold(map[string]driver.Pinned{"a": claimA})
		r.start(filepath.Join(dir, socket))
		w.up(filepath.Join(dir, socket))
		eventually(t, "connected again", p.Connected)
		refresh(t, p)
		wantState(t, r, map[string]string{"c": "0-1,4-7/", "claim": "2-3/0"})
	}
	for text, want := range map[string]int{
		"Connected to the container runtime":        3,
		`runtime="containerd v2.4.2"`:               3,
		`reason="connection closed by the runtime"`: 2,
	} {
		if got := log.count(text); got != want {
			t.Errorf("%q is logged %d times, want %d, in\n%s", text, got, want, log.text.String())
		}
	}
	if got := log.count("no such file or directory"); got > 3 { // at most once each time
		t.Errorf("the socket's absence is logged %d times", got)
	}
}

// A runtime may die at any message of the registration, or at any time later.
func TestRuntimeDiesAtAnyMessage(t *testing.T) {
	core := coreWith(map[string]driver.Pinned{"a": claimA})
	var messages sync.Map // of a connection
	r, w := wired(t, func(connection int32, _ multiplex.ConnID) bool {
		n, _ := messages.LoadOrStore(connection, new(atomic.Int32))
		return n.(*atomic.Int32).Add(1) == connection && connection <= 4
	})
	r.set(func() { r.containers["c"] = containerMessage("c") })
	p := run(t.Context(), t, w.socket, core)
	eventually(t, "connected for good", func() bool { return w.accepted.Load() > 4 && p.Connected() })
	refresh(t, p)
	wantState(t, r, map[string]string{"c": "0-1,4-7/"})
	if got := w.most.Load(); got != 1 {
		t.Errorf("%d connections at a time, want never two", got)
	}
}

// The stub of nri 0.12.3 waits for ever for a configuration that cannot come any more.
func TestRuntimeDiesBetweenRegistrationAndConfiguration(t *testing.T) {
	_, w := wired(t, func(connection int32, to multiplex.ConnID) bool {
		return connection == 1 && to == multiplex.PluginServiceConn
	})
	p := run(t.Context(), t, w.socket, &fakeCore{})
	eventually(t, "connected", p.Connected)
	if got := w.accepted.Load(); got != 2 {
		t.Errorf("connected at attempt %d, want the second", got)
	}
}

func TestRuntimeDiesDuringAnUpdate(t *testing.T) {
	core := &fakeCore{}
	r, w := wired(t, never)
	p := run(t.Context(), t, w.socket, core)
	eventually(t, "connected", p.Connected)
	r.create("c")
	settle(t, p)
	core.hold(map[string]driver.Pinned{"a": claimA})
	answer, release := heldRefresh(t.Context(), r, p)
	w.down()
	if err := <-answer; err == nil {
		t.Error("no error of an update that the runtime did not live to see")
	}
	eventually(t, "lost", func() bool { return !p.Connected() })
	r.set(func() { r.broken["c"] = true }) // what was under way comes to nothing
	release()
	socket := filepath.Join(t.TempDir(), "1.sock")
	r.start(socket)
	r.set(func() { r.broken["c"] = false })
	w.up(socket)
	eventually(t, "connected again", p.Connected)
	refresh(t, p)
	wantState(t, r, map[string]string{"c": "0-1,4-7/"})
}

func TestJitterStaysBelowTheWait(t *testing.T) {
	for range 1000 {
		if got := jittered(lastReconnect); got < lastReconnect/2 || got > lastReconnect {
			t.Fatalf("wait %v, want from half of %v to all of it", got, lastReconnect)
		}
	}
}

// Answers to the last messages of a connection may come after the next has begun.
func TestWhatAnotherConnectionSaysIsOld(t *testing.T) {
	p := New(Options{Core: &fakeCore{}})
	at := func(ended bool) handlers { return handlers{p, &session{awake: make(chan struct{}, 1), ended: ended}} }
	if _, err := at(true).Synchronize(t.Context(), nil, nil); err != nil || p.Connected() {
		t.Errorf("connected %v over a connection that has ended, error %v", p.Connected(), err)
	}
	old, now := at(false), at(false)
	if _, err := now.Synchronize(t.Context(), nil, []*api.Container{withCPUs(containerMessage("c"), "1", "")}); err != nil {
		t.Fatal(err)
	}
	if err := old.PostCreateContainer(t.Context(), nil, withCPUs(containerMessage("c"), "2", "")); err != nil {
		t.Fatal(err)
	}
	if got := p.containers["c"].has.cpus; got != "1" {
		t.Errorf("c has CPUs %s, want 1, as the connection in use said", got)
	}
	p.end(old.session)
	if !p.Connected() {
		t.Error("the end of another connection ended the one in use")
	}
	p.end(now.session)
	if p.Connected() {
		t.Error("connected after the end")
	}
}
