package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// A CDI spec names devices by number, and the kubelet prepares nothing when a container starts
// again. The kernel gives a number that is free to the next device: a drive was swapped, or
// virtual functions were made anew. So the nodes of functions are read again and again.

// RereadFunctions compares the device nodes of all functions on record with those that they
// have now, and writes the CDI specs anew that differ. A function that is gone leaves its
// spec. News has one clause for each function that has changed.
func (d *Driver) RereadFunctions() (news []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return nil, nil
	}
	return d.rereadFunctions("")
}

// rereadFunctions leaves out the grant of one claim, which is being prepared.
func (d *Driver) rereadFunctions(except types.UID) (news []string, err error) {
	if d.config.Machine == nil {
		return nil, nil // nothing is read of PCI functions
	}
	next := d.grants
	var specs []step
	fresh := sync.OnceValue(d.othersChanged)
	usedBy := d.asking()
	for _, grant := range d.grants {
		if grant.UID == except || len(grant.Functions()) == 0 {
			continue
		}
		reread := grant.Grant
		for i, share := range grant.Shares {
			f := share.Function()
			if f == nil {
				continue
			}
			now := d.reread(grant.UID, f, next, fresh)
			if len(now.Former) > 0 && usedBy(grant.Grant) == "" {
				now.Former = nil
			}
			if now.Equal(f) {
				continue
			}
			reread.Shares = slices.Clone(reread.Shares) // recorded shares are never changed
			reread.Shares[i].Kind = now
			news = append(news, fmt.Sprintf("PCI function %s of claim %s: %s", f.Address, grant.FullName(), now.Since(f)))
		}
		if reread.Equal(grant.Grant) {
			continue
		}
		changed := ledger.NewListed(reread)
		next = next.WithListed(changed)
		spec, err := d.spec(changed)
		if err != nil {
			return nil, err
		}
		specs = append(specs, step{"write CDI spec of claim " + grant.FullName(), func() error { return d.specs.Ensure(string(changed.UID), spec) }})
	}
	if len(specs) == 0 {
		return nil, nil
	}
	return news, perform(append([]step{d.recordStep("record device nodes", next)}, specs...))
}

// othersChanged reports whether the CDI specs of other programs may have changed since it was
// last asked. To read all of them takes long.
func (d *Driver) othersChanged() bool {
	var seen strings.Builder
	fmt.Fprintf(&seen, "%p", d.machine)
	for _, dir := range d.otherSpecs() {
		entries, _ := fs.ReadDir(dir, ".")
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil && !cdi.IsOurs(entry.Name()) {
				fmt.Fprintf(&seen, " %s %d %s", entry.Name(), info.Size(), info.ModTime())
			}
		}
	}
	before := d.othersSeen
	d.othersSeen = seen.String()
	return d.othersSeen != before
}

// reread returns the function as it is now. The other grants are those of the list. Fresh says
// whether CDI specs of other programs may have changed.
func (d *Driver) reread(claim types.UID, f *ledger.FunctionShare, list ledger.List, fresh func() bool) *ledger.FunctionShare {
	now := *f
	access, err := devnode.Read(d.config.Machine, f.Address)
	switch {
	case errors.Is(err, devnode.ErrGone):
		now.Nodes, now.Lost = nil, true
	case err != nil || d.isRebinding(f):
		return f // the next look knows more; meanwhile the hook compares
	default:
		if f.CDIDevice == "" {
			now.Nodes = access.All()
		}
		if f.CDIDevice == "" || fresh() {
			now.Lost = d.deviceOfOthers(f, access) || list.NodeOfOther(claim, access.Nodes) != ""
		}
		if now.Lost {
			now.Nodes = nil
		}
	}
	now.Follow(f)
	return &now
}

// isRebinding reports whether the function does not have the kernel driver that its claim
// wants.
func (d *Driver) isRebinding(f *ledger.FunctionShare) bool {
	if f.Driver == "" {
		return false
	}
	now, err := binding.Read(d.config.Machine, f.Address)
	return err != nil || now.Driver != f.Driver
}

// deviceOfOthers reports whether the CDI device of another program that the claim has does not
// stand for the function any more: the program may name devices by an index.
func (d *Driver) deviceOfOthers(f *ledger.FunctionShare, access devnode.Access) bool {
	if f.CDIDevice == "" {
		return false
	}
	now, err := d.otherDevice(f, access)
	return err == nil && now != f.CDIDevice
}
