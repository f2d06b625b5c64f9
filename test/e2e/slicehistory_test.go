package e2e

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// sliceHistory is what has become of the slices of a node. Handlers of an informer tell it.
type sliceHistory struct {
	mu      sync.Mutex
	there   map[string]string // resource versions of slices by name
	taints  map[string]string // of devices by name, as JSON; they stay while a device is away
	gone    time.Time         // when the last slice went; zero while there is one
	longest time.Duration     // without any slice, in a time that has ended
	writes  int               // slices that were created, changed or deleted
	changes int               // devices whose taints became others
}

// set notes that a slice was created or changed.
func (h *sliceHistory) set(object any, now time.Time) {
	slice, ok := object.(*resourceapi.ResourceSlice)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.there == nil {
		h.there, h.taints = map[string]string{}, map[string]string{}
	}
	if h.there[slice.Name] == slice.ResourceVersion { // an informer tells all slices again
		return
	}
	if !h.gone.IsZero() {
		h.longest = max(h.longest, now.Sub(h.gone))
		h.gone = time.Time{}
	}
	h.there[slice.Name] = slice.ResourceVersion
	h.writes++
	for _, device := range slice.Spec.Devices {
		text, _ := json.Marshal(device.Taints) // plain values: it cannot fail
		before, known := h.taints[device.Name]
		if known && before != string(text) || !known && len(device.Taints) > 0 {
			h.changes++
		}
		h.taints[device.Name] = string(text)
	}
}

// remove notes that a slice was deleted.
func (h *sliceHistory) remove(object any, now time.Time) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	slice, ok := object.(*resourceapi.ResourceSlice)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.there, slice.Name)
	h.writes++
	if len(h.there) == 0 {
		h.gone = now
	}
}

// known reports whether there is a slice.
func (h *sliceHistory) known() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.there) > 0
}

// forget begins to count: what there is was there before.
func (h *sliceHistory) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.longest, h.writes, h.changes = 0, 0, 0
}

// summary returns the longest time without any slice until now, and how often slices were
// written and taints of devices changed.
func (h *sliceHistory) summary(now time.Time) (longest time.Duration, writes, changes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	longest = h.longest
	if !h.gone.IsZero() {
		longest = max(longest, now.Sub(h.gone))
	}
	return longest, h.writes, h.changes
}

func TestSliceHistory(t *testing.T) {
	slice := func(name, version string, taints ...resourceapi.DeviceTaint) *resourceapi.ResourceSlice {
		device := resourceapi.Device{Name: "zone", Taints: taints}
		return &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version},
			Spec:       resourceapi.ResourceSliceSpec{Devices: []resourceapi.Device{device}},
		}
	}
	fault := resourceapi.DeviceTaint{Key: "fault", Effect: resourceapi.DeviceTaintEffectNoSchedule}
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	var h sliceHistory
	expect := func(second int, longest time.Duration, writes, changes int) {
		t.Helper()
		if l, w, c := h.summary(at(second)); l != longest || w != writes || c != changes {
			t.Errorf("at %d: %s without slices, %d writes, %d changes of taints; want %s, %d, %d", second, l, w, c, longest, writes, changes)
		}
	}
	if h.known() {
		t.Error("slices are known at the begin")
	}
	h.set(slice("a", "1"), at(0))
	if !h.known() {
		t.Error("no slice is known")
	}
	h.forget()
	h.set(slice("a", "1"), at(1)) // told again
	expect(1, 0, 0, 0)
	h.set(slice("b", "2"), at(2)) // the next generation comes before the old one goes
	h.remove(slice("a", "1"), at(3))
	expect(9, 0, 2, 0)
	h.remove(cache.DeletedFinalStateUnknown{Obj: slice("b", "2")}, at(10))
	expect(13, 3*time.Second, 3, 0)
	h.set(slice("c", "3", fault), at(15))
	expect(20, 5*time.Second, 4, 1)
	h.set(slice("c", "4"), at(21))
	expect(22, 5*time.Second, 5, 2)
	h.remove(slice("c", "4"), at(23))
	h.set(slice("d", "5"), at(24)) // without taints, as before
	expect(30, 5*time.Second, 7, 2)
}
