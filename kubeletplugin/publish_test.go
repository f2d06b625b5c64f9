package kubeletplugin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const node = "node-1"

// cluster is an API server whose gate DRAConsumableCapacity can be off.
type cluster struct {
	*fake.Clientset
	gateOff atomic.Bool
	noLists atomic.Bool  // it drops lists, and then refuses attributes without a value
	events  atomic.Int32 // created so far
	version atomic.Int64 // of the slice that was stored last
	slow    atomic.Bool  // to list the slices of all drivers
	late    atomic.Int64 // how long the helper waits before it writes slices, in ns
	tardy   atomic.Int64 // how long a dry run takes, in ns

	rehearsed func() error // the result of the rehearsal
	fatal     func(error)  // nil: the test fails
}

func newCluster() *cluster {
	c := &cluster{Clientset: fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, UID: "node-uid"}})}
	c.PrependReactor("create", "resourceslices", c.admit)
	c.PrependReactor("update", "resourceslices", c.admit)
	c.PrependReactor("list", "resourceslices", c.list)
	c.PrependReactor("create", "events", c.nameEvent)
	return c
}

// list looks at field selectors, as the real API server does and the fake does
// not: the controller of our slices must not see another driver's.
func (c *cluster) list(action clienttesting.Action) (handled bool, _ runtime.Object, _ error) {
	object, err := c.Tracker().List(action.GetResource(), resourceapi.SchemeGroupVersion.WithKind("ResourceSlice"), "")
	list, ok := object.(*resourceapi.ResourceSliceList)
	if !ok {
		return true, nil, err
	}
	selector := action.(clienttesting.ListAction).GetListRestrictions().Fields
	if _, own := selector.RequiresExactMatch(resourceapi.ResourceSliceSelectorDriver); !own && c.slow.Load() {
		time.Sleep(2 * firstRetry)
	}
	list.Items = slices.DeleteFunc(list.Items, func(slice resourceapi.ResourceSlice) bool {
		return !selector.Matches(fields.Set{
			resourceapi.ResourceSliceSelectorNodeName: *slice.Spec.NodeName,
			resourceapi.ResourceSliceSelectorDriver:   slice.Spec.Driver,
		})
	})
	return true, list, nil
}

// nameEvent does what the real API server does with generateName.
func (c *cluster) nameEvent(action clienttesting.Action) (handled bool, _ runtime.Object, _ error) {
	event := action.(clienttesting.CreateAction).GetObject().(*eventsapi.Event)
	event.Name = event.GenerateName + strconv.Itoa(int(c.events.Add(1)))
	return false, nil, nil
}

// admit does what the real API server does before it stores: drop the fields of
// switched-off features, and make up a name and a version that no slice has had.
// The controller needs them to know a slice from its former states. A dry run ends
// there.
func (c *cluster) admit(action clienttesting.Action) (handled bool, _ runtime.Object, _ error) {
	slice := action.(interface{ GetObject() runtime.Object }).GetObject().(*resourceapi.ResourceSlice)
	slice.ResourceVersion = strconv.FormatInt(c.version.Add(1), 10)
	if slice.Name == "" {
		slice.Name = slice.GenerateName + slice.ResourceVersion
	}
	if c.gateOff.Load() {
		for i := range slice.Spec.Devices {
			slice.Spec.Devices[i].AllowMultipleAllocations = nil
			for name, capacity := range slice.Spec.Devices[i].Capacity {
				capacity.RequestPolicy = nil
				slice.Spec.Devices[i].Capacity[name] = capacity
			}
		}
	}
	if _, update := action.(clienttesting.UpdateActionImpl); c.noLists.Load() && !update && slices.ContainsFunc(slice.Spec.Devices, driver.HasList) {
		return true, nil, notValid()
	}
	create, ok := action.(clienttesting.CreateActionImpl)
	return ok && len(create.CreateOptions.DryRun) > 0, slice, nil
}

// tardy is a client whose dry runs take as long as the cluster says. A reactor cannot do
// that: all requests wait for it.
type tardy struct{ *cluster }

func (t tardy) ResourceV1() resourceclient.ResourceV1Interface {
	return tardyGroup{t.cluster.ResourceV1(), t.cluster}
}

type tardyGroup struct {
	resourceclient.ResourceV1Interface
	cluster *cluster
}

func (t tardyGroup) ResourceSlices() resourceclient.ResourceSliceInterface {
	return tardySlices{t.ResourceV1Interface.ResourceSlices(), t.cluster}
}

type tardySlices struct {
	resourceclient.ResourceSliceInterface
	cluster *cluster
}

func (t tardySlices) Create(ctx context.Context, slice *resourceapi.ResourceSlice, options metav1.CreateOptions) (*resourceapi.ResourceSlice, error) {
	if len(options.DryRun) > 0 {
		time.Sleep(time.Duration(t.cluster.tardy.Load()))
	}
	return t.ResourceSliceInterface.Create(ctx, slice, options)
}

