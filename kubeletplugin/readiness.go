package kubeletplugin

import (
	"io"
	"net/http"
	"sync"
)

// readiness is why the node is not ready; no reason means it is.
type readiness struct {
	mu     sync.Mutex
	reason string
}

// set reports whether the reason is a new one.
func (r *readiness) set(reason string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = r.reason != reason
	r.reason = reason
	return changed
}

func (r *readiness) current() (reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

func (r *readiness) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // the prober has hung up: nobody to tell
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		text := "ok"
		if reason := r.current(); reason != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			text = reason
		}
		_, _ = io.WriteString(w, text+"\n")
	})
	return mux
}
