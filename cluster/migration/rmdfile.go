package migration

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// rmdFileKind is the configuration of an RDT daemon, which is in no object.
const rmdFileKind = "rmd.toml"

// Sections of the file that make pools.
const (
	osSection    = "OSGroup"
	infraSection = "InfraGroup"
	poolSection  = "CachePool"
)

// daemon is what an RDT daemon divides the caches into.
type daemon struct {
	name     string // of the file
	pools    deviceclasses.CachePools
	reserved cpuset.Set // CPUs of the groups for the system
}

// addRMDFile reads the pools of a daemon, with its defaults.
func (p *plan) addRMDFile(s *Source) error {
	var file struct {
		OSGroup struct {
			CacheWays int
			CPUSet    string
		}
		InfraGroup struct {
			CacheWays int
			CPUSet    string
		}
		CachePool struct {
			Guarantee, BestEffort, Shared int
			Members                       int `json:"max_allowed_shared"`
		}
	}
	file.OSGroup.CacheWays, file.OSGroup.CPUSet = osWays, "0"
	file.CachePool.Guarantee, file.CachePool.BestEffort, file.CachePool.Shared, file.CachePool.Members = 10, 7, sharedWays, sharedMembers
	if err := s.decode(&file); err != nil {
		return err
	}
	d := &daemon{name: s.String(), pools: deviceclasses.CachePools{OS: &deviceclasses.CacheWays{Ways: file.OSGroup.CacheWays}}}
	for section, list := range map[string]string{osSection: file.OSGroup.CPUSet, infraSection: file.InfraGroup.CPUSet} {
		cpus, err := cpuset.Parse(list)
		if err != nil {
			return fmt.Errorf("%s %s: %s.cpuset: %w", s.Kind, s, section, err)
		}
		d.reserved = d.reserved.Union(cpus)
	}
	if ways := file.InfraGroup.CacheWays; ways != 0 { // else the daemon has no such group
		d.pools.Infra = &deviceclasses.InfraPool{CacheWays: deviceclasses.CacheWays{Ways: ways}, CPUs: file.InfraGroup.CPUSet}
	}
	if ways := file.CachePool.Guarantee; ways != 0 {
		d.pools.Guaranteed = &deviceclasses.GuaranteedPool{ExclusivePool: deviceclasses.ExclusivePool{Ways: ways}}
	}
	if ways := file.CachePool.BestEffort; ways != 0 {
		d.pools.BestEffort = &deviceclasses.BestEffortPool{ExclusivePool: deviceclasses.ExclusivePool{Ways: ways}}
	}
	if ways := file.CachePool.Shared; ways != 0 {
		d.pools.Shared = &deviceclasses.SharedPool{Ways: ways, Members: file.CachePool.Members}
	}
	if p.daemon == nil {
		p.daemon = d
	} else if text(p.daemon.pools) != text(d.pools) {
		p.add(d.name, Line{
			Kind: s.Kind, Field: poolSection, Value: "-", Outcome: ByHand,
			Says: fmt.Sprintf("node.yaml has the pools of %s: write a profile of the NodeConfig for the nodes of this file", p.daemon.name),
		})
	}
	return nil
}

const noService = "nothing on the node listens: pods ask for ways in their claims"

var rmdFileRows = []row{
	{"title", "", Gone, "it is a title"},
	{"default.policypath", "", ByHand, "the numbers of that file's gold are defaultWays of cache.guaranteed, and those of its silver defaultMinWays and defaultMaxWays of cache.besteffort; those of the processor of the nodes count" + restOfPolicy},
	{"default.address", "", Gone, noService},
	{"default.tlsport", "", Gone, noService},
	{"default.certpath", "", Gone, noService},
	{"default.clientcapath", "", Gone, noService},
	{"default.clientauth", "", Gone, noService},
	{"default.unixsock", "", Gone, noService},
	{"default.sysresctrl", "/sys/fs/resctrl", Gone, "the driver uses the same folder"},
	{"default.sysresctrl", "", ByHand, "the driver uses resctrl in /sys/fs/resctrl only"},
	{"default.plugins", "", ByHand, "nothing takes the place of plugins; of pstate: " + branchMisses},
	{"default.openstackenable", "false", Gone, "it is off"},
	{"default.openstackenable", "", ByHand, "the driver is for pods: nothing takes the place of OpenStack's notifications"},
	{"default.dbValidatorInterval", "", Gone, "claims end with their pods"},
	{"rdt.mbaMode", "", Replaced, "the kernel says in what it counts: megabytes per second if resctrl is mounted with mba_MBps, else percent; a claim asks for the one or the other"},
	{"debug", "", Gone, noService},
	{"log", "", Gone, "the chart's verbosity and loggingFormat are those of the driver"},
	{"database", "", Gone, "the daemon's checkpoint has what claims hold"},
	{"acl", "", Gone, "rights on claims and classes are those of Kubernetes"},
	{"pam", "", Gone, "rights on claims and classes are those of Kubernetes"},
	{"openstack", "", ByHand, "the driver is for pods: nothing takes the place of OpenStack's notifications"},
	{"OSGroup.cacheways", "", Replaced, "cache.os has them, for everything that has no ways of its own"},
	{"OSGroup.cpuset", "", Replaced, "reservedCPUs has them, so no claim gets them; the ways of cache.os are for tasks on any CPU"},
	{"InfraGroup.cacheways", "0", Gone, "there is no such group"},
	{"InfraGroup.cacheways", "", Replaced, "cache.infra has them"},
	{"InfraGroup.cpuset", "", Replaced, "cache.infra.cpus has them, and so has reservedCPUs, because no claim may have them; if these tasks need ways that no claim shares with them, write cache.groups"},
	{"InfraGroup.tasks", "", ByHand, "the driver looks for no command lines: run these processes on the CPUs of cache.infra, or write their IDs into /sys/fs/resctrl/dra-numa.0/tasks"},
	{"CachePool.guarantee", "0", Gone, "there is no such pool"},
	{"CachePool.guarantee", "", Replaced, "cache.guaranteed has them"},
	{"CachePool.besteffort", "0", Gone, "there is no such pool"},
	{"CachePool.besteffort", "", Replaced, "cache.besteffort has them"},
	{"CachePool.shared", "0", Gone, "there is no such pool"},
	{"CachePool.shared", "", Replaced, "cache.shared has them"},
	{"CachePool.max_allowed_shared", "", Replaced, "cache.shared.members has it"},
	{"CachePool.shrink", "true", Replaced, "claims of cache.besteffort shrink to what they ask for when others come"},
	{"CachePool.shrink", "false", ByHand, "claims of cache.besteffort always shrink to what they ask for when others come: let those that must keep their ways ask for them in cache.guaranteed"},
}
