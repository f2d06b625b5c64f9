package kubeletplugin

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestEitherFileOrFieldPausesPublishing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, PauseFile)
	const field = "the NodeConfig says publishing: paused"
	for _, row := range []struct {
		byConfig, byFile bool
		want             string
	}{
		{false, false, ""},
		{true, false, field},
		{false, true, "there is the file " + file},
		{true, true, field + ", and there is the file " + file},
	} {
		_ = os.Remove(file)
		if row.byFile {
			files.Write(t, file, "")
		}
		if got := WhyPaused(row.byConfig, dir); got != row.want {
			t.Errorf("field %t, file %t: %q, want %q", row.byConfig, row.byFile, got, row.want)
		}
	}
	// What is there pauses, whatever it is.
	_ = os.Remove(file)
	if err := os.Symlink("nowhere", file); err != nil {
		t.Fatal(err)
	}
	if WhyPaused(false, dir) == "" {
		t.Error("a link does not pause")
	}
}

// pause has an administrator make the file.
func pause(t *testing.T, root string) { files.Write(t, filepath.Join(root, PauseFile), "") }

// resume removes the file.
func resume(t *testing.T, root string) {
	t.Helper()
	if err := os.Remove(filepath.Join(root, PauseFile)); err != nil {
		t.Fatal(err)
	}
}

func pausedNote(root string) string {
	return "Warning NUMAPublishingPaused No ResourceSlices of this node are written, because there is the file " + filepath.Join(root, PauseFile) +
		": those that there are stay, and claims are prepared as before"
}

// What changes meanwhile, also what would have to be withdrawn, is written after it, once. The
// test takes less than a minute, because the helper then spins on a clock that stands still.
func TestPausedPublishingLeavesSlicesAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		pause(t, p.root)
		before := c.stored()
		more := append(testDevices(deviceclasses.FaultPartitionInvalid), offered("numa-1", 4, 0, ""))
		p.set(more) // at once: the daemon has not looked at the file yet
		told := waitForEvents(t, c, 1)
		if !p.isPaused() {
			t.Error("the figures do not say that publishing is paused")
		}
		write(t, p.root, "cpu_manager_state", cpuStatic)
		waitNotReady(t, p, `kubelet's CPU manager policy is "static"`, 2*guardInterval)
		write(t, p.root, "cpu_manager_state", cpuNone)
		waitReady(t, p, 2*guardInterval)
		p.set(nil)
		time.Sleep(2 * guardInterval)
		p.set(more)
		time.Sleep(2 * guardInterval)
		if writes, devices := c.stored()-before, devicesOf(t, c); writes != 0 || !resourceslice.DevicesDeepEqual(devices, testDevices()) {
			t.Errorf("%d writes while publishing is paused, and now there are %v", writes, devices)
		}

		resume(t, p.root)
		if !until(2*guardInterval, func() bool { return resourceslice.DevicesDeepEqual(devicesOf(t, c), more) }) {
			t.Fatalf("after the pause there are %v", devicesOf(t, c))
		}
		waitReady(t, p, guardInterval)
		time.Sleep(2 * guardInterval)
		if writes := c.stored() - before; writes != 1 {
			t.Errorf("%d writes after the pause, want 1", writes)
		}
		if p.isPaused() {
			t.Error("the figures still say that publishing is paused")
		}
		told = append(told, waitForEvents(t, c, 4)[1:]...)
		want := []string{
			pausedNote(p.root),
			"Warning NUMADriverNotReady " + `kubelet's CPU manager policy is "static"`,
			"Normal NUMAPublishingResumed The node publishes its devices again",
			"Normal NUMADriverReady Zones of this node are published",
		}
		told[1] = told[1][:min(len(told[1]), len(want[1]))]
		slices.Sort(told[2:])
		slices.Sort(want[2:])
		if !slices.Equal(told, want) {
			t.Errorf("events %q, want %q", told, want)
		}
	})
}

// A daemon that starts meanwhile writes nothing, whether or not there are slices, and is ready: a
// rolling update goes on.
func TestStartWhilePublishingIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		paused := func(root string) { pause(t, root) }
		p := startReady(t, c, paused)
		time.Sleep(2 * guardInterval)
		if writes := c.stored(); writes != 0 || len(devicesOf(t, c)) > 0 {
			t.Errorf("%d writes of a daemon that starts", writes)
		}
		if told := waitForEvents(t, c, 1); told[0] != pausedNote(p.root) {
			t.Errorf("events %q", told)
		}
		resume(t, p.root)
		if !until(2*guardInterval, func() bool { return len(devicesOf(t, c)) > 0 }) {
			t.Fatal("nothing is published after the pause")
		}
		p.cancel()
		p.running.Wait()

		before := c.stored()
		p = startReady(t, c, paused)
		p.set(testDevices(deviceclasses.FaultPartitionInvalid))
		time.Sleep(2 * guardInterval)
		if writes, devices := c.stored()-before, devicesOf(t, c); writes != 0 || !resourceslice.DevicesDeepEqual(devices, testDevices()) {
			t.Errorf("%d writes of a daemon that finds slices, which have %v now", writes, devices)
		}
	})
}

// The helper, not the publisher, brings back what this daemon has published.
func TestSlicesThatAreDeletedInAPauseComeBackAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		pause(t, p.root)
		p.set(testDevices(deviceclasses.FaultPartitionInvalid))
		waitForEvents(t, c, 1)
		for _, slice := range p.slices.own() {
			if err := c.ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(resourceslice.DefaultSyncDelay + 5*time.Second)
		if devices := devicesOf(t, c); !resourceslice.DevicesDeepEqual(devices, testDevices()) {
			t.Errorf("there are %v", devices)
		}
	})
}

func TestClaimsArePreparedWhilePublishingIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServing(t)
		pause(t, s.guards.kubeletRoot)
		time.Sleep(2 * guardInterval)
		claim := allocated("c", "uid-1")
		results, err := s.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{claim})
		if err != nil || results["uid-1"].Err != nil || len(results["uid-1"].Devices) != 1 {
			t.Errorf("prepare: %+v, %v", results, err)
		}
		released, err := s.UnprepareResourceClaims(t.Context(), []kubeletplugin.NamespacedObject{{UID: "uid-1"}})
		if err != nil || released["uid-1"] != nil {
			t.Errorf("unprepare: %v, %v", released, err)
		}
		// CPUs that are published and gone are refused, as ever.
		less := testMachine()
		less.Online, less.Zones[0].CPUs, less.Cores = cpuset.New(0), cpuset.New(0), less.Cores[:1]
		s.driver.SetMachine(less)
		results, err = s.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{claim})
		if err != nil || results["uid-1"].Err == nil {
			t.Errorf("prepare of CPUs that are gone: %+v, %v", results, err)
		}
	})
}
