// Package metrics shows what the daemon knows and has counted in the format of Prometheus.
// It computes nothing between scrapes: the core and the plugin keep plain counters, and
// a scrape reads them. It takes no lock that an operation of the kubelet waits for, except
// for a comparison of the node's files that gives way to every operation.
//
// No text that a pod can choose becomes a label, except for the namespaces and names of
// claims that the node has prepared. Their number is bounded; see maxClaims.
package metrics

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
)

// maxScrapes is how many scrapes may be under way. Two Prometheus servers often scrape the
// same targets.
const maxScrapes = 3

// Options are what a daemon has from its start, also while it waits for another one.
type Options struct {
	Version   string
	Readiness *kubeletplugin.Readiness
	Requests  *kubeletplugin.APIRequests
	// Keeper returns the last heartbeat of the keeper. It may be nil.
	Keeper func() (keeperfile.Beat, error)
}

// Node is what a daemon has once it serves its node.
type Node struct {
	Driver  *driver.Driver
	Figures func() kubeletplugin.Figures
	Hooks   func() (*pin.Hooks, error) // an error means that they are not known now
	// CacheUse returns what the kernel counts for claims in level-3 caches now. Each call
	// interrupts CPUs of claims for a moment. It may be nil.
	CacheUse func() (*nodestate.Resctrl, error)
}

// Exporter is the source of the metrics of one daemon.
type Exporter struct {
	options  Options
	families *families
	node     atomic.Pointer[Node] // nil before Serve
}

// New returns the exporter of a daemon that has just started.
func New(options Options) *Exporter { return &Exporter{options: options, families: newFamilies()} }

// Serve adds the metrics of the node. It may be called once, at any time.
func (e *Exporter) Serve(node Node) { e.node.Store(&node) }

// Handler answers scrapes. It compresses nothing: that would cost the node more CPU than a
// scrape, to save traffic of some kilobytes a minute.
func (e *Exporter) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(e, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		DisableCompression: true, MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError,
	})
}

// Describe implements [prometheus.Collector].
func (e *Exporter) Describe(descriptions chan<- *prometheus.Desc) {
	for _, family := range e.families.list {
		descriptions <- family.description
	}
}

// Collect implements [prometheus.Collector].
func (e *Exporter) Collect(metrics chan<- prometheus.Metric) {
	out := sink(metrics)
	e.collectDaemon(out)
	if node := e.node.Load(); node != nil {
		figures := node.Figures()
		e.collectZones(out, node.Driver, figures.Devices)
		e.collectClaims(out, node.Driver, figures)
		e.collectOperations(out, node.Driver, figures)
		e.collectHost(out, node.Driver, figures)
		if hooks, err := node.Hooks(); err == nil {
			out.addDurations(e.families.hooks, hooks.Pinned.Read(), "pinned")
			out.addDurations(e.families.hooks, hooks.Refused.Read(), "refused")
		}
		if node.CacheUse != nil {
			if counted, err := node.CacheUse(); err == nil {
				e.collectCacheUse(out, counted)
			}
		}
	}
}

// collectDaemon is what also a daemon that waits can tell.
func (e *Exporter) collectDaemon(out sink) {
	out.add(e.families.build, 1, e.options.Version)
	problems := e.options.Readiness.Problems()
	out.add(e.families.ready, oneIf(len(problems) == 0))
	told := make(map[kubeletplugin.Reason]bool)
	for _, problem := range problems {
		if !told[problem.Reason] {
			out.add(e.families.notReady, 1, string(problem.Reason))
		}
		told[problem.Reason] = true
	}
	e.collectRequests(out)
	e.collectKeeper(out)
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