func testMachine() numa.Machine {
	cpus := cpuset.New(0, 1, 2, 3)
	machine := numa.Machine{Online: cpus, Zones: []numa.Zone{{CPUs: cpus, MemoryBytes: new(uint64(1 << 30))}}}
	for cpu := range cpus.All() {
		machine.Cores = append(machine.Cores, numa.Core{CPUs: cpuset.New(cpu)})
	}
	return machine
}

// testDevices returns the devices of the test machine. Its only zone may have a fault.
func testDevices(fault ...string) []resourceapi.Device {
	faults := zones.Faults{}
	for _, value := range fault {
		faults[0] = value
	}
	return driver.Devices(testMachine(), driver.Config{Exclusivity: driver.ExclusivityKernel}, faults)
}

// publishing is a publisher that runs.
type publishing struct {
	*publisher
	cancel context.CancelFunc
	root   string // of the kubelet, and the driver's
}

// guardInterval is how often the guards look.
const guardInterval = 5 * time.Second

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// startPublishing runs the publisher with the real controller behind it, and a
// kubelet's root directory that is empty but for what is done to it before.
func startPublishing(t *testing.T, c *cluster, before ...func(kubeletRoot string)) publishing {
	t.Helper()
	var controller *resourceslice.Controller
	publish := func(ctx context.Context, resources resourceslice.DriverResources) (err error) {
		if late := time.Duration(c.late.Load()); controller != nil && late > 0 {
			time.AfterFunc(late, func() { controller.Update(&resources) })
			return nil
		}
		if controller != nil {
			controller.Update(&resources)
			return nil
		}
		controller, err = resourceslice.StartController(ctx, resourceslice.Options{
			DriverName: driver.Name, KubeClient: c, Resources: &resources,
			Owner: &resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: node},
			// The default one waits by the clock of outside the bubble.
			ErrorHandler: func(_ context.Context, err error, message string) { t.Logf("%s: %v", message, err) },
		})
		return err
	}
	root := t.TempDir()
	keep(t, root)
	for _, change := range before {
		change(root)
	}
	guards := &guards{os.DirFS(root), testBoot, root, newNodeSlices(c, node), newRivals(nil, t.TempDir(), driver.Config{NodeName: node})}
	p := newPublisher(tardy{c}, node, &Readiness{}, guards, eventPace(), withoutConflictsOfNode, publish)
	p.rehearsed = c.rehearsed
	if p.fatal = c.fatal; p.fatal == nil {
		p.fatal = func(err error) { t.Errorf("fatal: %v", err) }
	}
	p.whyPaused = func() string { return WhyPaused(false, root) }
	p.noLists = func() { p.set(testDevices()) } // as the driver's next Publish does
	p.suspects = driver.SuspectsOf
	p.set(testDevices())
	ctx, cancel := context.WithCancel(t.Context())
	p.start(ctx)
	p.running.Go(func() {
		for ; ctx.Err() == nil; sleep(ctx, guardInterval) {
			p.lookAtGuards()
		}
	})
	t.Cleanup(func() {
		cancel()
		p.running.Wait()
		controller.Stop()
	})
	return publishing{p, cancel, root}
}

// startReady runs the publisher, and waits until it is ready.
func startReady(t *testing.T, c *cluster, before ...func(kubeletRoot string)) publishing {
	t.Helper()
	p := startPublishing(t, c, before...)
	waitReady(t, p, 10*time.Second)
	return p
}

// until waits until the condition is true, and reports whether that took no longer than
// within.
func until(within time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(within); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// waitReady waits until /readyz says that the plugin is ready.
func waitReady(t *testing.T, p publishing, within time.Duration) {
	t.Helper()
	eventually(t, p, http.StatusOK, "ok", within)
}

// waitNotReady waits until /readyz says that the plugin is not ready, and why.
func waitNotReady(t *testing.T, p publishing, why string, within time.Duration) {
	t.Helper()
	eventually(t, p, http.StatusServiceUnavailable, why, within)
}

// eventually waits for a readiness answer that contains the text.
func eventually(t *testing.T, p publishing, status int, text string, within time.Duration) {
	t.Helper()
	var answer *httptest.ResponseRecorder
	if !until(within, func() bool {
		answer = httptest.NewRecorder()
		p.readiness.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return answer.Code == status && strings.Contains(answer.Body.String(), text)
	}) {
		t.Fatalf("after %s /readyz answers %d %q, want %d with %q", within, answer.Code, answer.Body, status, text)
	}
}

func devicesOf(t *testing.T, c *cluster) (devices []resourceapi.Device) {
	t.Helper()
	slices, err := c.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, slice := range slices.Items {
		devices = append(devices, slice.Spec.Devices...)
	}
	return devices
}

func TestSwitchedOffGateIsNamedAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.gateOff.Store(true)
		p := startPublishing(t, c)
		waitNotReady(t, p, "feature gate DRAConsumableCapacity", 10*time.Second)
		if devices := devicesOf(t, c); len(devices) > 0 {
			t.Errorf("published %v, want nothing while fields are dropped", devices)
		}
		c.gateOff.Store(false)
		waitReady(t, p, 30*time.Second)
		if devices := devicesOf(t, c); !resourceslice.DevicesDeepEqual(devices, testDevices()) {
			t.Errorf("published %v", devices)
		}
	})
}

