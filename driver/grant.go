package driver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Grant is what one claim holds, as the checkpoint has it.
type Grant struct {
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Order     uint64    `json:"order"`  // > 0; higher than that of every grant that existed when this one was made
	Shares    []Share   `json:"shares"` // in the order of the allocation results

	// Pods are the pods of this boot whose containers may use the claim, by UID in ascending
	// order: those for which it was reserved when the kubelet prepared it. The kubelet does
	// not prepare it again for a later pod. That one is known by the record of its hook.
	Pods []types.UID `json:"pods,omitempty"`
	// Unprepared says that the kubelet has unprepared the claim while its containers still
	// ran. The grant ends when they have ended.
	Unprepared bool `json:"unprepared,omitempty"`
}

// PreparedDevice is what the kubelet needs to know about one allocation result.
type PreparedDevice struct {
	Request, Pool, Device string
	ShareID               *types.UID
	CDIDeviceIDs          []string // empty with admin access, which pins nothing
	Share                 *Share   // what it holds; nil with admin access

	// Attributes are those of the Share and of its device, for the container to read;
	// nil with admin access.
	Attributes map[string]resourceapi.DeviceAttribute
}

// change is what preparing a claim puts on record.
type change struct {
	Grant
	grants []*listedGrant // the new grants of other claims in the same pods, and then Grant
	specs  [][]byte       // the CDI spec of each of grants
}

// plan returns the recorded grant of the claim if it still matches the allocation, and
// otherwise a new one. It changes nothing.
func (d *Driver) plan(claim *resourceapi.ResourceClaim, pods []*corev1.Pod, wishes []wish) (change, error) {
	if recorded, held := d.grants.find(claim.UID); held && recorded.fulfils(wishes) {
		current, err := d.refreshed(recorded, wishes)
		if err != nil {
			return change{}, err
		}
		current.Pods, current.Unprepared = d.podsOf(claim, recorded.Pods), false
		return d.rendered(d.scope(current, true, pods))
	}
	grant, err := d.planAnew(claim, wishes)
	if err != nil || len(grant.Shares) == 0 {
		return change{Grant: grant}, err
	}
	if err := d.checkJoined(grant, pods); err != nil {
		return change{}, err
	}
	return d.rendered(d.scope(grant, false, pods))
}

// rendered adds the CDI specs. A grant is recorded only if its spec can be rendered.
func (d *Driver) rendered(next change) (change, error) {
	for _, grant := range next.grants {
		spec, err := d.spec(grant)
		if err != nil {
			return change{}, err
		}
		next.specs = append(next.specs, spec)
	}
	return next, nil
}

// spec returns the CDI spec of a grant.
func (d *Driver) spec(grant *listedGrant) ([]byte, error) {
	claim := grant.cdiClaim(d.config.Exclusivity)
	claim.Note = encodeNote(d.config.BootID, grant)
	return cdi.Encode(claim, d.config.Hook)
}

func (d *Driver) planAnew(claim *resourceapi.ResourceClaim, wishes []wish) (Grant, error) {
	recorded, _ := d.grants.find(claim.UID)
	wishes = pinned(wishes)
	grant := Grant{
		UID: claim.UID, Namespace: claim.Namespace, Name: claim.Name, Order: d.grants.nextOrder(),
		Shares: make([]Share, 0, len(wishes)), Pods: d.podsOf(claim, nil),
	}
	// A claim that was allocated again gives up what it held.
	free := d.free().Union(recorded.cpus().Intersection(d.grantable))
	for _, wish := range wishes {
		kind, err := wish.wanted.plan(d, claim.UID, wish, free)
		if err != nil {
			return Grant{}, fmt.Errorf("request %s: %w", wish.request, err)
		}
		share := Share{Request: wish.request, Device: wish.device, ShareID: wish.shareUID(), Kind: kind}
		free = free.Difference(share.CPUs())
		grant.Shares = append(grant.Shares, share)
	}
	if err := d.chooseGroups(&grant, wishes); err != nil {
		return Grant{}, err
	}
	if grant.bindsNothing() {
		return Grant{}, errBindsNothing
	}
	if err := d.checkMemory(grant); err != nil {
		return Grant{}, err
	}
	if err := d.checkHugepages(grant); err != nil {
		return Grant{}, err
	}
	d.noteSharedPool(grant)
	return grant, nil
}

// free returns every CPU that a claim may still get.
func (d *Driver) free() cpuset.Set {
	free := untaken(d.grantable, d.grants)
	for i := range d.blocked {
		free = free.Difference(d.blocked[i].CPUs)
	}
	return free
}

// honours reports whether the machine still has everything that was granted.
func (d *Driver) honours(grant Grant) bool {
	for _, share := range grant.Shares {
		if !share.Kind.honoured(d.machine, d.config.Reserved) {
			return false
		}
	}
	return true
}

// byAge puts the older grant first.
func byAge(a, b Grant) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.UID, b.UID)) }

// pinned returns the wishes that hold something: those without admin access.
func pinned(wishes []wish) []wish {
	admin := func(w wish) bool { return w.admin }
	if !slices.ContainsFunc(wishes, admin) {
		return wishes
	}
	return slices.DeleteFunc(slices.Clone(wishes), admin)
}

// fulfils reports whether the grant matches the allocation that has these wishes.
func (g Grant) fulfils(wishes []wish) bool {
	return slices.EqualFunc(g.Shares, pinned(wishes), func(s Share, w wish) bool {
		return s.Request == w.request && s.Device == w.device && s.ShareID == w.shareUID() && w.wanted.fulfilledBy(s.Kind)
	})
}

