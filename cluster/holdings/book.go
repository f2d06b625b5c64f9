package holdings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// poolID and deviceID name a pool and a device.
type (
	poolID   struct{ driver, pool string }
	deviceID struct {
		poolID
		name string
	}
)

// book is the devices that are published, and those that claims hold.
type book struct {
	registered map[string]bool              // Nodes
	pods       map[types.UID]*corev1.Pod    // by UID: a name may have been another pod's
	current    []*resourceapi.ResourceSlice // of their pools' newest generations
	missing    map[poolID]string            // what is wrong with a pool; incomplete ones are here
	poolNodes  map[poolID]string            // of pools that are of one node
	counters   map[counterID]*counter
	devices    map[deviceID]*entry
	order      []deviceID // as read
}

// entry is a device.
type entry struct {
	id        deviceID
	published *resourceapi.Device // nil: claims hold it, no slice has it
	node      string              // "" is none
	numaNode  *int64
	socket    *int64
	taints    []Taint
	shares    []Share
}

func newBook(s *snapshot.Snapshot) *book {
	b := &book{
		registered: make(map[string]bool), pods: make(map[types.UID]*corev1.Pod), missing: make(map[poolID]string),
		poolNodes: make(map[poolID]string), counters: make(map[counterID]*counter), devices: make(map[deviceID]*entry),
	}
	for _, node := range s.Nodes {
		b.registered[node.Name] = true
	}
	for _, pod := range s.Pods {
		b.pods[pod.UID] = pod
	}
	b.readPools(s.Slices)
	for _, slice := range b.current {
		b.readSlice(slice, s.TaintRules)
	}
	return b
}

// readPools finds the slices that count: a newer generation replaces all older
// ones.
func (b *book) readPools(published []*resourceapi.ResourceSlice) {
	newest := make(map[poolID]int64)
	for _, slice := range published {
		id := poolOf(slice)
		newest[id] = max(newest[id], slice.Spec.Pool.Generation)
	}
	count, want := make(map[poolID]int64), make(map[poolID]int64)
	for _, slice := range published {
		if id := poolOf(slice); slice.Spec.Pool.Generation == newest[id] {
			b.current = append(b.current, slice)
			count[id]++
			want[id] = max(want[id], slice.Spec.Pool.ResourceSliceCount)
		}
	}
	for id, wanted := range want {
		if count[id] != wanted {
			b.missing[id] = fmt.Sprintf("pool %s of driver %s is incomplete, %d of its %d ResourceSlices are there: it gives no devices", id.pool, id.driver, count[id], wanted)
		}
	}
}

func poolOf(slice *resourceapi.ResourceSlice) poolID {
	return poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}

func (b *book) readSlice(slice *resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule) {
	pool := poolOf(slice)
	if slice.Spec.NodeName != nil {
		b.poolNodes[pool] = *slice.Spec.NodeName
	}
	for _, set := range slice.Spec.SharedCounters {
		for name, value := range set.Counters {
			b.counter(counterID{pool, set.Name, name}).total = &value.Value
		}
	}
	for i := range slice.Spec.Devices {
		device := &slice.Spec.Devices[i]
		id := deviceID{pool, device.Name}
		if b.devices[id] != nil {
			continue // a pool with a name twice gives no devices
		}
		e := &entry{id: id, published: device, taints: taintsOf(id, device, rules)}
		if slice.Spec.NodeName != nil {
			e.node = *slice.Spec.NodeName
		} else if device.NodeName != nil {
			e.node = *device.NodeName
		}
		e.numaNode, e.socket = e.intAttribute(numaNodeAttribute), e.intAttribute(string(deviceclasses.AttributeSocket))
		b.devices[id] = e
		b.order = append(b.order, id)
	}
}

func taintsOf(id deviceID, device *resourceapi.Device, rules []*resourceapi.DeviceTaintRule) []Taint {
	list := []Taint{}
	for _, taint := range device.Taints {
		list = append(list, Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)})
	}
	matches := func(want *string, is string) bool { return want == nil || *want == is }
	for _, rule := range rules {
		selector, taint := rule.Spec.DeviceSelector, rule.Spec.Taint
		if selector != nil && matches(selector.Driver, id.driver) && matches(selector.Pool, id.pool) && matches(selector.Device, id.name) {
			list = append(list, Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect), Rule: rule.Name})
		}
	}
	return list
}