// The gate of lists can be switched off while the daemon runs. Then the devices do without.
func TestListsThatAreNotTakenAnyMoreAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		withList := func(fault ...string) []resourceapi.Device {
			devices := testDevices(fault...)
			devices[0].Attributes[deviceclasses.AttributeNUMANode] = resourceapi.DeviceAttribute{IntValues: []int64{0, 1}}
			return devices
		}
		c := newCluster()
		p := startReady(t, c)
		stored := func(want []resourceapi.Device) {
			t.Helper()
			if !until(30*time.Second, func() bool { return resourceslice.DevicesDeepEqual(devicesOf(t, c), want) }) {
				t.Fatalf("published %v, want %v", devicesOf(t, c), want)
			}
			waitReady(t, p, time.Second)
		}
		p.set(withList())
		stored(withList())
		c.noLists.Store(true)
		p.set(withList(deviceclasses.FaultBlocked))
		stored(testDevices())
	})
}

// A daemon that could not prepare a claim is not ready, so that a rolling update stops. Its
// devices stay published: the kubelet repeats what fails.
func TestFailedRehearsalIsNotReadyAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		var failed atomic.Bool
		failed.Store(true)
		c.rehearsed = func() error {
			if failed.Load() {
				return errors.New("run numa-pin: exit status 2")
			}
			return nil
		}
		p := startPublishing(t, c)
		waitNotReady(t, p, "run numa-pin: exit status 2", 10*time.Second)
		if problems := p.readiness.Problems(); len(problems) != 1 || problems[0].Reason != ReasonRehearsal {
			t.Errorf("problems %v, want %s", problems, ReasonRehearsal)
		}
		if devices := devicesOf(t, c); !resourceslice.DevicesDeepEqual(devices, testDevices()) {
			t.Errorf("published %v", devices)
		}
		failed.Store(false)
		waitReady(t, p, 30*time.Second)
		told := waitForEvents(t, c, 2)
		if told[0] != "Warning NUMADriverNotReady run numa-pin: exit status 2" || !strings.HasPrefix(told[1], "Normal NUMADriverReady ") {
			t.Errorf("events %q, want a warning with the reason, then that it is over", told)
		}
	})
}

// What is published may change, and is not written again when it does not.
func TestNewDevicesArePublishedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		faulty := testDevices(deviceclasses.FaultPartitionInvalid)
		p.set(faulty)
		if !until(5*time.Second, func() bool { return resourceslice.DevicesDeepEqual(devicesOf(t, c), faulty) }) {
			t.Fatalf("after 5 s the slices have %v", devicesOf(t, c))
		}
		waitReady(t, p, 10*time.Second)
		if events := c.events.Load(); events > 0 {
			t.Errorf("%d events on the node, which was ready all the time", events)
		}
		writes := c.writes()
		p.set(slices.Clone(faulty))
		time.Sleep(2 * firstRetry)
		if again := c.writes(); again != writes {
			t.Errorf("%d writes of the same devices", again-writes)
		}
	})
}

// writes counts all requests that change something.
func (c *cluster) writes() (count int) {
	for _, action := range c.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" && verb != "watch" {
			count++
		}
	}
	return count
}

// A kubelet that starts deletes every slice of its node.
func TestDeletedSlicesAreBackInTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		slices, err := c.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(slices.Items) != 1 {
			t.Fatalf("slices %v, %v", slices, err)
		}
		if err := c.ResourceV1().ResourceSlices().Delete(t.Context(), slices.Items[0].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if !until(2*time.Second, func() bool { return len(devicesOf(t, c)) > 0 }) {
			t.Fatal("no slices after 2 s")
		}
		waitReady(t, p, 10*time.Second)
	})
}