// refreshed returns the grant with its shares as they are now. The grant must fulfil
// the wishes.
func (d *Driver) refreshed(grant Grant, wishes []wish) (Grant, error) {
	for i, wish := range pinned(wishes) {
		share := &grant.Shares[i]
		now, err := share.Kind.refreshed(d, grant.UID, wish)
		if err != nil {
			return Grant{}, err
		}
		if !now.equal(share.Kind) {
			grant.Shares = slices.Clone(grant.Shares) // recorded shares are never changed
			grant.Shares[i].Kind = now
		}
	}
	return grant, nil
}

func (g Grant) equal(other Grant) bool {
	return g.UID == other.UID && g.Namespace == other.Namespace && g.Name == other.Name &&
		g.Order == other.Order && slices.EqualFunc(g.Shares, other.Shares, Share.Equal) &&
		slices.Equal(g.Pods, other.Pods) && g.Unprepared == other.Unprepared
}

// held collects what grants hold, one grant after the other.
type held struct {
	cpus      cpuset.Set
	functions []*FunctionShare
	caches    []*CacheShare
}

// add adds what a grant holds. It returns an error if some of it is held already.
func (h *held) add(g *Grant, words int) error {
	if twice, ok := g.addTo(&h.cpus, words); !ok {
		return fmt.Errorf("cpus %s are in two shares, one of claim %s", twice, g.name())
	}
	for i := range g.Shares {
		if twice := g.Shares[i].Kind.hold(h); twice != "" {
			return fmt.Errorf("%s in two shares, one of claim %s", twice, g.name())
		}
	}
	return nil
}

// addTo adds the CPUs of the grant to those that are held. It returns the CPUs that
// were held already as twice; ok is false if there are any. It works in place and reads
// only as many words as the grant needs, because a set is 1 KiB and every write does
// this for every grant.
func (g *Grant) addTo(held *cpuset.Set, words int) (twice cpuset.Set, ok bool) {
	ok = true
	all := held.Words()
	for i := range g.Shares {
		cpus := g.Shares[i].Kind.cpus()
		if cpus == nil {
			continue
		}
		for j, word := range cpus.Words()[:words] {
			if both := all[j] & word; both != 0 {
				twice.Words()[j] |= both
				ok = false
			}
			all[j] |= word
		}
	}
	return twice, ok
}

// words returns how many words of a set of CPUs contain all CPUs of the grant.
func (g *Grant) words() (words int) {
	for i := range g.Shares {
		cpus := g.Shares[i].Kind.cpus()
		if cpus == nil {
			continue
		}
		for j, word := range cpus.Words() {
			if word != 0 {
				words = max(words, j+1)
			}
		}
	}
	return words
}

func (g Grant) cpus() cpuset.Set {
	var all cpuset.Set
	for _, share := range g.Shares {
		all = all.Union(share.CPUs())
	}
	return all
}

// conflict says what both this grant and an older one hold; "" for nothing.
func (g Grant) conflict(older Grant) string {
	if both := older.cpus().Intersection(g.cpus()); !both.IsEmpty() {
		return fmt.Sprintf("cpus %s are", both)
	}
	for i := range g.Shares {
		for j := range older.Shares {
			if both := g.Shares[i].Kind.conflict(older.Shares[j].Kind); both != "" {
				return both
			}
		}
	}
	return ""
}

func (g Grant) name() string { return g.Namespace + "/" + g.Name }

// String is the grant as logs and errors show it.
func (g Grant) String() string {
	var addresses []string
	for _, f := range g.functions() {
		addresses = append(addresses, f.Address)
	}
	if len(addresses) == 0 {
		return fmt.Sprintf("claim %s with cpus %s", g.name(), g.cpus())
	}
	return fmt.Sprintf("claim %s with cpus %s, PCI functions %s", g.name(), g.cpus(), strings.Join(addresses, ", "))
}

// cdiClaim returns the grant for its CDI spec. The spec asks the hook for partitions
// only if the node has ExclusivityKernel.
func (g Grant) cdiClaim(by Exclusivity) cdi.Claim {
	claim := cdi.Claim{UID: string(g.UID), Namespace: g.Namespace, Name: g.Name, Shares: make([]cdi.Share, len(g.Shares))}
	for i := range g.Shares {
		claim.Shares[i] = g.Spec(g.Shares[i], by)
	}
	for _, pod := range g.Pods {
		claim.Pods = append(claim.Pods, string(pod))
	}
	return claim
}

// prepared pairs each allocation result with its share. Both are in the same order.
func (d *Driver) prepared(grant Grant, wishes []wish) []PreparedDevice {
	shares := grant.Shares
	devices := make([]PreparedDevice, 0, len(wishes))
	for _, wish := range wishes {
		device := PreparedDevice{Request: wish.request, Pool: d.config.NodeName, Device: wish.device, ShareID: wish.shareID}
		if !wish.admin {
			device.Share, shares = &shares[0], shares[1:]
			device.CDIDeviceIDs = device.Share.Kind.cdiDevices(cdi.DeviceID(string(grant.UID), wish.request, wish.device))
			device.Attributes = d.attributes(*device.Share)
			d.nameGroup(device.Attributes, grant, *device.Share)
		}
		devices = append(devices, device)
	}
	return devices
}

// attributes returns the attributes of the share and the published attributes of its
// device, by their full names.
func (d *Driver) attributes(share Share) map[string]resourceapi.DeviceAttribute {
	attributes := share.Attributes()
	for name, value := range d.devices[share.Device].Attributes {
		attributes[string(deviceclasses.FullName(name))] = value
	}
	return attributes
}
