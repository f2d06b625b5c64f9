package pin

import (
	"io/fs"
	"slices"
)

// hostSlice is a cgroup beside those of all pods.
const hostSlice = "pintest-system"

// sliceOfHost is a service of the host that gets a partition of its own while a claim
// lives, and keeps it: systemd 261 has CPUSetPartition=, and others write the files.
func sliceOfHost(m machine) {
	const pods = "pintest-pods"
	running(m, ctrA, podB+"/b")
	m.write(pods+"/"+cpusFile, m.allCPUs().String()) // as the kubelet
	mustPin(m, ctrA, ScopeContainer, claimed("early", "2-3", "0", PartitionRoot))
	running(m, hostSlice)
	takeFromOthers(m, "6-7", pods, hostSlice)
	m.write(hostSlice+"/"+exclusiveFile, "6-7")
	m.write(hostSlice+"/"+cpusFile, "6-7")
	m.write(hostSlice+"/"+partitionFile, "root")
	slice := Holding{hostSlice, parse("6-7"), "root"}
	checkPartitions(m, Holding{ctrA, parse("2-3"), "root"}, slice)

	// The claim ends, and its CPUs are free for all, and for a pod of another QoS class.
	m.end(ctrA)
	mustRepair(m, "released cgroup "+ctrA)
	if left := recordFiles(m); len(left) > 0 {
		m.Errorf("records left over: %q", left)
	}
	checkPartitions(m, slice)
	mustPin(m, podB+"/b", ScopeContainer, claimed("late", "1-2", "0", PartitionRoot))
	checkPartitions(m, Holding{podB + "/b", parse("1-2"), "root"}, slice)

	// The next release takes back what the slice was in the way of.
	m.write(hostSlice+"/"+partitionFile, member)
	m.write(hostSlice+"/"+exclusiveFile, "")
}

// takeFromOthers removes CPUs from cpuset.cpus of the cgroups beside these two until the test
// ends: on a node of the rig, the kubelet's have all of them.
func takeFromOthers(m machine, list string, but ...string) {
	m.Helper()
	entries, err := fs.ReadDir(m.host().Cgroups.FS(), ".")
	if err != nil {
		m.Fatal(err)
	}
	for _, entry := range entries {
		file := entry.Name() + "/" + cpusFile
		if !entry.IsDir() || slices.Contains(but, entry.Name()) {
			continue
		}
		if _, err := fs.Stat(m.host().Cgroups.FS(), file); err != nil {
			continue // it has no cpuset controller
		}
		if has := parse(m.line(file)); has.Overlaps(parse(list)) {
			m.write(file, has.Difference(parse(list)).String())
			m.Cleanup(func() { m.write(file, has.String()) })
		}
	}
}
