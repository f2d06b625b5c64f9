package kubeletplugin

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	eventsapi "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The checkpoints that a kubelet 1.37.1 and its predecessors write.
const (
	cpuNone   = `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`
	cpuStatic = `{"checksum":1,"data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0-7\"}","dataChecksum":2}`
	memNone   = `{"policyName":"None","machineState":{},"checksum":4236770233}`
	memStatic = `{"policyName":"Static","machineState":{"0":{"numberOfAssignments":0}},"checksum":1}`
)

const testBoot = "boot"

// write puts a state file into the kubelet's root directory, and has the keeper see that.
// The driver's directory is the same one here.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	files.Write(t, filepath.Join(root, name), text)
	keep(t, root)
}

// keep does what the keeper does.
func keep(t *testing.T, root string) {
	t.Helper()
	files.Write(t, filepath.Join(root, keeperfile.PoliciesName), string(keeperfile.ReadPolicies(os.DirFS(root), testBoot).Encode()))
}

func TestManagersOfTheKubelet(t *testing.T) {
	for name, row := range map[string]struct {
		cpu, memory string // no file if empty
		want        []string
	}{
		"no files": {"", "", nil},
		"none":     {cpuNone, memNone, nil},
		"static CPUs": {cpuStatic, memNone, []string{
			`kubelet's CPU manager policy is "static"`, "set cpuManagerPolicy: none", "delete /k/cpu_manager_state",
		}},
		"static memory": {"", memStatic, []string{
			`kubelet's memory manager policy is "Static"`, "set memoryManagerPolicy: None", "delete /k/memory_manager_state",
		}},
		"both": {cpuStatic, memStatic, []string{"cpu_manager_state", "; ", "memory_manager_state"}},
		"torn": {cpuStatic[:9], "", []string{"read policy of the kubelet's CPU manager: /k/cpu_manager_state: not a checkpoint of the kubelet"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			keep(t, root)
			for file, text := range map[string]string{keeperfile.CPUManagerFile: row.cpu, keeperfile.MemoryManagerFile: row.memory} {
				if text != "" {
					write(t, root, file, text)
				}
			}
			err := checkManagers(os.DirFS(root), testBoot, "/k")
			if (err == nil) != (row.want == nil) {
				t.Fatalf("error %v, want %q", err, row.want)
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || reasonOf(err) != ReasonKubeletManager {
					t.Errorf("error %v, want one line with %q", err, want)
				}
			}
		})
	}
}

// otherSlice is a slice of this node, of a driver whose only device has the capacities.
func otherSlice(driver string, capacities ...resourceapi.QualifiedName) *resourceapi.ResourceSlice {
	device := resourceapi.Device{
		Name:       "device-0",
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"dra.cpu/numaNodeID": {IntValue: new(int64)}},
		Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	for _, name := range capacities {
		device.Capacity[name] = resourceapi.DeviceCapacity{Value: resource.MustParse("4")}
	}
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "of-" + driver},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: new(node), Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourceapi.Device{device},
		},
	}
}

// published says how many devices were ever sent to be stored, whatever became
// of them later.
func published(c *cluster) (devices int) {
	for _, action := range c.Actions() {
		var slice *resourceapi.ResourceSlice
		switch action := action.(type) {
		case clienttesting.CreateActionImpl:
			if len(action.CreateOptions.DryRun) == 0 {
				slice, _ = action.Object.(*resourceapi.ResourceSlice)
			}
		case clienttesting.UpdateActionImpl:
			slice, _ = action.Object.(*resourceapi.ResourceSlice)
		}
		if slice != nil && slice.Spec.Driver == "dra.numa" {
			devices += len(slice.Spec.Devices)
		}
	}
	return devices
}

// toldEvents lists what was told of the node, as type, reason and note.
func toldEvents(t *testing.T, c *cluster) (told []string) {
	t.Helper()
	list, err := c.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b eventsapi.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	for _, event := range list.Items {
		if event.Regarding.Kind != "Node" || event.Regarding.Name != node {
			t.Errorf("event about %v", event.Regarding)
		}
		told = append(told, event.Type+" "+event.Reason+" "+event.Note)
	}
	return told
}

// waitForEvents is for those that come after an answer of /readyz.
func waitForEvents(t *testing.T, c *cluster, want int) (told []string) {
	t.Helper()
	if !until(5*time.Second, func() bool { told = toldEvents(t, c); return len(told) == want }) {
		t.Fatalf("events %q, want %d", told, want)
	}
	return told
}

func TestStaticManagerWithdrawsAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c, func(root string) { write(t, root, "cpu_manager_state", cpuNone) })
		if told := toldEvents(t, c); told != nil {
			t.Errorf("events %q at a start without a problem", told)
		}

		write(t, p.root, "cpu_manager_state", cpuStatic)
		const reason = `kubelet's CPU manager policy is "static"`
		waitNotReady(t, p, reason, 2*guardInterval)
		if !until(5*time.Second, func() bool { return len(devicesOf(t, c)) == 0 }) {
			t.Fatal("devices are still published 5 s after")
		}

		write(t, p.root, "cpu_manager_state", cpuNone)
		waitReady(t, p, 2*guardInterval)
		if devices := devicesOf(t, c); len(devices) == 0 {
			t.Error("no devices are published again")
		}
		told := waitForEvents(t, c, 2)
		if !strings.HasPrefix(told[0], "Warning NUMADriverNotReady "+reason) || !strings.HasPrefix(told[1], "Normal NUMADriverReady ") {
			t.Errorf("events %q, want a warning with the reason, then that it is over", told)
		}
	})
}

func TestStartBesideAnotherCPUDriverPublishesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		other := otherSlice("dra.cpu", "dra.cpu/cpu")
		if err := c.Tracker().Add(other); err != nil {
			t.Fatal(err)
		}
		p := startPublishing(t, c)
		waitNotReady(t, p, `driver "dra.cpu" publishes CPUs of this node`, 10*time.Second)
		time.Sleep(2 * firstRetry) // the reason is known before the pool is empty
		if devices := published(c); devices > 0 {
			t.Errorf("published %d devices", devices)
		}
		if err := c.ResourceV1().ResourceSlices().Delete(t.Context(), other.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		waitNotReady(t, p, `driver "dra.cpu" published CPUs of this node and may only be restarting`, 10*time.Second)
		p.guards.rivals.mu.Lock()
		p.guards.rivals.now = func() time.Time { return time.Now().Add(rivalsLast) }
		p.guards.rivals.mu.Unlock()
		waitReady(t, p, 10*time.Second)
		if published(c) == 0 {
			t.Error("published no devices once it was gone")
		}
		waitForEvents(t, c, 3)
	})
}

// A daemon that starts must not take back what its predecessor published,
// because claims are allocated from it, only because it has not listed it yet.
func TestRestartLeavesSlicesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		p.cancel()
		p.running.Wait()
		c.ClearActions()
		c.slow.Store(true)
		startReady(t, c)
		for _, action := range c.Actions() {
			if verb := action.GetVerb(); verb != "list" && verb != "watch" && verb != "get" {
				t.Errorf("%s %s at a start with slices as they should be", verb, action.GetResource().Resource)
			}
		}
	})
}

// After a boot, the daemon may be there before the keeper, or a claim before both.
func TestSlicesStayUntilTheKeeperHasLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		c.ClearActions()
		if err := os.Remove(filepath.Join(p.root, keeperfile.PoliciesName)); err != nil {
			t.Fatal(err)
		}
		waitNotReady(t, p, keeperfile.ErrUnknown.Error(), 2*guardInterval)
		if devices := devicesOf(t, c); len(devices) == 0 {
			t.Error("devices are withdrawn")
		}
		s := &claimServer{Plugin: &Plugin{driver: recoveredDriver(t)}, client: c, guards: p.guards}
		if _, _, err := s.prepare(t.Context(), allocated("early", "uid-1")); !errors.Is(err, keeperfile.ErrUnknown) {
			t.Errorf("a new claim: error %v", err)
		}
		keep(t, p.root)
		waitReady(t, p, 2*guardInterval)
		if told := toldEvents(t, c); told != nil {
			t.Errorf("events %q", told)
		}
		if devices := published(c); devices > 0 {
			t.Errorf("%d devices were published again", devices)
		}
	})
}

// An API server that refuses an event gets it later.
func TestEventIsToldOnce(t *testing.T) {
	c := newCluster()
	refused := true
	refuse(c.Clientset, "create", "events", func(string) error {
		if refused {
			return errors.New("no")
		}
		return nil
	})
	told := events{client: c, nodeName: node, pace: eventPace(), told: map[string]string{}}
	problem := guardError{text: strings.Repeat("long ", 1000)}
	for _, tell := range []struct {
		problem error
		refuse  bool
		want    int // events so far
	}{
		{errNotListed, false, 0},
		{nil, false, 0},
		{problem, true, 0},
		{problem, false, 1},
		{problem, false, 1},
		{errNotListed, false, 1},
		{problem, false, 1},
		{&droppedError{pool: node}, false, 2},
		{nil, true, 2},
		{nil, false, 3},
		{nil, false, 3},
		{problem, false, 4},
	} {
		refused = tell.refuse
		told.problem(t.Context(), tell.problem)
		if got := len(toldEvents(t, c)); got != tell.want {
			t.Fatalf("%d events after %.20v, want %d", got, tell.problem, tell.want)
		}
	}
	for _, text := range toldEvents(t, c) {
		if len(text) > 1100 {
			t.Errorf("an event of %d bytes", len(text))
		}
	}
}
