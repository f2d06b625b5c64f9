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

// poolID identifies a pool, and deviceID a device.
type (
	poolID   struct{ driver, pool string }
	deviceID struct {
		poolID
		name string
	}
)

// inventory holds the devices that are published, and the devices that claims hold.
type inventory struct {
	registered map[string]bool              // names of Node objects
	pods       map[types.UID]*corev1.Pod    // by UID, because another pod may have had the same name
	current    []*resourceapi.ResourceSlice // slices of the newest generations
	missing    map[poolID]string            // incomplete pools, and what is missing
	poolNodes  map[poolID]string            // pools that belong to one node
	counters   map[counterID]*counter
	devices    map[deviceID]*entry
	order      []deviceID // in the order in which they were read
}

// entry is a device.
type entry struct {
	id        deviceID
	published *resourceapi.Device // nil if claims hold the device but no slice contains it
	node      string              // "" if the device belongs to no single node
	numaNode  *int64
	socket    *int64
	taints    []Taint
	shares    []Share
}

func newInventory(s *snapshot.Snapshot) *inventory {
	inv := &inventory{
		registered: make(map[string]bool), pods: make(map[types.UID]*corev1.Pod), missing: make(map[poolID]string),
		poolNodes: make(map[poolID]string), counters: make(map[counterID]*counter), devices: make(map[deviceID]*entry),
	}
	for _, node := range s.Nodes {
		inv.registered[node.Name] = true
	}
	for _, pod := range s.Pods {
		inv.pods[pod.UID] = pod
	}
	inv.readPools(s.Slices)
	for _, slice := range inv.current {
		inv.readSlice(slice, s.TaintRules)
	}
	return inv
}

// readPools finds the slices that are current: a newer generation replaces all older
// ones.
func (inv *inventory) readPools(published []*resourceapi.ResourceSlice) {
	newest := make(map[poolID]int64)
	for _, slice := range published {
		id := poolOf(slice)
		newest[id] = max(newest[id], slice.Spec.Pool.Generation)
	}
	count, want := make(map[poolID]int64), make(map[poolID]int64)
	for _, slice := range published {
		if id := poolOf(slice); slice.Spec.Pool.Generation == newest[id] {
			inv.current = append(inv.current, slice)
			count[id]++
			want[id] = max(want[id], slice.Spec.Pool.ResourceSliceCount)
		}
	}
	for id, wanted := range want {
		if count[id] != wanted {
			inv.missing[id] = fmt.Sprintf("pool %s of driver %s is incomplete: %d of %d ResourceSlices exist, so the scheduler allocates no device of it", id.pool, id.driver, count[id], wanted)
		}
	}
}

func poolOf(slice *resourceapi.ResourceSlice) poolID {
	return poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}

func (inv *inventory) readSlice(slice *resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule) {
	pool := poolOf(slice)
	if slice.Spec.NodeName != nil {
		inv.poolNodes[pool] = *slice.Spec.NodeName
	}
	for _, set := range slice.Spec.SharedCounters {
		for name, value := range set.Counters {
			inv.counter(counterID{pool, set.Name, name}).total = &value.Value
		}
	}
	for i := range slice.Spec.Devices {
		device := &slice.Spec.Devices[i]
		id := deviceID{pool, device.Name}
		if inv.devices[id] != nil {
			continue // the scheduler allocates no device of a pool in which a name occurs twice
		}
		e := &entry{id: id, published: device, taints: taintsOf(id, device, rules)}
		if slice.Spec.NodeName != nil {
			e.node = *slice.Spec.NodeName
		} else if device.NodeName != nil {
			e.node = *device.NodeName
		}
		e.numaNode, e.socket = e.intAttribute(deviceclasses.AttributeNUMANode), e.intAttribute(deviceclasses.AttributeSocket)
		inv.devices[id] = e
		inv.order = append(inv.order, id)
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

// addShare adds a share to its device.
func (inv *inventory) addShare(share Share) {
	id := deviceID{poolID{share.Driver, share.Pool}, share.Device}
	e := inv.devices[id]
	if e == nil {
		e = &entry{id: id, node: share.Node, taints: []Taint{}}
		if mems := share.Mems; mems != nil && mems.Size() == 1 {
			first, _ := mems.First()
			e.numaNode = new(int64(first))
		}
		inv.devices[id] = e
		inv.order = append(inv.order, id)
	}
	if !share.Admin && len(e.shares) == len(e.admins()) {
		inv.consume(e) // only once, even if several claims share the device
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

// poolProblems returns the problems of the pools of a node.
func (inv *inventory) poolProblems(node string) (list []string) {
	zones := false
	for id, name := range inv.poolNodes {
		if name != node {
			continue
		}
		zones = zones || id.driver == deviceclasses.DriverName
		if why := inv.missing[id]; why != "" {
			list = append(list, why)
		}
	}
	slices.Sort(list)
	if !zones {
		list = append(list, "driver "+deviceclasses.DriverName+" publishes nothing on this node")
	}
	return list
}

// device returns the device with its sums.
func (e *entry) device(inv *inventory) Device {
	d := Device{
		Driver: e.id.driver, Pool: e.id.pool, Name: e.id.name, Taints: e.taints, Shares: append([]Share{}, e.shares...),
		Attributes: e.attributes(), Resources: e.resources(), Zone: e.isZone(), Cache: e.isCache(),
	}
	held := len(e.shares) > len(e.admins())
	switch {
	case e.published == nil:
		d.State = StateUnpublished
	case e.isShared():
		d.State = StateShared
		if !held {
			d.State, d.Reason = inv.state(e)
		}
	case held:
		d.State = StateHeld
	default:
		d.State, d.Reason = inv.state(e)
	}
	return d
}

// state returns the state of a device that no claim holds, and why it is blocked.
func (inv *inventory) state(e *entry) (State, string) {
	if inv.missing[e.id.poolID] != "" {
		return StateBlocked, "its pool is incomplete"
	}
	if why := inv.missingCounter(e); why != "" {
		return StateBlocked, why
	}
	return StateFree, ""
}

func (e *entry) isShared() bool {
	return e.published != nil && e.published.AllowMultipleAllocations != nil && *e.published.AllowMultipleAllocations
}

// resources returns the capacities that claims can share. An exclusive device has none.
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

// totals returns the sums over zones. A total is not known if it is not known for one
// of the zones.
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

// inOrder sorts the resources and adds the free amounts, which are never below 0.
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
