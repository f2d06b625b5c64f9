package web

import (
	"context"
	"embed"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	g "maragu.dev/gomponents"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

//go:embed pages/live.js pages/style.css
var files embed.FS

// Options are what the pages need in addition to a board.
type Options struct {
	// Live means that the board can change.
	Live bool
	// Token is what a browser must know; see NewToken. If it is "", every user of this
	// machine can read the pages.
	Token string
	// From says in a few words where the objects are from.
	From string
	// Explain says why a pod has no node. Several goroutines may call it.
	Explain func(ctx context.Context, objects *snapshot.Snapshot, namespace, name string) (simulate.Explanation, error)
	// State returns what a node says about its CPUs. Several goroutines may call it. If it
	// is nil, the CPUs of nodes are not drawn one by one.
	State func(ctx context.Context, objects *snapshot.Snapshot, node string) (*nodestate.State, error)
	// Events returns the events about objects, and more, in any order. missing says what it
	// cannot read, as sentences. Several goroutines may call it.
	Events func(ctx context.Context, objects *snapshot.Snapshot, about []corev1.ObjectReference) (events []*corev1.Event, missing []string)
}

// server answers requests for the pages of a board.
type server struct {
	Options
	board *Board
	busy  chan struct{} // contains a value while an explanation is computed
}

// Handler answers requests for the pages of a board from browsers on this machine.
func Handler(board *Board, o Options) http.Handler {
	s := &server{Options: o, board: board, busy: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.overview)
	mux.HandleFunc("GET /nodes/{name}", s.node)
	mux.HandleFunc("GET /nodes/{name}/zones/{zone}", s.history)
	mux.HandleFunc("GET /claims", s.claims)
	mux.HandleFunc("GET /claims/{namespace}/{name}", s.claim)
	mux.HandleFunc("GET /pods", s.pods)
	mux.HandleFunc("GET /pods/{namespace}/{name}", s.pod)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /live.js", file("pages/live.js", "text/javascript; charset=utf-8", ""))
	mux.HandleFunc("GET /style.css", file("pages/style.css", "text/css; charset=utf-8", canvas.BarStyle))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		s.message(w, http.StatusNotFound, "There is no such page.")
	})
	return guard(withToken(o.Token, mux))
}

func file(name, contentType, more string) http.HandlerFunc {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // impossible: it is embedded
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(append(text[:len(text):len(text)], more...))
	}
}

// guard keeps pages of other sites from reading our pages, either through a name that
// resolves to this machine (DNS rebinding) or in a frame. It also keeps our pages from
// loading anything else.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		if !isLoopback(r.Host) {
			http.Error(w, "this page is only for browsers on the same machine: use 127.0.0.1 or localhost", http.StatusMisdirectedRequest)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "these pages can only be read", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

func (s *server) render(w http.ResponseWriter, now *state, status int, title string, main g.Node) {
	f := frame{Title: title, Live: s.Live, Version: now.version, Failure: now.failure, From: s.From}
	var out strings.Builder
	if err := f.document(main).Render(&out); err != nil {
		http.Error(w, "render page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// Escaping for HTML leaves invisible characters, such as marks of text direction.
	_, _ = w.Write([]byte(message.Visible(out.String())))
}

func (s *server) message(w http.ResponseWriter, status int, text string) {
	s.render(w, s.board.state.Load(), status, strconv.Itoa(status), g.Group{plain(text), el("p", anchor("/", "All nodes"))})
}
