package driver

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// Grant is what one claim holds, as it is in the checkpoint.
type Grant struct {
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Order     uint64    `json:"order,omitempty"` // > 0; higher than that of every grant there was when it was made
	Shares    []Share   `json:"shares"`          // in the order of the allocation results
}

// Share is what one allocation result of a claim holds.
//
// Invariant: no CPU is in two shares of a node.
type Share struct {
	Request string     `json:"request"` // "main" or "main/sub"
	Device  string     `json:"device"`
	ShareID types.UID  `json:"shareID,omitempty"`
	Zone    int        `json:"zone"`
	CPUs    cpuset.Set `json:"cpus"`          // empty: memory only
	Why     string     `json:"why,omitempty"` // these CPUs, in one line

	MemoryBytes   uint64            `json:"memoryBytes,omitempty"`   // without hugepages
	HugepageBytes map[string]uint64 `json:"hugepageBytes,omitempty"` // each > 0, by size as in "2Mi"
}

// PreparedDevice is what the kubelet needs to know of one allocation result.
type PreparedDevice struct {
	Request, Pool, Device string
	ShareID               *types.UID
	CDIDeviceIDs          []string // empty with admin access, which pins nothing
	Share                 *Share   // what it holds; nil with admin access
}

// Mems is the NUMA nodes of the share's memory.
func (s Share) Mems() cpuset.Set { return cpuset.New(s.Zone) }

// Partition is the kind of cpuset partition that the share's container becomes;
// "" without CPUs.
func (s Share) Partition() string {
	if s.CPUs.IsEmpty() {
		return ""
	}
	return cdi.Partition
}

// plan is the recorded grant of the claim if that is still what was allocated,
// else a new one. It changes nothing.
func (d *Driver) plan(claim *resourceapi.ResourceClaim, wishes []wish) (Grant, error) {
	recorded, held := d.grants.find(claim.UID)
	if held && recorded.fulfils(wishes) {
		return recorded.completed(wishes), nil
	}
	grant := Grant{UID: claim.UID, Namespace: claim.Namespace, Name: claim.Name, Order: d.grants.nextOrder()}
	// A claim allocated anew gives up what it held.
	free := d.free().Union(recorded.cpus().Intersection(d.grantable()))
	for _, wish := range pinned(wishes) {
		share, err := d.choose(wish, free)
		if err != nil {
			return Grant{}, fmt.Errorf("request %s: %w", wish.request, err)
		}
		free = free.Difference(share.CPUs)
		grant.Shares = append(grant.Shares, share)
	}
	if len(grant.Shares) == 0 {
		return grant, nil
	}
	return grant, grant.cdiClaim().Validate() // on record only if it can be rendered
}

func (d *Driver) choose(wish wish, free cpuset.Set) (Share, error) {
	share := Share{Request: wish.request, Device: wish.device, ShareID: wish.shareUID(), Zone: wish.zone}
	share = share.completed(wish)
	if wish.cpus == 0 {
		return share, nil
	}
	choice, err := d.picker.Pick(free, pick.Request{CPUs: wish.cpus, Zones: []int{wish.zone}})
	share.CPUs, share.Why = choice.CPUs, choice.Why.String()
	if errors.Is(err, pick.ErrNotEnough) {
		return share, d.namingBlocked(err, wish.zone)
	}
	return share, err
}

// free is every CPU that a claim may still get.
func (d *Driver) free() cpuset.Set {
	var taken cpuset.Set
	for i := range d.grants {
		d.grants[i].addTo(&taken)
	}
	free := d.grantable().Difference(taken)
	for i := range d.blocked {
		free = free.Difference(d.blocked[i].CPUs)
	}
	return free
}

// grantable is every CPU that a claim may ever get on this machine.
func (d *Driver) grantable() cpuset.Set {
	var all cpuset.Set
	for i := range d.machine.Zones {
		all = all.Union(d.machine.Zones[i].CPUs)
	}
	return all.Difference(d.config.Reserved)
}

// honours reports whether the machine still has all that was granted.
func (d *Driver) honours(grant Grant) bool {
	for _, share := range grant.Shares {
		zone, ok := d.machine.Zone(share.Zone)
		if !ok || !share.CPUs.IsSubsetOf(zone.CPUs.Difference(d.config.Reserved)) {
			return false
		}
	}
	return true
}

