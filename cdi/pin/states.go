package pin

import "path"

// stateFiles are the files of recorded cgroups that show whether they still have their
// CPUs. They are read again and again, because not every kernel sends an event each time it
// makes a partition invalid or takes CPUs from it.
func stateFiles(records []record) (names []string) {
	for _, r := range records {
		want := r.wish()
		if want.Partition != PartitionNone {
			names = append(names, path.Join(r.Cgroup, partitionFile))
		}
		if !want.CPUs.IsEmpty() {
			names = append(names, path.Join(r.Cgroup, cpusFile+".effective"))
		}
	}
	return names
}
