package driver

import (
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
)

// checkMemory returns an error if a new grant has memory that claims still use which have
// ended for the scheduler. While there are none, the scheduler counts right.
func (p *planner) checkMemory(grant ledger.Grant) error {
	if len(p.orphans) == 0 {
		return nil
	}
	for _, share := range grant.Shares {
		zone := share.Zone()
		if zone == nil || zone.MemoryBytes == 0 {
			continue
		}
		nodes := zone.Mems()
		wanted, held := grant.Memory(nodes), uint64(0)
		var who []string
		for _, other := range p.grants {
			bytes := other.Memory(nodes)
			if other.UID == grant.UID || bytes == 0 {
				continue
			}
			held += bytes
			if why, ended := p.orphans[other.UID]; ended {
				who = append(who, fmt.Sprintf("claim %s holds %s until its containers have ended: %s", other.FullName(), binary(bytes), why))
			}
		}
		amounts := zones.Zone{Nodes: zone.NUMANodes}.Amounts(p.machine, p.config.ReservedMemory)
		free := amounts[0].TotalBytes - amounts[0].ReservedBytes
		free -= min(free, held)
		if len(who) > 0 && wanted > free {
			return fmt.Errorf("request %s: NUMA node %s has %s of memory left, want %s; %s", share.Request, nodes, binary(free), binary(wanted), strings.Join(who, ", "))
		}
	}
	return nil
}
