package metrics

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// nodeWith returns the driver of a machine on which this many claims hold CPUs and memory.
func nodeWith(tb testing.TB, machine string, reserved cpuset.Set, claims int, cpus string) *driver.Driver {
	tb.Helper()
	d, err := driver.Open(sample.Machine(tb, machine), driver.Config{
		NodeName: "node-1", BootID: "boot-1", Reserved: reserved, Exclusivity: driver.ExclusivityKernel,
	}, files.OpenTemp(tb), files.OpenTemp(tb))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := d.Recover(nil, nil); err != nil {
		tb.Fatal(err)
	}
	for i := range claims {
		uid := types.UID(fmt.Sprintf("uid-%04d", i))
		claim := &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "namespace-of-a-tenant", Name: fmt.Sprintf("claim-of-a-pod-%04d", i), UID: uid},
			Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
				Results: []resourceapi.DeviceRequestAllocationResult{{
					Request: "main", Driver: driver.Name, Pool: "node-1", Device: fmt.Sprintf("numa-%d", i%2), ShareID: ptr.To(uid),
					ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse(cpus), "memory": resource.MustParse("64Mi")},
				}},
			}}},
		}
		if _, _, err := d.Prepare(claim, nil); err != nil {
			tb.Fatal(err)
		}
	}
	return d
}

// BenchmarkScrape scrapes a machine of 512 CPUs with 250 claims of 2 CPUs and memory each.
func BenchmarkScrape(b *testing.B) {
	e, _ := newExporter(b)
	d := nodeWith(b, "512cpus", cpuset.New(0, 256), 250, "2")
	devices := published(d)
	e.Serve(Node{d, func() kubeletplugin.Figures { return kubeletplugin.Figures{Devices: devices} }, sampleHooks, nil})
	b.ReportMetric(float64(len(scrape(b, e))), "bytes")
	b.ReportAllocs()
	for b.Loop() {
		scrape(b, e)
	}
}

// Any number of claims of memory fits on a node. Prometheus must not get a series for each.
func TestClaimsWithMetricsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("prepares more than a thousand claims")
	}
	e, _ := newExporter(t)
	d := nodeWith(t, "512cpus", cpuset.New(0, 256), maxClaims+3, "0")
	e.Serve(Node{d, func() kubeletplugin.Figures { return kubeletplugin.Figures{} }, sampleHooks, nil})
	text := scrape(t, e)
	for _, want := range []string{"dra_numa_claims_omitted 3\n", fmt.Sprintf("dra_numa_claims{state=\"prepared\"} %d\n", maxClaims+3)} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	if got := strings.Count(text, "dra_numa_claim_memory_bytes{"); got != maxClaims {
		t.Errorf("%d claims have metrics of memory, want %d", got, maxClaims)
	}
}
