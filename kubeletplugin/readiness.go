package kubeletplugin

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/klog/v2"
)

// Readiness is the answer of /readyz: whether the daemon is ready, and if not, why. The
// zero value means that the daemon is starting.
type Readiness struct {
	mu       sync.Mutex
	set      bool
	problem  Problem // why ResourceSlices are not as they should be; empty if they are
	as       string  // what a ready daemon does; empty if it serves the node
	required []requirement
	alive    func(context.Context) error // nil: the daemon has nothing yet that could hang
}

// Problem is one reason why the daemon is not ready.
type Problem struct {
	Reason Reason
	Text   string // for people
}

// requirement is something else that a ready daemon has.
type requirement struct {
	reason Reason
	lacks  func() string
}

// NotReady sets the problem that keeps the daemon from being ready.
func (r *Readiness) NotReady(reason Reason, text string) { r.change(Problem{reason, text}, "") }

// Standby says that the daemon only waits, and for what. A waiting daemon counts as
// ready, so that a rolling update that starts the new daemon first can go on.
func (r *Readiness) Standby(text string) { r.change(Problem{}, "standby: "+text) }

// Require adds something that a daemon must have to be ready. lacks says what it lacks, or
// returns "". It is called for each answer, and must not wait.
func (r *Readiness) Require(reason Reason, lacks func() string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.required = append(r.required, requirement{reason, lacks})
}

// Live makes /healthz answer whether the daemon can go on. Alive says why it cannot, or
// returns nil. The kubelet restarts a daemon that cannot go on.
func (r *Readiness) Live(alive func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = alive
}

func (r *Readiness) checkAlive(ctx context.Context) error {
	r.mu.Lock()
	alive := r.alive
	r.mu.Unlock()
	if alive == nil {
		return nil
	}
	return alive(ctx)
}

// change sets the problem, and reports whether it is a new one.
func (r *Readiness) change(problem Problem, as string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = !r.set || r.problem != problem || r.as != as
	r.set, r.problem, r.as = true, problem, as
	return changed
}

// Problems returns why the daemon does not serve the node as it should; nothing if it
// does. A daemon that waits for another one has the problem ReasonStandby, although it is
// ready.
func (r *Readiness) Problems() (problems []Problem) {
	r.mu.Lock()
	set, problem, as, required := r.set, r.problem, r.as, r.required
	r.mu.Unlock()
	switch {
	case !set:
		return []Problem{{ReasonStarting, "starting"}}
	case as != "":
		return []Problem{{ReasonStandby, as}}
	case problem.Reason != "":
		problems = append(problems, problem)
	}
	for _, requirement := range required {
		if text := requirement.lacks(); text != "" {
			problems = append(problems, Problem{requirement.reason, text})
		}
	}
	return problems
}

// answer has one line for each problem.
func (r *Readiness) answer() (status int, text string) {
	var lines []string
	status = http.StatusOK
	for _, problem := range r.Problems() {
		lines = append(lines, problem.Text)
		if problem.Reason != ReasonStandby {
			status = http.StatusServiceUnavailable
		}
	}
	if len(lines) == 0 {
		return status, "ok"
	}
	return status, strings.Join(lines, "\n")
}

// Handler serves /healthz, which says whether the daemon can go on, and /readyz.
func (r *Readiness) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, request *http.Request) {
		text := "ok"
		if err := r.checkAlive(request.Context()); err != nil {
			text = err.Error()
			klog.FromContext(request.Context()).Error(err, "Not alive")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, text+"\n") // an error means that the prober has hung up
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, text := r.answer()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text+"\n")
	})
	return mux
}
