package pin

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// PodHugepages is the hugepages that one pod with claims has.
type PodHugepages struct {
	Claims []string                // the UIDs of the pod's claims; ascending, each once
	Sizes  map[string]HugepagesUse // by size as in "2Mi"; without the sizes that cannot be read
}

// HugepagesUse is how much a pod has of one size, in bytes.
type HugepagesUse struct {
	Bytes  uint64
	OnNode map[int]uint64 // the parts of Bytes by NUMA node; nil if the kernel does not show them
}

// HugepagesUsed returns the hugepages of the pods that have a process, and recorded cgroups or
// granted claims. Granted are the UIDs of claims by that of their pod: a container has no
// record while it waits for its next start, but its pod may have pages of files in volumes.
// It reads the pod's cgroup, because the kernel moves pages there that a container leaves
// behind. Kernels before 5.17 do not show the NUMA nodes of pages, and no kernel shows pages
// where the controller hugetlb is off. HugepagesUsed passes over records that it cannot
// read: the keeper reports them.
func HugepagesUsed(cgroups, records fs.FS, granted map[string][]string) (pods []PodHugepages, err error) {
	list, _, err := loadRecords(records)
	if err != nil {
		return nil, err
	}
	claims := make(map[string][]string) // by pod
	for _, r := range list {
		for _, claim := range r.Claims {
			claims[r.pod()] = append(claims[r.pod()], claim.UID)
		}
	}
	recorded := maps.Clone(claims)
	if len(granted) > 0 {
		root, _ := owner(cgroups, ".")
		search := podSearch{cgroups, root, func(uid, pod string) {
			if list := granted[uid]; list != nil {
				claims[pod] = append(claims[pod], list...)
			}
		}}
		_ = search.look(".") // as with records, what cannot be read is passed over
	}
	for _, pod := range slices.Sorted(maps.Keys(claims)) {
		if populated, _ := isPopulated(cgroups, pod); !populated {
			continue
		}
		sizes := readHugepages(cgroups, pod)
		if len(sizes) == 0 && recorded[pod] == nil {
			continue // it may have started no container yet, so nothing says that it has used pages
		}
		slices.Sort(claims[pod])
		pods = append(pods, PodHugepages{slices.Compact(claims[pod]), sizes})
	}
	return pods, nil
}

// readHugepages returns what a cgroup has by size. It leaves out what it cannot read.
func readHugepages(cgroups fs.FS, cgroup string) map[string]HugepagesUse {
	sizes := make(map[string]HugepagesUse)
	entries, err := fs.ReadDir(cgroups, cgroup)
	if err != nil {
		return nil
	}
	for _, entry := range entries { // by name, so numa_stat comes after current
		size, isHugetlb := strings.CutPrefix(entry.Name(), "hugetlb.")
		size, file, _ := strings.Cut(size, ".")
		if !isHugetlb || file != "current" && file != "numa_stat" {
			continue
		}
		line, err := readLine(cgroups, path.Join(cgroup, entry.Name()))
		if err != nil {
			continue
		}
		var use HugepagesUse
		if file == "current" {
			use.Bytes, err = strconv.ParseUint(line, 10, 64)
		} else {
			use, err = parseNUMAStat(line)
		}
		if err == nil {
			sizes[strings.TrimSuffix(size, "B")+"i"] = use // the kernel writes 2MB
		}
	}
	return sizes
}

// parseNUMAStat parses hugetlb.<size>.numa_stat, as in "total=0 N0=0 N1=0".
func parseNUMAStat(line string) (use HugepagesUse, err error) {
	use.OnNode = make(map[int]uint64)
	for _, field := range strings.Fields(line) {
		name, bytes, _ := strings.Cut(field, "=")
		amount, err := strconv.ParseUint(bytes, 10, 64)
		if err != nil {
			return HugepagesUse{}, fmt.Errorf("field %q: %w", field, err)
		}
		if name == "total" {
			use.Bytes = amount
			continue
		}
		node, err := strconv.Atoi(strings.TrimPrefix(name, "N"))
		if err != nil {
			return HugepagesUse{}, fmt.Errorf("field %q: %w", field, err)
		}
		use.OnNode[node] = amount
	}
	return use, nil
}
