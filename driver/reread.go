package driver

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// A CDI spec names devices by number, and the kubelet prepares nothing when a container starts
// again. The kernel gives a number that is free to the next device: a drive was swapped, or
// virtual functions were made anew. So the nodes of functions are read again and again, and the
// names of their network interfaces.

// RereadFunctions compares the device nodes and interfaces of all functions on record with those
// that they have now, and writes the CDI specs anew that differ. A function that is gone leaves its
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
	fresh := sync.OnceValue(func() bool { return d.functions.othersChanged(d.layout.machine) })
	usedBy := d.config.asking()
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
			now := d.functions.reread(d.layout.machine, grant.UID, f, next, fresh)
			if len(now.Former) > 0 && usedBy(grant.Grant) == "" {
				now.Former = nil
			}
			if now.Equal(f) {
				continue
			}
			reread.Shares = slices.Clone(reread.Shares) // recorded shares are never changed
			reread.Shares[i].Kind = now
			news = append(news, fmt.Sprintf("PCI function %s of claim %s: %s", f.Address, grant.FullName(), since(f, now)))
		}
		if reread.Equal(grant.Grant) {
			continue
		}
		changed := ledger.NewListed(reread)
		next = next.WithListed(changed)
		spec, err := d.planner().spec(changed)
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

// since says how a function has changed.
func since(before, now *ledger.FunctionShare) string {
	switch same := now.Lost == before.Lost && slices.Equal(now.Nodes, before.Nodes); {
	case now.Lost && !before.Lost:
		return "it is gone, or has devices that containers of another claim may have; no container of the claim can start"
	case same && !slices.Equal(now.Interfaces, before.Interfaces):
		return fmt.Sprintf("its network interfaces are %s now", strings.Join(now.Interfaces, ", "))
	case same:
		return "its former device nodes are free again"
	}
	return fmt.Sprintf("its device nodes are %s now", paths(now.Nodes))
}

func paths(nodes []devnode.Node) string {
	if len(nodes) == 0 {
		return "none"
	}
	var all []string
	for _, node := range nodes {
		all = append(all, node.Path+" ("+node.Number()+")")
	}
	return strings.Join(all, ", ")
}
