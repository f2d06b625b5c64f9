package driver

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// ErrNoConsumedCapacity says that a scheduler that does not know consumable capacity
// allocated a whole zone.
var ErrNoConsumedCapacity = errors.New(
	"no consumedCapacity: turn on the feature gate DRAConsumableCapacity of kube-apiserver and kube-scheduler, then recreate the claim")

// wish is one allocation result of this driver, after it was checked.
type wish struct {
	request string // "main" or "main/sub"
	device  string
	shareID *types.UID
	admin   bool   // admin access: sees the device, holds nothing of it
	wanted  wanted // never nil
}

// wanted is what was allocated. Each [Kind] has one type: zoneWish, functionWish or
// cacheWish.
type wanted interface {
	// configured returns the wish with the configuration that the DeviceClass and the
	// claim have for the request. ofClass is that of the DeviceClass alone.
	configured(p *planner, ofClass, config deviceclasses.RequestConfig) (wanted, error)
	// plan returns what the share will hold. It chooses CPUs from free, and changes
	// nothing.
	plan(p *planner, claimUID types.UID, wish wish, free cpuset.Set) (ledger.Kind, error)
	// refreshed returns what a recorded share of the same allocation holds now: another
	// kernel driver may be bound, for example.
	refreshed(p *planner, claimUID types.UID, wish wish, kind ledger.Kind) (ledger.Kind, error)
	// fulfilledBy reports whether what a share holds matches this allocation.
	fulfilledBy(kind ledger.Kind) bool
}

func (w wish) shareUID() types.UID {
	if w.shareID == nil {
		return ""
	}
	return *w.shareID
}

// wishes reads what the scheduler allocated to a claim on this node.
func (p *planner) wishes(claim *resourceapi.ResourceClaim) ([]wish, error) {
	allocation := claim.Status.Allocation
	if allocation == nil {
		return nil, errors.New("status.allocation: the claim is not allocated")
	}
	if err := checkConfigs(allocation.Devices.Config); err != nil {
		return nil, err
	}
	var wishes []wish
	for i, result := range allocation.Devices.Results {
		if result.Driver != Name {
			continue
		}
		wish, err := p.wish(claim, result)
		if err == nil {
			err = p.configure(&wish, claim)
		}
		if err != nil {
			return nil, fmt.Errorf("status.allocation.devices.results[%d] (request %q, device %q): %w",
				i, result.Request, result.Device, err)
		}
		wishes = append(wishes, wish)
	}
	if len(wishes) == 0 {
		return nil, fmt.Errorf("status.allocation.devices.results: none of driver %s", Name)
	}
	return wishes, p.pairCaches(wishes)
}

// Holds reports whether the claim has a grant of its present allocation: Prepare then gives it
// nothing that it does not have. It waits for a call that changes something.
func (d *Driver) Holds(claim *resourceapi.ResourceClaim) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	recorded, held := d.grants.Find(claim.UID)
	if !held {
		return false
	}
	wishes, err := d.planner().wishes(claim)
	return err == nil && fulfils(recorded, wishes)
}

// configure adds to the wish what the DeviceClass and the claim configure for its
// request.
func (p *planner) configure(wish *wish, claim *resourceapi.ResourceClaim) error {
	class, _ := deviceclasses.RequestOf(claim, wish.request)
	ofClass, config, err := deviceclasses.ConfigOf(wish.request, class, claim.Status.Allocation.Devices.Config)
	if err != nil || wish.admin {
		return err
	}
	wish.wanted, err = wish.wanted.configured(p, ofClass, config)
	return err
}

