package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/tlsfiles"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/version"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin/metrics"
)

// monitoring is where the daemon tells what it does, besides health. All of it is off
// unless a flag says where.
type monitoring struct {
	metrics                                 string // address of the server of /metrics; "" for none
	certificateFile, keyFile, clientsCAFile string // TLS of that server; "" for none
	policy                                  tlsfiles.Policy
	pprof                                   string // loopback address of the profiles; "" for none
	cacheUse                                bool   // scrapes read what the kernel counts in caches
}

func (m monitoring) validate() error {
	switch {
	case (m.certificateFile == "") != (m.keyFile == ""):
		return cli.Usagef("--metrics-tls-cert and --metrics-tls-key belong together")
	case m.clientsCAFile != "" && m.certificateFile == "":
		return cli.Usagef("--metrics-client-ca: needs --metrics-tls-cert and --metrics-tls-key")
	case m.policy.Given() != "" && m.certificateFile == "":
		return cli.Usagef("%s: needs --metrics-tls-cert and --metrics-tls-key", m.policy.Given())
	case m.certificateFile != "" && m.metrics == "":
		return cli.Usagef("--metrics-tls-cert: needs --metrics-listen")
	case m.cacheUse && m.metrics == "":
		return cli.Usagef("--metrics-cache-use: needs --metrics-listen")
	case m.pprof != "" && !isLoopback(m.pprof):
		return cli.Usagef("--pprof %q: want an address of this container only, such as 127.0.0.1:6060, because profiles show memory", m.pprof)
	}
	return m.policy.Validate()
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// monitor starts the servers that the flags ask for.
func (m monitoring) monitor(exporter *metrics.Exporter, fatal func(error)) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	if m.metrics != "" {
		secure, err := m.tls()
		if err != nil {
			return nil, err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", exporter.Handler())
		stopServing, err := serve(m.metrics, mux, secure, fatal)
		if err != nil {
			return nil, err
		}
		stops = append(stops, stopServing)
	}
	if m.pprof != "" {
		stopServing, err := serve(m.pprof, profiles(), nil, fatal)
		if err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, stopServing)
	}
	return stop, nil
}

// tls returns nil if the metrics are served without TLS.
func (m monitoring) tls() (*tls.Config, error) {
	if m.certificateFile == "" {
		return nil, nil
	}
	files := &tlsfiles.Files{Certificate: m.certificateFile, Key: m.keyFile, ClientsCA: m.clientsCAFile, Policy: m.policy}
	if _, err := files.Current(); err != nil {
		return nil, fmt.Errorf("read TLS files of the metrics: %w", err)
	}
	return &tls.Config{
		MinVersion: m.policy.MinVersion, CipherSuites: m.policy.CipherSuites,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return files.Current() },
	}, nil
}

// profiles serves what go tool pprof reads.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// shown is what the daemon shows of itself.
type shown struct {
	readiness kubeletplugin.Readiness
	requests  kubeletplugin.APIRequests
	metrics   *metrics.Exporter
	starting  starting
}

// show returns what a daemon that has just started shows.
func (o *options) show() *shown {
	s := &shown{}
	options := metrics.Options{Version: version.String(), Readiness: &s.readiness, Requests: &s.requests}
	if o.keeperDir != "" {
		dir := os.DirFS(o.keeperDir)
		options.Keeper = func() (keeperfile.Beat, error) { return keeperfile.ReadBeat(dir) }
		s.readiness.Require(kubeletplugin.ReasonKeeper, func() string {
			beat, err := keeperfile.ReadBeat(dir)
			return keeperfile.Silent(beat, err, time.Now())
		})
	}
	s.metrics = metrics.New(options)
	return s
}

// serve adds what a daemon shows that serves its node. Lock is the file of the hooks, and
// resctrl a mount whose counters scrapes read, or "".
func (s *shown) serve(core *driver.Driver, plugin *kubeletplugin.Plugin, lock, resctrl string) {
	s.readiness.Require(kubeletplugin.ReasonKubelet, func() string {
		switch registered, why := plugin.Registered(); {
		case registered:
			return ""
		case why != "":
			return "the kubelet refuses to register the driver: " + message.OneLine(why)
		}
		return "the kubelet has not registered the driver yet"
	})
	s.readiness.Live(plugin.Alive)
	node := metrics.Node{
		Driver: core, Figures: plugin.Figures,
		Hooks: func() (*pin.Hooks, error) { return pin.ReadHooks(lock) },
	}
	if resctrl != "" {
		node.CacheUse = func() (*nodestate.Resctrl, error) {
			machine := core.Machine()
			return resctrlState(os.DirFS(resctrl), &machine, core.Grants())
		}
	}
	s.metrics.Serve(node)
}
