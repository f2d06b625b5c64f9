package driver

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// PreparedDevice is what the kubelet needs to know about one allocation result.
type PreparedDevice struct {
	Request, Pool, Device string
	ShareID               *types.UID
	CDIDeviceIDs          []string      // empty with admin access, which pins nothing
	Share                 *ledger.Share // what it holds; nil with admin access

	// Attributes are those of the Share and of its device, for the container to read;
	// nil with admin access.
	Attributes map[string]resourceapi.DeviceAttribute
}

// change is what preparing a claim puts on record.
type change struct {
	ledger.Grant
	grants []*ledger.Listed // the new grants of other claims in the same pods, and then Grant
	specs  [][]byte         // the CDI spec of each of grants
}

// plan returns the recorded grant of the claim if it still matches the allocation, and
// otherwise a new one. It changes nothing.
func (p *planner) plan(claim *resourceapi.ResourceClaim, pods []*corev1.Pod, wishes []wish) (change, error) {
	if recorded, held := p.grants.Find(claim.UID); held && fulfils(recorded, wishes) {
		current, err := p.refreshed(recorded, wishes)
		if err != nil {
			return change{}, err
		}
		current.Pods, current.Unprepared = p.podsOf(claim, recorded.Pods), false
		current.QuotaPods = quotaPods(current.Pods, recorded.QuotaPods, pods)
		return p.rendered(p.scope(current, true, pods))
	}
	grant, err := p.planAnew(claim, wishes)
	if err != nil || len(grant.Shares) == 0 {
		return change{Grant: grant}, err
	}
	grant.QuotaPods = quotaPods(grant.Pods, nil, pods)
	if err := p.checkJoined(grant, pods); err != nil {
		return change{}, err
	}
	return p.rendered(p.scope(grant, false, pods))
}

// rendered adds the CDI specs. A grant is recorded only if its spec can be rendered.
func (p *planner) rendered(next change) (change, error) {
	for _, grant := range next.grants {
		spec, err := p.spec(grant)
		if err != nil {
			return change{}, err
		}
		next.specs = append(next.specs, spec)
	}
	return next, nil
}

// spec returns the CDI spec of a grant.
func (p *planner) spec(grant *ledger.Listed) ([]byte, error) {
	claim := grant.CDIClaim(p.config.Exclusivity == ExclusivityKernel)
	claim.Note = ledger.EncodeNote(p.config.BootID, grant)
	return cdi.Encode(claim, p.config.Hook)
}

func (p *planner) planAnew(claim *resourceapi.ResourceClaim, wishes []wish) (ledger.Grant, error) {
	recorded, _ := p.grants.Find(claim.UID)
	wishes = pinned(wishes)
	grant := ledger.Grant{
		UID: claim.UID, Namespace: claim.Namespace, Name: claim.Name, Order: p.grants.NextOrder(),
		Shares: make([]ledger.Share, 0, len(wishes)), Pods: p.podsOf(claim, nil),
	}
	// A claim that was allocated again gives up what it held.
	free := p.free().Union(recorded.CPUs().Intersection(p.grantable))
	for _, wish := range wishes {
		kind, err := wish.wanted.plan(p, claim.UID, wish, free)
		if err != nil {
			return ledger.Grant{}, fmt.Errorf("request %s: %w", wish.request, err)
		}
		share := ledger.Share{Request: wish.request, Device: wish.device, ShareID: wish.shareUID(), Kind: kind}
		free = free.Difference(share.CPUs())
		grant.Shares = append(grant.Shares, share)
	}
	if err := p.chooseGroups(&grant, wishes); err != nil {
		return ledger.Grant{}, err
	}
	if grant.BindsNothing() {
		return ledger.Grant{}, errBindsNothing
	}
	if err := p.checkMemory(grant); err != nil {
		return ledger.Grant{}, err
	}
	if err := p.checkHugepages(grant); err != nil {
		return ledger.Grant{}, err
	}
	p.noteSharedPool(grant)
	return grant, nil
}

// free returns every CPU that a claim may still get.
func (p *planner) free() cpuset.Set {
	free := ledger.Untaken(p.grantable, p.grants)
	for i := range p.blocked {
		free = free.Difference(p.blocked[i].CPUs)
	}
	return free
}

// honours reports whether the machine still has everything that was granted.
func (p *planner) honours(grant ledger.Grant) bool {
	for _, share := range grant.Shares {
		if !share.Honoured(p.machine, p.config.Reserved) {
			return false
		}
	}
	return true
}

// pinned returns the wishes that hold something: those without admin access.
func pinned(wishes []wish) []wish {
	admin := func(w wish) bool { return w.admin }
	if !slices.ContainsFunc(wishes, admin) {
		return wishes
	}
	return slices.DeleteFunc(slices.Clone(wishes), admin)
}

// fulfils reports whether the grant matches the allocation that has these wishes.
func fulfils(g ledger.Grant, wishes []wish) bool {
	return slices.EqualFunc(g.Shares, pinned(wishes), func(s ledger.Share, w wish) bool {
		return s.Request == w.request && s.Device == w.device && s.ShareID == w.shareUID() && w.wanted.fulfilledBy(s.Kind)
	})
}

// refreshed returns the grant with its shares as they are now. The grant must fulfil
// the wishes.
func (p *planner) refreshed(grant ledger.Grant, wishes []wish) (ledger.Grant, error) {
	for i, wish := range pinned(wishes) {
		share := &grant.Shares[i]
		now, err := wish.wanted.refreshed(p, grant.UID, wish, share.Kind)
		if err != nil {
			return ledger.Grant{}, err
		}
		if !now.Equal(share.Kind) {
			grant.Shares = slices.Clone(grant.Shares) // recorded shares are never changed
			grant.Shares[i].Kind = now
		}
	}
	return grant, nil
}

// prepared pairs each allocation result with its share. Both are in the same order.
func (p *planner) prepared(grant ledger.Grant, wishes []wish) []PreparedDevice {
	shares := grant.Shares
	devices := make([]PreparedDevice, 0, len(wishes))
	for _, wish := range wishes {
		device := PreparedDevice{Request: wish.request, Pool: p.config.NodeName, Device: wish.device, ShareID: wish.shareID}
		if !wish.admin {
			device.Share, shares = &shares[0], shares[1:]
			device.CDIDeviceIDs = device.Share.CDIDevices(cdi.DeviceID(string(grant.UID), wish.request, wish.device))
			device.Attributes = p.attributes(*device.Share)
			p.dividing.NameGroup(device.Attributes, grant, *device.Share)
		}
		devices = append(devices, device)
	}
	return devices
}

// attributes returns the attributes of the share and the published attributes of its
// device, by their full names.
func (p *planner) attributes(share ledger.Share) map[string]resourceapi.DeviceAttribute {
	attributes := share.Attributes()
	for name, value := range p.devices[share.Device].Attributes {
		attributes[string(deviceclasses.FullName(name))] = value
	}
	return attributes
}

// errBindsNothing says that a claim binds memory that the scheduler does not count.
var errBindsNothing = errors.New("memoryPolicy bind: no request of the claim has memory or hugepages to bind; request memory")
