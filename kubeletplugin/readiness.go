package kubeletplugin

import (
	"io"
	"net/http"
	"sync"
)

// Readiness is what /readyz says: why the daemon is not ready, or that it is.
// The zero value is that of one that starts.
type Readiness struct {
	mu     sync.Mutex
	set    bool
	reason string // empty if it is ready
	as     string // what it is then; empty for one that serves the node
}

// NotReady says why.
func (r *Readiness) NotReady(reason string) { r.change(reason, "") }

// Standby says that the daemon has nothing to do but to wait, and for what. It is
// ready then: an update that starts the new daemon first goes on.
func (r *Readiness) Standby(text string) { r.change("", "standby: "+text) }

// change reports whether this is news.
func (r *Readiness) change(reason, as string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = !r.set || r.reason != reason || r.as != as
	r.set, r.reason, r.as = true, reason, as
	return changed
}

func (r *Readiness) answer() (status int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.set:
		return http.StatusServiceUnavailable, "starting"
	case r.reason != "":
		return http.StatusServiceUnavailable, r.reason
	case r.as != "":
		return http.StatusOK, r.as
	}
	return http.StatusOK, "ok"
}

// Handler serves /healthz, which is for the process, and /readyz.
func (r *Readiness) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // the prober has hung up: nobody to tell
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, text := r.answer()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text+"\n")
	})
	return mux
}
