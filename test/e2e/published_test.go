package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

const (
	// slicesFollow is how long the slices may take to say what has become of the
	// machine's hugepages and CPUs: the promise of docs/guarantees.md.
	slicesFollow = 5 * time.Second
	// The driver writes so many new states at once, and then one in each pause.
	statesAtOnce, statesPause = 4, 30 * time.Second
)

// slicesWritten knows when the node's slices were written, since the suite began.
var slicesWritten writes

type writes struct {
	mu    sync.Mutex
	times []time.Time
}

func (w *writes) add() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times = append(w.times, time.Now())
}

// since counts the writes after a time.
func (w *writes) since(begin time.Time) (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, written := range w.times {
		if written.After(begin) {
			count++
		}
	}
	return count
}

// watch notes all writes until the suite ends.
func (w *writes) watch() {
	GinkgoHelper()
	version := func(object any) string { return object.(*resourceapi.ResourceSlice).ResourceVersion }
	informSlices(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.add() },
		UpdateFunc: func(before, after any) {
			if version(before) != version(after) {
				w.add()
			}
		},
	})
}

// informSlices tells the handlers of the node's slices, until the spec or the suite ends.
func informSlices(handlers cache.ResourceEventHandlerFuncs) {
	GinkgoHelper()
	factory := informers.NewSharedInformerFactoryWithOptions(cluster.Kubernetes, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = slicesOfNode().FieldSelector }))
	_, err := factory.Resource().V1().ResourceSlices().Informer().AddEventHandler(handlers)
	Expect(err).NotTo(HaveOccurred())
	over, end := context.WithCancel(context.Background())
	factory.StartWithContext(over)
	DeferCleanup(func() { end(); factory.Shutdown() })
}

// expectPublished waits, as long as slices may lag behind the machine, until a
// device of the node is what it should be.
func expectPublished(ctx context.Context, name, what string, is func(resourceapi.Device) bool) {
	GinkgoHelper()
	begin := time.Now()
	waitPublished(ctx, name, what, is)
	took, promised := time.Since(begin), slicesFollow
	// The driver makes those wait whose devices change all the time, as specs do that
	// follow each other.
	if slicesWritten.since(begin.Add(-statesAtOnce*statesPause)) >= statesAtOnce {
		promised += statesPause
	}
	expectTimely(fmt.Sprintf("device %s is published with %s after", name, what), took, promised)
}

// waitPublished waits until a device of the node is what it should be.
func waitPublished(ctx context.Context, name, what string, is func(resourceapi.Device) bool) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		devices, err := nodeDevices(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		for _, device := range devices {
			if device.Name == name {
				g.Expect(is(device)).To(BeTrue(), "device %s has taints %v, capacity %v", name, device.Taints, device.Capacity)
				return
			}
		}
		g.Expect(name).To(BeEmpty(), "device is not published")
	}).Should(Succeed(), "device %s is not published with %s", name, what)
}

// nodeDevices are all that the node publishes.
func nodeDevices(ctx context.Context) (devices []resourceapi.Device, err error) {
	list, err := cluster.Kubernetes.ResourceV1().ResourceSlices().List(ctx, slicesOfNode())
	if err != nil {
		return nil, err
	}
	for _, slice := range list.Items {
		devices = append(devices, slice.Spec.Devices...)
	}
	return devices, nil
}

// offers returns what reports whether a device has a capacity of so much, and is as the
// others say.
func offers(capacity resourceapi.QualifiedName, amount int64, also ...func(resourceapi.Device) bool) func(resourceapi.Device) bool {
	return func(device resourceapi.Device) bool {
		value := device.Capacity[capacity].Value
		return value.Value() == amount && !slices.ContainsFunc(also, func(is func(resourceapi.Device) bool) bool { return !is(device) })
	}
}

// attribute is what a device of this driver says of itself, as text, and "" if it says
// nothing.
func attribute(device resourceapi.Device, name resourceapi.QualifiedName) string {
	switch value := deviceclasses.Attribute(device.Attributes, name); {
	case value.StringValue != nil:
		return *value.StringValue
	case value.IntValue != nil:
		return strconv.FormatInt(*value.IntValue, 10)
	case value.BoolValue != nil:
		return strconv.FormatBool(*value.BoolValue)
	}
	return ""
}

func untainted(device resourceapi.Device) bool { return !tainted(device) }

// tainted reports whether a device takes no new claims because of a fault.
func tainted(device resourceapi.Device) bool {
	for _, taint := range device.Taints {
		if taint.Key == driverName+"/fault" && taint.Effect == resourceapi.DeviceTaintEffectNoSchedule {
			return true
		}
	}
	return false
}

func slicesOf(driver string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorDriver + "=" + driver}
}

func slicesOfNode() metav1.ListOptions { return slicesOn(node.name) }

func slicesOn(nodeName string) metav1.ListOptions {
	ours := slicesOf(driverName)
	ours.FieldSelector += "," + resourceapi.ResourceSliceSelectorNodeName + "=" + nodeName
	return ours
}

// slicesGap returns how long the node was without a slice after the deletion
// that disturb brings about.
func slicesGap(ctx context.Context, disturb func()) time.Duration {
	GinkgoHelper()
	events, err := cluster.Kubernetes.ResourceV1().ResourceSlices().Watch(ctx, slicesOfNode())
	Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	disturb()
	there, timeout := map[string]bool{}, time.After(limit(eventuallyTimeout))
	var gone time.Time
	for {
		select {
		case event, open := <-events.ResultChan():
			Expect(open).To(BeTrue(), "the watch of slices has ended")
			slice, ok := event.Object.(*resourceapi.ResourceSlice)
			Expect(ok).To(BeTrue(), "watch of slices: %v", event.Object)
			if event.Type == apiwatch.Deleted {
				delete(there, slice.Name)
			} else {
				there[slice.Name] = true
			}
			switch {
			case event.Type == apiwatch.Deleted && len(there) == 0:
				gone = time.Now()
			case len(there) > 0 && !gone.IsZero():
				return time.Since(gone)
			}
		case <-timeout:
			Fail("slices were not deleted, or are not back")
		}
	}
}
