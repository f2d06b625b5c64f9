package driver

import (
	"fmt"
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
	Shares    []Share   `json:"shares"` // in the order of the allocation results
}

// Share is what one allocation result of a claim holds.
//
// Invariant: no CPU is in two shares of a node.
type Share struct {
	Request string     `json:"request"` // "main" or "main/sub"
	Device  string     `json:"device"`
	ShareID types.UID  `json:"shareID,omitempty"`
	Zone    int        `json:"zone"`
	CPUs    cpuset.Set `json:"cpus"` // empty: memory only
}

// PreparedDevice is what the kubelet needs to know of one allocation result.
type PreparedDevice struct {
	Request, Pool, Device string
	ShareID               *types.UID
	CDIDeviceIDs          []string // empty with admin access, which pins nothing
}

// plan is the recorded grant of the claim if that is still what was allocated,
// else a new one. It changes nothing.
func (d *Driver) plan(claim *resourceapi.ResourceClaim, wishes []wish) (Grant, error) {
	recorded, held := d.grants[claim.UID]
	if held && recorded.fulfils(wishes) {
		return recorded, nil
	}
	grant := Grant{UID: claim.UID, Namespace: claim.Namespace, Name: claim.Name}
	// A claim allocated anew gives up what it held.
	free := d.free().Union(recorded.cpus().Intersection(d.grantable()))
	for _, wish := range wishes {
		if wish.admin {
			continue
		}
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
	if wish.cpus == 0 {
		return share, nil
	}
	choice, err := d.picker.Pick(free, pick.Request{CPUs: wish.cpus, Zones: []int{wish.zone}})
	share.CPUs = choice.CPUs
	return share, err
}

// free is every CPU that a claim may still get.
func (d *Driver) free() cpuset.Set {
	free := d.grantable()
	for _, grant := range d.grants {
		free = free.Difference(grant.cpus())
	}
	return free
}

// grantable is every CPU that a claim may ever get on this machine.
func (d *Driver) grantable() cpuset.Set {
	var all cpuset.Set
	for _, zone := range d.machine.Zones {
		all = all.Union(zone.CPUs)
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
	housekeeping, _ := d.config.Reserved.First()
	return d.config.Reserved.Difference(cpuset.New(housekeeping)).First()
}

// fulfils reports whether the grant is what the allocation asks for.
func (g Grant) fulfils(wishes []wish) bool {
	pinned := slices.DeleteFunc(slices.Clone(wishes), func(w wish) bool { return w.admin })
	return slices.EqualFunc(g.Shares, pinned, func(s Share, w wish) bool {
		return s.Request == w.request && s.Device == w.device && s.Zone == w.zone &&
			s.ShareID == w.shareUID() && s.CPUs.Size() == w.cpus
	})
}

func (g Grant) equal(other Grant) bool {
	return g.UID == other.UID && g.Namespace == other.Namespace && g.Name == other.Name &&
		slices.Equal(g.Shares, other.Shares)
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
			CPUs: share.CPUs, Mems: cpuset.New(share.Zone),
		})
	}
	return claim
}

func prepared(claimUID types.UID, wishes []wish, pool string) []PreparedDevice {
	devices := make([]PreparedDevice, 0, len(wishes))
	for _, wish := range wishes {
		device := PreparedDevice{Request: wish.request, Pool: pool, Device: wish.device, ShareID: wish.shareID}
		if !wish.admin {
			device.CDIDeviceIDs = []string{cdi.DeviceID(string(claimUID), wish.request, wish.device)}
		}
		devices = append(devices, device)
	}
	return devices
}
