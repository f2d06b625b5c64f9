package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/internal/histogram"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// newExporter returns the exporter of a daemon that has sent some requests.
func newExporter(t testing.TB) (*Exporter, *kubeletplugin.Readiness) {
	t.Helper()
	readiness, requests := &kubeletplugin.Readiness{}, &kubeletplugin.APIRequests{}
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client := http.Client{Transport: requests.Count(http.DefaultTransport)}
	answer, err := client.Get(server.URL + "/apis/resource.k8s.io/v1/resourceslices")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return New(Options{
		Version: "v1.2.3", Readiness: readiness, Requests: requests,
		Keeper: func() (keeperfile.Beat, error) {
			return keeperfile.Beat{At: time.Unix(1767225600, 500e6), Repairs: map[string]uint64{string(pin.CauseMems): 5}, Releases: 6, Unrepaired: 1}, nil
		},
	}), readiness
}

// openDriver returns the driver of a node with the claims of the driver's own golden file:
// they have shares of all kinds. The node should divide its caches, and has no resctrl.
func openDriver(t testing.TB) *driver.Driver {
	return openOn(t, sample.Machine(t, "rig"), nil)
}

// openOn returns the driver of a machine with the driver's golden files.
func openOn(t testing.TB, machine numa.Machine, settings *tuning.Config) *driver.Driver {
	t.Helper()
	state := files.OpenTemp(t)
	for name, in := range map[string]string{ledger.CheckpointName: "ledger", tuning.FirstName: "tuning"} {
		if err := state.WriteFile(name, []byte(files.Read(t, "../../driver/"+in+"/testdata/"+name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := driver.Open(machine, driver.Config{
		NodeName: "node-1", BootID: "boot-1", Reserved: cpuset.New(0, 1), Exclusivity: driver.ExclusivityKernel, Tuning: settings,
		Caches: &dividing.Config{
			Pools: *object.Parse[deviceclasses.CachePools](t, "{os: {ways: 2}, infra: {ways: 4}}"),
			Host:  resctrl.On(t.TempDir(), numa.ResctrlView{}),
		},
	}, state, files.OpenTemp(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Recover(nil, []driver.Held{{Cgroup: "other.slice", CPUs: cpuset.New(11)}}); err != nil {
		t.Fatal(err)
	}
	return d
}

// published are the devices of the node, with a cache, a claimed and a free PCI function.
func published(d *driver.Driver) []resourceapi.Device {
	devices := d.Publish(func(types.UID, ledger.Share) string { return "" }, cpuset.Set{}).Devices
	add := func(name, kind string, capacity map[resourceapi.QualifiedName]resourceapi.DeviceCapacity) {
		devices = append(devices, resourceapi.Device{
			Name: name, Capacity: capacity,
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{deviceclasses.AttributeKind: {StringValue: &kind}},
		})
	}
	add("cache-3-besteffort", deviceclasses.KindCache, map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{deviceclasses.CapacityWays: {Value: resource.MustParse("7")}})
	add("cache-0-shared", deviceclasses.KindCache, nil)
	add("gpu-0000-18-00-0", "gpu", nil)
	devices[len(devices)-1].Taints = []resourceapi.DeviceTaint{{Key: deviceclasses.TaintFault, Value: deviceclasses.FaultUnhealthy, Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	return devices
}

func sampleFigures(d *driver.Driver) func() kubeletplugin.Figures {
	var durations histogram.Durations
	durations.Add(3 * time.Millisecond)
	return func() kubeletplugin.Figures {
		return kubeletplugin.Figures{
			Prepare:    kubeletplugin.Calls{Done: durations.Read()},
			Devices:    published(d),
			Cgroups:    map[kubeletplugin.CgroupState]int{kubeletplugin.CgroupExclusive: 2, kubeletplugin.CgroupFaulty: 1},
			Faulty:     map[types.UID]bool{"uid-b": true},
			Refusals:   4,
			Runtime:    kubeletplugin.RuntimeRefused,
			Registered: true, Unexplained: 3, Paused: true,
		}
	}
}

func sampleHooks() (*pin.Hooks, error) {
	var hooks pin.Hooks
	hooks.Pinned.Add(20 * time.Millisecond)
	return &hooks, nil
}

// scrape returns the text of a scrape.
func scrape(t testing.TB, e *Exporter) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	e.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if recorder.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", recorder.Code, recorder.Body)
	}
	return recorder.Body.String()
}

// volatile are values that differ from run to run.
var volatile = regexp.MustCompile(`(?m)^(dra_numa_(?:fsync_duration_seconds|written_bytes)[a-z_]*\{.*\}|process_[a-z_]+) .*$`)

// ofProcess are the metrics of the client library that the dashboards show.
var ofProcess = regexp.MustCompile(`^(# TYPE )?process_(cpu_seconds_total|resident_memory_bytes) `)

// own returns what of a scrape is the driver's own, and the same in each run.
func own(text string) string {
	var own strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, namespace+"_") || ofProcess.MatchString(line) {
			own.WriteString(volatile.ReplaceAllString(strings.TrimSuffix(line, "\n"), "$1 0") + "\n")
		}
	}
	return own.String()
}

func TestMetricsGolden(t *testing.T) {
	e, readiness := newExporter(t)
	d := openDriver(t)
	e.Serve(Node{Driver: d, Figures: sampleFigures(d), Hooks: sampleHooks})
	readiness.NotReady(kubeletplugin.ReasonAPIServer, "text")
	files.Golden(t, "testdata/metrics.txt", own(scrape(t, e)))
}

// The tests of the alerts begin with the metrics of this node.
func TestMetricsOfANodeWithoutFaults(t *testing.T) {
	e, readiness := newExporter(t)
	e.options.Keeper = func() (keeperfile.Beat, error) {
		return keeperfile.Beat{At: time.Unix(1767225600, 0), Releases: 6}, nil
	}
	readiness.NotReady("", "")
	d := nodeWith(t, "rig", cpuset.New(0, 1), 2, "2")
	e.Serve(Node{d, func() kubeletplugin.Figures {
		return kubeletplugin.Figures{
			Prepare: sampleFigures(d)().Prepare, Unprepare: sampleFigures(d)().Prepare, Registered: true, Runtime: kubeletplugin.RuntimeConnected,
			Cgroups: map[kubeletplugin.CgroupState]int{kubeletplugin.CgroupExclusive: 2},
			Devices: d.Publish(func(types.UID, ledger.Share) string { return "" }, cpuset.Set{}).Devices,
		}
	}, sampleHooks, nil})
	files.Golden(t, "testdata/healthy.txt", own(scrape(t, e)))
}

// Each metric that is documented is sent, and the names are as Prometheus asks for.
func TestNamesAreAsPrometheusAsks(t *testing.T) {
	e, _ := newExporter(t)
	d := openTuned(t)
	e.Serve(Node{Driver: d, Figures: sampleFigures(d), Hooks: sampleHooks, CacheUse: sampleCacheUse})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(e)
	sent, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(sent).Lint()
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, family := range sent {
		names[family.GetName()] = true
	}
	for _, family := range e.families.list {
		if !names[family.name] {
			t.Errorf("%s is documented and not sent", family.name)
		}
	}
}

const tableHead = "| metric | type | labels | meaning |\n|---|---|---|---|\n"

func TestMetricsAreDocumented(t *testing.T) {
	const path, end = "../../docs/monitoring.md", "\n<!-- end of metrics -->\n"
	var table strings.Builder
	for _, family := range newFamilies().list {
		labels := "–"
		if len(family.labels) > 0 {
			labels = "`" + strings.Join(family.labels, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", family.name, family.kind, labels, family.help)
	}
	head, rest, _ := strings.Cut(files.Read(t, path), tableHead)
	_, rest, _ = strings.Cut(rest, end)
	files.Golden(t, path, head+tableHead+table.String()+end+rest)
}

// A daemon that waits for another one has no node to tell of.
func TestStandbyHasFewMetrics(t *testing.T) {
	e, readiness := newExporter(t)
	readiness.Standby("another dra-numa is running on this node")
	text := scrape(t, e)
	for want, there := range map[string]bool{
		"dra_numa_ready 0\n": true, `dra_numa_not_ready{reason="standby"} 1`: true, `dra_numa_build_info{version="v1.2.3"} 1`: true,
		"dra_numa_zone_cpus": false, "process_cpu_seconds_total": true,
	} {
		if strings.Contains(text, want) != there {
			t.Errorf("the metrics have %q: %t, want %t:\n%s", want, !there, there, text)
		}
	}
}

// Nothing that is not UTF-8 stops a scrape.
func TestNoNameStopsAScrape(t *testing.T) {
	e, _ := newExporter(t)
	metrics := make(chan prometheus.Metric, 10)
	e.collectClaim(metrics, &ledger.Grant{Namespace: "a\xff", Name: "b", Shares: []ledger.Share{{Device: "numa-0", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(1)}}}})
	if len(metrics) != 1 {
		t.Errorf("%d metrics of a claim with a strange name, want 1", len(metrics))
	}
}

func TestKindInBothSpellings(t *testing.T) {
	cache := resourceapi.DeviceAttribute{StringValue: new(deviceclasses.KindCache)}
	for name, want := range map[resourceapi.QualifiedName]string{"kind": "cache", "dra.numa/kind": "cache", "other.example.com/kind": ""} {
		if got := kindOf(&resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{name: cache}}); got != want {
			t.Errorf("%s: kind %q, want %q", name, got, want)
		}
	}
}