// While the helper writes the slices, they are not rehearsed again. It takes longer if the
// API server is overloaded, and so does a dry run.
func TestSlicesThatComeLateAreRehearsedOnce(t *testing.T) {
	for name, load := range map[string]struct{ late, tardy time.Duration }{
		"as ever":    {3 * time.Second, 0},
		"overloaded": {40 * time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				p := startReady(t, c)
				c.late.Store(int64(load.late))
				c.tardy.Store(int64(load.tardy))
				time.Sleep(rehearsalHolds)
				before := c.writes() - c.stored()
				for _, slice := range p.slices.own() {
					if err := c.ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(load.tardy + load.late + time.Second)
				if len(devicesOf(t, c)) == 0 {
					t.Error("no slices")
				}
				if rehearsed := c.writes() - c.stored() - before - 1; rehearsed != 1 { // less the deletion
					t.Errorf("the slices were rehearsed %d times, want once", rehearsed)
				}
			})
		})
	}
}

// What the rehearsal said does not hold once slices are stored otherwise.
func TestStoredSlicesOverruleTheRehearsal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.tardy.Store(int64(time.Minute)) // the rehearsal holds for long
		p := startPublishing(t, c)
		waitReady(t, p, 2*time.Minute)
		c.tardy.Store(0)
		c.gateOff.Store(true)
		for _, slice := range p.slices.own() {
			if err := c.ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		waitNotReady(t, p, gateConsumableCapacity, 10*time.Second)
		if !until(10*time.Second, func() bool { return len(devicesOf(t, c)) == 0 }) {
			t.Errorf("published %v, want nothing while fields are dropped", devicesOf(t, c))
		}
	})
}

// A fault that comes and goes must not keep the API server busy.
func TestFlickerIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		faulty := testDevices(deviceclasses.FaultPartitionInvalid)
		before := c.stored()
		for i := range 40 {
			p.set([][]resourceapi.Device{faulty, testDevices()}[i%2])
			time.Sleep(50 * time.Millisecond)
		}
		const most = 2 * (sliceBurst - 1) // a fault has to be over before the next one is written
		if writes := c.stored() - before; writes == 0 || writes > most {
			t.Errorf("%d writes of 40 changes in 2 s, want 1 to %d", writes, most)
		}
		waitReady(t, p, 10*time.Second)
		// Slices that another program deletes are back at once all the same.
		for _, slice := range p.slices.own() {
			if err := c.ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if !until(2*time.Second, func() bool { return len(devicesOf(t, c)) > 0 }) {
			t.Fatal("no slices after 2 s")
		}
	})
}

// A new order follows what claims hold, and wakes all pods that wait for devices.
func TestNewOrdersArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		all := append(testDevices(), offered("numa-1", 4, 0, ""), offered("numa-2", 4, 0, ""))
		first := func(i int) []resourceapi.Device {
			return slices.Concat(all[i:i+1], slices.Delete(slices.Clone(all), i, i+1))
		}
		p.set(all)
		becomes(t, p, "numa-0 numa-1 numa-2")
		before := c.stored()
		for i := range 40 {
			p.set(first(i % 2))
			time.Sleep(50 * time.Millisecond)
		}
		if writes := c.stored() - before; writes != orderBurst {
			t.Errorf("%d writes of 40 orders in 2 s, want %d", writes, orderBurst)
		}
		if problems := p.readiness.Problems(); len(problems) > 0 {
			t.Errorf("while an order waits: %v", problems)
		}
		// A fault does not wait for it, and is written with the newest order.
		tainted := slices.Clone(first(2))
		tainted[2] = offered("numa-1", 4, 0, resourceapi.DeviceTaintEffectNoSchedule)
		p.set(tainted)
		becomes(t, p, "numa-2 numa-0 numa-1")
		before = c.stored()
		p.set(slices.Concat(tainted[1:2], tainted[:1], tainted[2:]))
		time.Sleep(orderPeriod / 2)
		if names(p) != "numa-2 numa-0 numa-1" {
			t.Errorf("%q are published before the period is over", names(p))
		}
		becomes(t, p, "numa-0 numa-2 numa-1")
		time.Sleep(2 * orderPeriod)
		if writes := c.stored() - before; writes != 1 {
			t.Errorf("%d writes of one order, want 1", writes)
		}
	})
}

// stored counts the writes of slices that are no dry runs.
func (c *cluster) stored() (count int) {
	for _, action := range c.Actions() {
		create, isCreate := action.(clienttesting.CreateActionImpl)
		dryRun := isCreate && len(create.CreateOptions.DryRun) > 0
		if verb := action.GetVerb(); (verb == "create" || verb == "update") && action.GetResource().Resource == "resourceslices" && !dryRun {
			count++
		}
	}
	return count
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slices, events := slicePace(), eventPace()
		for minute, most := range []struct{ slices, events int }{{5, 19}, {2, 10}} {
			var accepted struct{ slices, events int }
			for range 60 {
				if slices.TryAccept() {
					accepted.slices++
				}
				for range 3 {
					if events.TryAccept() {
						accepted.events++
					}
				}
				time.Sleep(time.Second)
			}
			if accepted != most {
				t.Errorf("minute %d: %+v were accepted, want %+v", minute, accepted, most)
			}
		}
	})
}
