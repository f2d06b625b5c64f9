package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// HugepagesUsed returns the hugepages that the pods of recorded cgroups have, in bytes, by
// the UID of each of their claims, by NUMA node and by size as in "2Mi". It reads
// hugetlb.<size>.numa_stat of the pod's cgroup, because the kernel moves pages there that a
// container leaves behind. A host without these files uses none.
func HugepagesUsed(cgroups, records fs.FS) (map[string]map[int]map[string]uint64, error) {
	list, faults, err := loadRecords(records)
	if err != nil {
		return nil, err
	}
	used := make(map[string]map[int]map[string]uint64)
	seen := make(map[string]bool) // pod and claim
	for _, r := range list {
		for _, claim := range r.Claims {
			if seen[r.pod()+" "+claim.UID] {
				continue
			}
			seen[r.pod()+" "+claim.UID] = true
			if used[claim.UID] == nil {
				used[claim.UID] = make(map[int]map[string]uint64)
			}
			if err := addHugepages(used[claim.UID], cgroups, r.pod()); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return used, errors.Join(faults...)
}

func addHugepages(used map[int]map[string]uint64, cgroups fs.FS, cgroup string) error {
	names, err := fs.Glob(cgroups, path.Join(cgroup, "hugetlb.*.numa_stat"))
	if err != nil {
		return err
	}
	for _, name := range names {
		size := strings.TrimSuffix(strings.TrimPrefix(path.Base(name), "hugetlb."), ".numa_stat")
		size = strings.TrimSuffix(size, "B") + "i" // the kernel writes 2MB
		line, err := readLine(cgroups, name)
		if isGone(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, field := range strings.Fields(line) { // total=0 N0=0 N1=0
			node, bytes, _ := strings.Cut(field, "=")
			id, err := strconv.Atoi(strings.TrimPrefix(node, "N"))
			if err != nil {
				continue // total
			}
			amount, err := strconv.ParseUint(bytes, 10, 64)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if used[id] == nil {
				used[id] = make(map[string]uint64)
			}
			used[id][size] += amount
		}
	}
	return nil
}
