package profile

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// busy takes CPU time, however long other programs make it wait for that.
func busy(t *testing.T, take time.Duration) (sum int) {
	for end := taken(t) + take; taken(t) < end; {
		for i := range 1000000 {
			sum += i * i
		}
	}
	return sum
}

// taken is the CPU time that this program has taken.
func taken(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano())
}

func TestProfileIsOfWhatRunsMeanwhile(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(pprof.Profile))
	t.Cleanup(server.Close)
	p, err := Source{server.Client(), server.URL, time.Second}.During(t.Context(), func() error {
		busy(t, 1200*time.Millisecond)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := Split(p)
	if err != nil {
		t.Fatal(err)
	}
	if last := parts[len(parts)-1]; last.Name != others || last.CPU < 300*time.Millisecond {
		t.Errorf("parts %v", parts)
	}
}

func TestProfileFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	failed := errors.New("no pod")
	_, err := Source{server.Client(), server.URL, time.Second}.During(t.Context(), func() error { return failed })
	if err == nil || !strings.Contains(err.Error(), "404 Not Found") || !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("no profile")) })
	if _, err := (Source{server.Client(), server.URL, time.Second}).During(t.Context(), func() error { return nil }); err == nil {
		t.Error("nonsense is a profile")
	}
}

// stack is a sample whose functions are named from the innermost on.
func stack(ms int64, functions ...string) *profile.Sample {
	sample := &profile.Sample{Value: []int64{1, ms * int64(time.Millisecond)}}
	for _, name := range functions {
		sample.Location = append(sample.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
	}
	return sample
}

func TestPartIsThatOfTheInnermostFunctionThatHasOne(t *testing.T) {
	const (
		allocate = "k8s.io/dynamic-resource-allocation/structured/internal/incubating.(*Allocator).Allocate"
		filter   = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources.(*DynamicResources).Filter"
		schedule = "k8s.io/kubernetes/pkg/scheduler.(*Scheduler).ScheduleOne"
	)
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, Sample: []*profile.Sample{
		stack(1, "runtime.mallocgc", "k8s.io/dynamic-resource-allocation/cel.CompilationResult.DeviceMatches", allocate, filter, schedule),
		stack(2, "k8s.io/apimachinery/pkg/api/resource.(*Quantity).Cmp", "k8s.io/dynamic-resource-allocation/structured/internal/incubating.CmpRequestOverCapacity", allocate, filter, schedule),
		stack(4, "unique.Make[go.shape.string]", "k8s.io/dynamic-resource-allocation/structured/internal/incubating.addSlice", allocate, filter, schedule),
		stack(8, "runtime.mapassign", allocate, filter, schedule),
		stack(16, filter, schedule),
		stack(32, "sync.(*Mutex).Lock", "k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).Pop", schedule),
		stack(64, schedule),
		stack(128, "net/http.(*Transport).RoundTrip", filter, schedule),
		stack(256, "runtime.scanobject", "runtime.gcBgMarkWorker"),
		stack(512, "runtime.mcall"),
		{Value: []int64{1, int64(1024 * time.Millisecond)}, Location: []*profile.Location{{Line: []profile.Line{{}}}}},
	}}
	parts, err := Split(p)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		want := time.Millisecond << i
		if i == len(parts)-1 {
			want = (512 + 1024) * time.Millisecond
		}
		if part.CPU != want {
			t.Errorf("%s: %s, want %s", part.Name, part.CPU, want)
		}
	}
	if _, err := Split(&profile.Profile{SampleType: []*profile.ValueType{{Type: "alloc_space", Unit: "bytes"}}}); err == nil {
		t.Error("a profile of memory has CPU time")
	}
}
