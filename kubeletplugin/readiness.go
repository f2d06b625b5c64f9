package kubeletplugin

import (
	"io"
	"net/http"
	"sync"
)

// Readiness is the answer of /readyz: whether the daemon is ready, and if not, why. The
// zero value means that the daemon is starting.
type Readiness struct {
	mu     sync.Mutex
	set    bool
	reason string // why the daemon is not ready; empty if it is
	as     string // what a ready daemon does; empty if it serves the node
}

// NotReady sets the reason why the daemon is not ready.
func (r *Readiness) NotReady(reason string) { r.change(reason, "") }

// Standby says that the daemon only waits, and for what. A waiting daemon counts as
// ready, so that a rolling update that starts the new daemon first can go on.
func (r *Readiness) Standby(text string) { r.change("", "standby: "+text) }

// change sets the answer, and reports whether it is a new one.
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

// Handler serves /healthz, which says that the process is alive, and /readyz.
func (r *Readiness) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // an error means that the prober has hung up
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, text := r.answer()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text+"\n")
	})
	return mux
}
