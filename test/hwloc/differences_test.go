package hwloc

import (
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// difference is what the reader and hwloc do not agree on: the facts about a
// kind that only one of them has, and why.
type difference struct {
	about       kind
	ours, hwloc string
	why         string
}

// explained are all differences, by recorded machine, from the hwloc 2.9 of Debian 12.
var explained = map[string][]difference{
	"128ia64-17n4s2c": {{
		zoneCPUs, "16=0-7", "16=",
		"node 16, without CPUs, is equally far from all others: we take the lowest of the nearest, hwloc none",
	}},
	"20s390-2g6s4c": {{
		sockets, "", "0-2= 3-6= 7-9= 10-12= 13-14= 15= 16= 17-19=",
		"every physical_package_id is -1, so the sockets are unknown; hwloc makes nameless ones of core_siblings",
	}},
	"2pa-pcidomain32bits": {
		{
			functions, "10000:00:00.0=0600:8086:1237 10000:00:04.0=0100:1af4:1001", "",
			"Debian's hwloc is built for domains of 16 bits and leaves out others",
		},
		{
			functionCPUs,
			"0000:00:00.0=0-1 0000:00:01.0=0-1 0000:00:01.1=0-1 0000:00:01.2=0-1 0000:00:01.3=0-1 " +
				"0000:00:02.0=0-1 0000:00:03.0=0-1 10000:00:00.0=0-1 10000:00:04.0=0-1",
			"0000:00:00.0=0 0000:00:01.0=0 0000:00:01.1=0 0000:00:01.2=0 0000:00:01.3=0 0000:00:02.0=0 0000:00:03.0=0",
			"numa_node is -1, but there is one zone, of CPUs 0-1; local_cpus is half of it (though local_cpulist is 0-1), " +
				"and hwloc attaches a bus to a part of a zone, too",
		},
	},
	"32em64t-2n8c+dax+nvme+mic+dimms": {
		{
			functions, "0000:00:11.0=0604:8086:1d3e", "",
			"the config of this bridge says that bus 0 is behind it, the one it is on; hwloc leaves out such bridges",
		},
		{functionCPUs, "0000:00:11.0=0-7", "", "hwloc leaves out the bridge"},
	},
	"40intel64-2g2n4c+pcilocality": {{
		functionCPUs, "0000:43:00.0=2,6,10,14,18,22,26,30,34,38", "0000:43:00.0=0-39",
		"its numa_node is 2; hwloc reads no numa_node but, once for all that is behind a host bridge, local_cpus",
	}},
	"4fake-4gr1nu1pu": {{
		cores, "0 1 2 3", "",
		"topology/ has neither core_cpus nor thread_siblings: hwloc leaves out cores; we make each CPU one, as cores are " +
			"what CPUs are chosen from",
	}},
	"64amd64-4s2n4ca2co": {{
		cores, every(64, 2), every(64, 1),
		"Opteron 6200: to the kernel the two halves of a module are thread siblings, and they share its front end, FPU " +
			"and L2; hwloc splits AMD's siblings that have core ids of their own",
	}},
	"offline-cpu0-node0": {
		{
			sockets, "", "4,6,8,10,12,14,16,18,20=0",
			"node 0 is offline, so these online CPUs are in no zone and nothing of theirs is described; hwloc does",
		},
		{cores, "", "4 6 8 10 12 14 16 18 20", "they are in no zone"},
		{l2s, "", "4 6 8 10 12 14 16 18 20", "they are in no zone"},
		{l3s, "", "4,6,8,10,12,14,16,18,20", "they are in no zone"},
	},
}

// every lists the CPUs 0 to n-1 in sets of size.
func every(n, size int) string {
	var list []string
	for first := 0; first < n; first += size {
		var ids []int
		for id := range size {
			ids = append(ids, first+id)
		}
		list = append(list, cpuset.New(ids...).String())
	}
	return strings.Join(list, " ")
}
