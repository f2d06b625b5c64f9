package kubeletplugin

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// served is a plugin as a kubelet meets it.
type served struct {
	*Plugin
	dir, cdiDir string
	connection  *grpc.ClientConn
	readiness   *Readiness
}

func startServed(t *testing.T, c *cluster, dir, cdiDir string) *served {
	t.Helper()
	return startServedWith(t, c, recoveredDriver(t), dir, cdiDir, nil)
}

func startServedWith(t *testing.T, c *cluster, d *driver.Driver, dir, cdiDir string, claims map[types.UID]*resourceapi.ResourceClaim) *served {
	t.Helper()
	s := &served{dir: dir, cdiDir: cdiDir, readiness: &Readiness{}}
	var err error
	keep(t, dir)
	s.Plugin, err = Start(t.Context(), d, Options{
		Client: c, PluginDir: s.dir, RegistryDir: t.TempDir(), CDIDir: s.cdiDir, State: files.Open(t, dir), Claims: claims,
		Readiness: s.readiness, Fatal: func(err error) { t.Errorf("fatal: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	waitReady(t, publishing{publisher: s.publisher}, time.Minute)
	s.connection, err = grpc.NewClient("unix:"+filepath.Join(s.dir, "dra.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.connection.Close() })
	return s
}

// A daemon may be stopped before its servers have begun to serve.
func TestStopAtOnceIsNoFault(t *testing.T) {
	d := recoveredDriver(t)
	for range 50 {
		dir := t.TempDir()
		p, err := Start(t.Context(), d, Options{
			Client: newCluster(), PluginDir: dir, RegistryDir: t.TempDir(), CDIDir: t.TempDir(), State: files.Open(t, dir),
			Readiness: &Readiness{}, Fatal: func(err error) { t.Errorf("fatal: %v", err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		p.Stop()
	}
}

// A kubelet that restarts watches anew while the old stream may still be there.
func TestSecondWatcherOfHealth(t *testing.T) {
	s := startServed(t, newCluster(), t.TempDir(), t.TempDir())
	var streams []healthapi.DRAResourceHealth_NodeWatchResourcesClient
	receive := func(want healthapi.HealthStatus) {
		t.Helper()
		for i, stream := range streams {
			answer, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			devices := answer.GetDevices()
			if len(devices) != 1 || devices[0].GetDevice().GetDeviceName() != "numa-0" || devices[0].GetHealth() != want ||
				devices[0].GetHealthCheckTimeoutSeconds() != 30 || time.Since(time.Unix(devices[0].GetLastUpdatedTime(), 0)) > 10*time.Second {
				t.Errorf("watcher %d: devices %v, want numa-0 %s", i, devices, want)
			}
		}
	}
	for range 2 {
		stream, err := healthapi.NewDRAResourceHealthClient(s.connection).NodeWatchResources(t.Context(), &healthapi.NodeWatchResourcesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	receive(healthapi.HealthStatus_HEALTHY)
	if _, _, err := s.driver.Prepare(allocated("c", "uid-1"), nil); err != nil {
		t.Fatal(err)
	}
	fault := []pin.Live{{Cgroup: "pod/c", Claims: given("uid-1", 0, 1), Fault: "root invalid"}}
	s.Observe([]pin.Live{{Cgroup: "pod/c", Claims: fault[0].Claims}}) // as it should be
	s.Observe(fault)
	time.Sleep(faultLasts)
	s.Observe(fault)
	receive(healthapi.HealthStatus_UNHEALTHY)
	s.Observe(nil)
	receive(healthapi.HealthStatus_HEALTHY)
	s.Stop()
	for i, stream := range streams {
		if _, err := stream.Recv(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("watcher %d: error %v after the plugin has stopped", i, err)
		}
	}
}

// Metadata is there while a claim is prepared, beside our own CDI device.
func TestMetadataOfPreparedClaims(t *testing.T) {
	c := newCluster()
	claim := allocated("c", "uid-1")
	if _, err := c.ResourceV1().ResourceClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := startServed(t, c, t.TempDir(), t.TempDir())
	kubelet := draapi.NewDRAPluginClient(s.connection)
	asked := []*draapi.Claim{{Namespace: "default", Name: "c", Uid: "uid-1"}}
	for range 2 { // the kubelet repeats itself
		answer, err := kubelet.NodePrepareResources(t.Context(), &draapi.NodePrepareResourcesRequest{Claims: asked})
		if err != nil || answer.GetClaims()["uid-1"].GetError() != "" {
			t.Fatalf("prepare: %v, %v", answer, err)
		}
		ids := answer.GetClaims()["uid-1"].GetDevices()[0].GetCdiDeviceIds()
		want := []string{"dra.numa/claim=uid-1_zone_numa-0", "dra.numa/metadata=uid-1_zone"}
		if !slices.Equal(ids, want) {
			t.Errorf("CDI devices %q, want %q", ids, want)
		}
		if pinned, ok := s.driver.Pinned(ids); !ok || pinned.CPUs.String() != "0-1" {
			t.Errorf("they give %+v, %t", pinned, ok)
		}
	}
	text := files.Read(t, filepath.Join(s.dir, "dra-device-metadata", "default_c", "zone", "metadata.json"))
	files.Contains(t, text, `"metadata.resource.k8s.io/v1beta1"`, `"dra.numa/cpus"`, `"0-1"`, `"resource.kubernetes.io/numaNode"`)
	if got, want := listDir(t, s.cdiDir), []string{"dra.numa_metadata_uid-1_zone.json"}; !slices.Equal(got, want) {
		t.Errorf("CDI specs %q, want %q", got, want)
	}
	s.Stop()
	s = startServed(t, c, s.dir, s.cdiDir) // of which the daemon after a restart knows nothing
	released, err := draapi.NewDRAPluginClient(s.connection).NodeUnprepareResources(t.Context(), &draapi.NodeUnprepareResourcesRequest{Claims: asked})
	if err != nil || released.GetClaims()["uid-1"].GetError() != "" {
		t.Fatalf("unprepare: %v, %v", released, err)
	}
	if specs, folders := listDir(t, s.cdiDir), listDir(t, filepath.Join(s.dir, "dra-device-metadata")); len(specs)+len(folders) > 0 {
		t.Errorf("left are %q and %q", specs, folders)
	}
}

// The kubelet has lost its state, so it does not unprepare a claim that is gone.
func TestMetadataOfLeftoversIsNotMounted(t *testing.T) {
	c, asked := newCluster(), &draapi.NodePrepareResourcesRequest{}
	for _, name := range []string{"gone", "kept"} {
		claim := allocated(name, types.UID("uid-"+name))
		if _, err := c.ResourceV1().ResourceClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		asked.Claims = append(asked.Claims, &draapi.Claim{Namespace: "default", Name: name, Uid: "uid-" + name})
	}
	s := startServed(t, c, t.TempDir(), t.TempDir())
	if _, err := draapi.NewDRAPluginClient(s.connection).NodePrepareResources(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	if err := c.ResourceV1().ResourceClaims("default").Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Observe(nil)
	if got := listDir(t, s.cdiDir); len(got) != 2 {
		t.Errorf("CDI specs %q while both claims are on record", got)
	}
	if err := s.leftovers.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.driver.Observe(nil); err != nil {
		t.Fatal(err)
	}
	s.Observe(nil)
	if got, want := listDir(t, s.cdiDir), []string{"dra.numa_metadata_uid-kept_zone.json"}; !slices.Equal(got, want) {
		t.Errorf("CDI specs %q, want %q", got, want)
	}
}

// countingPool is the container runtime, so far as the plugin meets it.
type countingPool struct{ refreshed, bounded int }

func (p *countingPool) Connected() bool { return true }

func (p *countingPool) Refused() bool { return false }

func (p *countingPool) Unexplained() []string { return nil }

func (p *countingPool) Refresh(ctx context.Context) error {
	p.refreshed++
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= sharedPoolTimeout {
		p.bounded++
	}
	return errors.New("the runtime says no")
}

// Containers without claims move before a claim's own starts, and after it has
// ended; a runtime that does not do it holds nobody up.
func TestPoolIsRefreshedAroundClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServing(t)
		pool := &countingPool{}
		s.sharedPool = pool
		claim := allocated("c", "uid-1")
		if results, err := s.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{claim}); err != nil || results["uid-1"].Err != nil {
			t.Fatalf("prepare: %v, %v", results, err)
		}
		if pool.refreshed != 1 {
			t.Errorf("%d refreshes before the kubelet has its answer, want 1", pool.refreshed)
		}
		if _, err := s.UnprepareResourceClaims(t.Context(), nil); err != nil || pool.refreshed != 2 || pool.bounded != 2 {
			t.Errorf("%d refreshes, %d of them bounded, want 2; %v", pool.refreshed, pool.bounded, err)
		}
	})
}
