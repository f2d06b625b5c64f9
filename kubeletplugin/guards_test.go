package kubeletplugin

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	eventsapi "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// The checkpoints that a kubelet 1.37.1 and its predecessors write.
const (
	cpuNone     = `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`
	cpuStatic   = `{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152}`
	cpuNoneV4   = `{"policyName":"none","defaultCpuSet":"","checksum":1,"data":"{\"policyName\":\"none\",\"defaultCpuSet\":\"\"}","dataChecksum":2}`
	cpuStaticV4 = `{"checksum":1,"data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0-7\"}","dataChecksum":2}`
	memNone     = `{"policyName":"None","machineState":{},"checksum":4236770233}`
	memStatic   = `{"policyName":"Static","machineState":{"0":{"numberOfAssignments":0}},"checksum":1}`
)

// write puts a state file in place as the kubelet does, whole.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestManagersOfTheKubelet(t *testing.T) {
	for name, row := range map[string]struct {
		cpu, memory string // no file if empty
		want        []string
	}{
		"no files":        {"", "", nil},
		"none":            {cpuNone, memNone, nil},
		"none since 1.37": {cpuNoneV4, "", nil},
		"static CPUs": {cpuStatic, memNone, []string{
			`kubelet's CPU manager policy is "static"`, "set cpuManagerPolicy: none", "delete ROOT/cpu_manager_state",
		}},
		"static CPUs since 1.37": {cpuStaticV4, "", []string{`kubelet's CPU manager policy is "static"`}},
		"static memory": {"", memStatic, []string{
			`kubelet's memory manager policy is "Static"`, "set memoryManagerPolicy: None", "delete ROOT/memory_manager_state",
		}},
		"both":       {cpuStatic, memStatic, []string{"cpu_manager_state", "; ", "memory_manager_state"}},
		"torn":       {cpuStatic[:9], "", []string{"parse ROOT/cpu_manager_state: unexpected end of JSON input"}},
		"torn data":  {`{"data":"{"}`, "", []string{"parse data of ROOT/cpu_manager_state"}},
		"no policy":  {"{}", "", []string{"parse ROOT/cpu_manager_state: no policyName"}},
		"empty file": {" ", "", []string{"parse ROOT/cpu_manager_state"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range map[string]string{"cpu_manager_state": row.cpu, "memory_manager_state": row.memory} {
				if text != "" {
					write(t, root, file, text)
				}
			}
			err := checkManagers(root)
			if (err == nil) != (row.want == nil) {
				t.Fatalf("error %v, want %q", err, row.want)
			}
			for _, want := range row.want {
				if want = strings.ReplaceAll(want, "ROOT", root); !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
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
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if told = toldEvents(t, c); len(told) == want {
			return told
		}
	}
	t.Fatalf("events %q, want %d", told, want)
	return nil
}

func TestStaticManagerWithdrawsAndHeals(t *testing.T) {
	c := newCluster()
	p := startPublishing(t, c, func(root string) { write(t, root, "cpu_manager_state", cpuNone) })
	eventually(t, p, http.StatusOK, "ok", 10*time.Second)
	if told := toldEvents(t, c); told != nil {
		t.Errorf("events %q at a start without a problem", told)
	}

	write(t, p.guards.kubeletRoot, "cpu_manager_state", cpuStatic)
	const reason = `kubelet's CPU manager policy is "static"`
	eventually(t, p, http.StatusServiceUnavailable, reason, 2*guardInterval)
	for deadline := time.Now().Add(5 * time.Second); len(devicesOf(t, c)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("devices are still published 5 s after")
		}
	}

	write(t, p.guards.kubeletRoot, "cpu_manager_state", cpuNone)
	eventually(t, p, http.StatusOK, "ok", 2*guardInterval)
	if devices := devicesOf(t, c); len(devices) == 0 {
		t.Error("no devices are published again")
	}
	told := waitForEvents(t, c, 2)
	if !strings.HasPrefix(told[0], "Warning NUMADriverNotReady "+reason) || !strings.HasPrefix(told[1], "Normal NUMADriverReady ") {
		t.Errorf("events %q, want a warning with the reason, then that it is over", told)
	}
}

func TestStartBesideAnotherCPUDriverPublishesNothing(t *testing.T) {
	c := newCluster()
	other := otherSlice("dra.cpu", "dra.cpu/cpu")
	if err := c.Tracker().Add(other); err != nil {
		t.Fatal(err)
	}
	p := startPublishing(t, c)
	eventually(t, p, http.StatusServiceUnavailable, `driver "dra.cpu" publishes CPUs of this node`, 10*time.Second)
	time.Sleep(2 * firstRetry) // the reason is known before the pool is empty
	if devices := published(c); devices > 0 {
		t.Errorf("published %d devices", devices)
	}
	if err := c.ResourceV1().ResourceSlices().Delete(t.Context(), other.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, p, http.StatusServiceUnavailable, `driver "dra.cpu" published CPUs of this node and may only be restarting`, 10*time.Second)
	p.guards.rivals.mu.Lock()
	p.guards.rivals.now = func() time.Time { return time.Now().Add(rivalsLast) }
	p.guards.rivals.mu.Unlock()
	eventually(t, p, http.StatusOK, "ok", 10*time.Second)
	if published(c) == 0 {
		t.Error("published no devices once it was gone")
	}
	waitForEvents(t, c, 3)
}

// A daemon that starts must not take back what its predecessor published,
// because claims are allocated from it, only because it has not listed it yet.
func TestRestartLeavesSlicesAlone(t *testing.T) {
	c := newCluster()
	p := startPublishing(t, c)
	eventually(t, p, http.StatusOK, "ok", 10*time.Second)
	p.cancel()
	p.running.Wait()
	c.ClearActions()
	c.slow.Store(true)
	p = startPublishing(t, c)
	eventually(t, p, http.StatusOK, "ok", 10*time.Second)
	for _, action := range c.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "watch" && verb != "get" {
			t.Errorf("%s %s at a start with slices as they should be", verb, action.GetResource().Resource)
		}
	}
}

// An API server that refuses an event gets it later.
func TestEventIsToldOnce(t *testing.T) {
	c := newCluster()
	refuse := true
	c.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuse, nil, errors.New("no")
	})
	told := events{client: c, nodeName: node, pace: eventPace()}
	problem := guardError(strings.Repeat("long ", 1000))
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
		refuse = tell.refuse
		if err := told.tell(t.Context(), tell.problem); (err != nil) != refuse {
			t.Errorf("error %v, want one: %t", err, refuse)
		}
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