// enter books a share with its device.
func (b *book) enter(share Share) {
	id := deviceID{poolID{share.Driver, share.Pool}, share.Device}
	e := b.devices[id]
	if e == nil {
		e = &entry{id: id, node: share.Node, taints: []Taint{}}
		if mems := share.Mems; mems != nil && mems.Size() == 1 {
			first, _ := mems.First()
			e.numaNode = new(int64(first))
		}
		b.devices[id] = e
		b.order = append(b.order, id)
	}
	if !share.Admin && len(e.shares) == len(e.admins()) {
		b.consume(e) // once, however many share it
	}
	e.shares = append(e.shares, share)
}

func (e *entry) admins() (list []Share) {
	for _, share := range e.shares {
		if share.Admin {
			list = append(list, share)
		}
	}
	return list
}

// poolProblems are about the pools of a node.
func (b *book) poolProblems(node string) (list []string) {
	zones := false
	for id, name := range b.poolNodes {
		if name != node {
			continue
		}
		zones = zones || id.driver == deviceclasses.DriverName
		if why := b.missing[id]; why != "" {
			list = append(list, why)
		}
	}
	slices.Sort(list)
	if !zones {
		list = append(list, "driver "+deviceclasses.DriverName+" publishes nothing here")
	}
	return list
}

// finished is the device with its sums.
func (e *entry) finished(b *book) Device {
	d := Device{
		Driver: e.id.driver, Pool: e.id.pool, Name: e.id.name, Taints: e.taints, Shares: append([]Share{}, e.shares...),
		Attributes: e.attributes(), Resources: e.resources(), Zone: e.isZone(),
	}
	held := len(e.shares) > len(e.admins())
	switch {
	case e.published == nil:
		d.State = StateUnpublished
	case e.isShared():
		d.State = StateShared
		if !held {
			d.State, d.Reason = b.freeOrBlocked(e)
		}
	case held:
		d.State = StateHeld
	default:
		d.State, d.Reason = b.freeOrBlocked(e)
	}
	return d
}

func (b *book) freeOrBlocked(e *entry) (State, string) {
	if b.missing[e.id.poolID] != "" {
		return StateBlocked, "its pool is incomplete"
	}
	if why := b.lacking(e); why != "" {
		return StateBlocked, why
	}
	return StateFree, ""
}

func (e *entry) isShared() bool {
	return e.published != nil && e.published.AllowMultipleAllocations != nil && *e.published.AllowMultipleAllocations
}

// resources are those of which parts are held: an exclusive device has no parts.
func (e *entry) resources() []Resource {
	sums := make(map[string]*Resource)
	if e.isShared() {
		for name, capacity := range e.published.Capacity {
			total := capacity.Value.DeepCopy()
			sums[string(name)] = &Resource{Name: string(name), Total: &total, Held: resource.Quantity{Format: total.Format}}
		}
	}
	for _, share := range e.shares {
		for name, amount := range share.Amounts {
			if sums[name] == nil {
				sums[name] = &Resource{Name: name, Held: resource.Quantity{Format: amount.Format}}
			}
			sums[name].Held.Add(amount)
		}
	}
	return inOrder(sums)
}

// totals are the sums over zones. One of which a zone's total is not known is not
// known.
func totals(zones []Device) []Resource {
	sums := make(map[string]*Resource)
	unknown := make(map[string]bool)
	for i := range zones {
		for _, r := range zones[i].Resources {
			if sums[r.Name] == nil {
				sums[r.Name] = &Resource{Name: r.Name, Total: &resource.Quantity{Format: r.Held.Format}, Held: resource.Quantity{Format: r.Held.Format}}
			}
			sums[r.Name].Held.Add(r.Held)
			if r.Total == nil {
				unknown[r.Name] = true
			} else {
				sums[r.Name].Total.Add(*r.Total)
			}
		}
	}
	for name := range unknown {
		sums[name].Total = nil
	}
	return inOrder(sums)
}

// inOrder has the free amounts, which are never less than nothing.
func inOrder(sums map[string]*Resource) []Resource {
	list := []Resource{}
	for _, name := range slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), compareSizes(a, b), cmp.Compare(a, b))
	}) {
		r := *sums[name]
		if r.Total != nil {
			free := r.Total.DeepCopy()
			if free.Sub(r.Held); free.Sign() < 0 {
				free = resource.Quantity{Format: free.Format}
			}
			r.Free = &free
		}
		list = append(list, r)
	}
	return list
}