// IdleCPU is a CPU that no claim holds, for the probe of the kernel; ok is false
// if there is none to spare. Reserved CPUs come last, and never the first of
// them: the kernel needs a CPU outside of every partition.
func (d *Driver) IdleCPU() (cpu int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cpu, ok := d.free().First(); ok {
		return cpu, true
	}
	spare := d.config.Reserved
	if housekeeping, ok := spare.First(); ok {
		spare.Remove(housekeeping)
	}
	for _, held := range d.blocked {
		spare = spare.Difference(held.CPUs)
	}
	return spare.First()
}

// byAge compares: the older grant comes first. Version 1 did not record which
// that is, but it is always the same one.
func byAge(a, b Grant) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.UID, b.UID)) }

// pinned are the wishes that hold something.
func pinned(wishes []wish) []wish {
	return slices.DeleteFunc(slices.Clone(wishes), func(w wish) bool { return w.admin })
}

// fulfils reports whether the grant is of the allocation that asks for this.
func (g Grant) fulfils(wishes []wish) bool {
	return slices.EqualFunc(g.Shares, pinned(wishes), func(s Share, w wish) bool {
		return s.Request == w.request && s.Device == w.device && s.Zone == w.zone &&
			s.ShareID == w.shareUID() && s.CPUs.Size() == w.cpus
	})
}

// completed is the grant with all that the allocation says beside CPUs, which
// version 1 of the checkpoint did not record. The grant fulfils the wishes.
func (g Grant) completed(wishes []wish) Grant {
	g.Shares = slices.Clone(g.Shares)
	for i, wish := range pinned(wishes) {
		g.Shares[i] = g.Shares[i].completed(wish)
	}
	return g
}

func (s Share) completed(wish wish) Share {
	s.MemoryBytes, s.HugepageBytes = wish.memoryBytes, wish.hugepageBytes
	return s
}

func (g Grant) equal(other Grant) bool {
	return g.UID == other.UID && g.Namespace == other.Namespace && g.Name == other.Name &&
		g.Order == other.Order && slices.EqualFunc(g.Shares, other.Shares, Share.equal)
}

func (s Share) equal(other Share) bool {
	return s.Request == other.Request && s.Device == other.Device && s.ShareID == other.ShareID && s.Zone == other.Zone &&
		s.CPUs == other.CPUs && s.Why == other.Why && s.MemoryBytes == other.MemoryBytes && maps.Equal(s.HugepageBytes, other.HugepageBytes)
}

// addTo adds the CPUs to those that are held; ok is false if some of them were,
// which are twice. It works in place, because a set is 1 KiB and this is done to
// every grant on each write.
func (g *Grant) addTo(held *cpuset.Set) (twice cpuset.Set, ok bool) {
	ok = true
	words := held.Words()
	for i := range g.Shares {
		for j, word := range g.Shares[i].CPUs.Words() {
			if word == 0 {
				continue
			}
			if both := words[j] & word; both != 0 {
				twice.Words()[j] |= both
				ok = false
			}
			words[j] |= word
		}
	}
	return twice, ok
}

func (g Grant) cpus() cpuset.Set {
	var all cpuset.Set
	for _, share := range g.Shares {
		all = all.Union(share.CPUs)
	}
	return all
}

func (g Grant) name() string { return g.Namespace + "/" + g.Name }

// String is the grant as logs and errors show it.
func (g Grant) String() string {
	return fmt.Sprintf("claim %s with cpus %s", g.name(), g.cpus())
}

func (g Grant) cdiClaim() cdi.Claim {
	claim := cdi.Claim{UID: string(g.UID), Namespace: g.Namespace, Name: g.Name}
	for _, share := range g.Shares {
		claim.Shares = append(claim.Shares, cdi.Share{
			Request: share.Request, Device: share.Device,
			CPUs: share.CPUs, Mems: share.Mems(),
		})
	}
	return claim
}

// prepared pairs each allocation result with its share, which are in the same
// order.
func prepared(grant Grant, wishes []wish, pool string) []PreparedDevice {
	shares := grant.Shares
	devices := make([]PreparedDevice, 0, len(wishes))
	for _, wish := range wishes {
		device := PreparedDevice{Request: wish.request, Pool: pool, Device: wish.device, ShareID: wish.shareID}
		if !wish.admin {
			device.CDIDeviceIDs = []string{cdi.DeviceID(string(grant.UID), wish.request, wish.device)}
			device.Share, shares = &shares[0], shares[1:]
		}
		devices = append(devices, device)
	}
	return devices
}