func (p *planner) wish(claim *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult) (wish, error) {
	if result.Pool != p.config.NodeName {
		return wish{}, fmt.Errorf("pool %q: this node has pool %q only", result.Pool, p.config.NodeName)
	}
	read := wish{request: result.Request, device: result.Device, shareID: result.ShareID}
	read.admin = result.AdminAccess != nil && *result.AdminAccess
	if _, _, isCache := caches.Parse(result.Device); isCache {
		read.wanted = p.cacheWish(claim, result)
		return read, nil
	}
	if address, isFunction, err := p.addressOf(claim.UID, result.Device); err != nil || isFunction {
		want := functionWish{address: address}
		if recorded, _ := p.grants.Find(claim.UID); recorded.Function(address) != nil {
			want.bound = recorded.Function(address).Driver
		}
		read.wanted = want
		return read, err
	}
	var zone zoneWish
	var consumed, err error
	if !read.admin {
		consumed = zone.consume(result.ConsumedCapacity)
	}
	zone.zone, err = p.zoneOf(claim.UID, result.Device, zone.cpus)
	zone.tuned = p.tuned(claim.UID, result.Request)
	read.wanted = zone
	return read, cmp.Or(err, consumed) // for an unknown device, that is the only error
}

// consume reads the amounts. Capacities of other domains hold nothing.
func (w *zoneWish) consume(consumed map[resourceapi.QualifiedName]resource.Quantity) error {
	if len(consumed) == 0 {
		return ErrNoConsumedCapacity
	}
	seen := make(map[resourceapi.QualifiedName]bool, len(consumed))
	for spelled, quantity := range consumed {
		name := spelling.Capacity(Name, spelled)
		if seen[name] {
			return fmt.Errorf("consumedCapacity %s: it is there with and without %s/", name, Name)
		}
		seen[name] = true
		size, huge := strings.CutPrefix(string(name), deviceclasses.CapacityHugepagesPrefix)
		_, group := strings.CutPrefix(string(name), deviceclasses.CapacityGroupPrefix)
		limit := int64(math.MaxInt64)
		switch {
		case name == deviceclasses.CapacityCPU:
			limit = cpuset.MaxCPUs
		case group:
			limit = 1
		}
		if quantity.Sign() < 0 || !spelling.Countable(quantity) || quantity.CmpInt64(limit) > 0 {
			return fmt.Errorf("consumedCapacity %s %q: allowed are 0 to %d", name, quantity.String(), limit)
		}
		switch amount := quantity.Value(); {
		case name == deviceclasses.CapacityCPU:
			w.cpus = int(amount)
		case name == deviceclasses.CapacityMemory:
			w.memoryBytes = uint64(amount)
		case !huge && !group && !strings.Contains(string(name), "/"):
			return fmt.Errorf("consumedCapacity %q: zones have %s, %s, %s<size> and %s<name>",
				spelled, deviceclasses.CapacityCPU, deviceclasses.CapacityMemory, deviceclasses.CapacityHugepagesPrefix, deviceclasses.CapacityGroupPrefix)
		case huge && amount > 0:
			if w.hugepageBytes == nil {
				w.hugepageBytes = make(map[string]uint64)
			}
			w.hugepageBytes[size] = uint64(amount)
		}
	}
	return nil
}

// zoneOf finds the zone that a device name stands for. The claim may have been
// allocated when the node had another zoneBy. If no published zone of that name has
// enough CPUs, the name stands for the larger zone of another zoneBy. A zone that no
// longer exists is found in the claim's own grant.
func (p *planner) zoneOf(claimUID types.UID, device string, cpus int) (zones.Zone, error) {
	published := zones.Named(p.zones, device)
	if published != nil && cpus <= published.CPUs.Size() {
		return *published, nil
	}
	for _, by := range deviceclasses.ZoneBys() {
		if former := zones.Named(zones.Of(p.machine, by), device); former != nil && (published == nil || former.CPUs.Size() > published.CPUs.Size()) {
			return *former, nil
		}
	}
	if published != nil {
		return *published, nil
	}
	recorded, _ := p.grants.Find(claimUID)
	for _, share := range recorded.Shares {
		if share.Device == device {
			return zones.Zone{Device: device, Nodes: slices.Collect(share.Mems().All())}, nil
		}
	}
	var known []string
	for i := range p.zones {
		known = append(known, p.zones[i].Device)
	}
	return zones.Zone{}, fmt.Errorf("no such device, this node has %s", strings.Join(known, ", "))
}
