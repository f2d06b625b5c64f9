package pin

import (
	"reflect"
	"testing"
	"testing/fstest"
)

const mib = 1 << 20

// pinned returns the files of records.
func pinned(t *testing.T, list ...record) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, r := range list {
		text, err := r.render()
		if err != nil {
			t.Fatal(err)
		}
		files[r.file()] = &fstest.MapFile{Data: text}
	}
	return files
}

// podOf is a cgroup of a pod with files, and with a process or none.
func podOf(cgroups fstest.MapFS, pod, populated string, files map[string]string) {
	cgroups[pod+"/cgroup.events"] = &fstest.MapFile{Data: []byte("populated " + populated + "\nfrozen 0\n")}
	for name, text := range files {
		cgroups[pod+"/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
}

// A pod's pages are of no particular one of its claims. If each claim counted them, a page
// in use would stand for several promised ones.
func TestHugepagesOfAPodCountOnce(t *testing.T) {
	const pod = "kubepods/burstable/pod1"
	records := pinned(t,
		record{Boot: "boot", Cgroup: pod + "/one", Scope: ScopeContainer, Claims: []Claim{claimed("job", "2-3", "1", PartitionRoot)}},
		record{Boot: "boot", Cgroup: pod + "/two", Scope: ScopeContainer, Claims: []Claim{claimed("job", "4", "1", PartitionRoot), claimed("other", "", "0", PartitionNone)}},
	)
	cgroups := fstest.MapFS{}
	podOf(cgroups, pod, "1", map[string]string{
		"hugetlb.2MB.numa_stat":     "total=6291456 N0=2097152 N1=4194304\n",
		"hugetlb.2MB.current":       "6291456\n",
		"hugetlb.2MB.rsvd.current":  "8388608\n",
		"hugetlb.1GB.numa_stat":     "total=0 N0=0 N1=0\n",
		"one/hugetlb.2MB.numa_stat": "total=4194304 N0=0 N1=4194304\n", // a part of the pod's
	})
	used, err := HugepagesUsed(cgroups, records, nil)
	want := []PodHugepages{{
		[]string{"job", "other"},
		map[string]HugepagesUse{"2Mi": {6 * mib, map[int]uint64{0: 2 * mib, 1: 4 * mib}}, "1Gi": {0, map[int]uint64{0: 0, 1: 0}}},
	}}
	if err != nil || !reflect.DeepEqual(used, want) {
		t.Errorf("pods have %+v, %v, want %+v", used, err, want)
	}
}

// What cannot be read is missing, and is no reason to refuse claims: an unreadable record, a
// pod without the controller hugetlb, and a kernel that does not show the NUMA nodes of pages.
func TestHugepagesAreReadWhereTheyCanBe(t *testing.T) {
	records := pinned(t,
		record{Boot: "boot", Cgroup: "k/ended/a", Scope: ScopeContainer, Claims: []Claim{claimed("ended", "2", "1", PartitionRoot)}},
		record{Boot: "boot", Cgroup: "k/gone/b", Scope: ScopeContainer, Claims: []Claim{claimed("gone", "3", "1", PartitionRoot)}},
		record{Boot: "boot", Cgroup: "k/old/c", Scope: ScopeContainer, Claims: []Claim{claimed("old", "4", "1", PartitionRoot)}},
		record{Boot: "boot", Cgroup: "k/torn/d", Scope: ScopeContainer, Claims: []Claim{claimed("torn", "5", "1", PartitionRoot)}},
		record{Boot: "boot", Cgroup: "k/off", Scope: ScopePod, Claims: []Claim{claimed("off", "6", "", PartitionRoot)}},
	)
	records["damaged.json"] = &fstest.MapFile{Data: []byte("{")}
	cgroups := fstest.MapFS{}
	podOf(cgroups, "k/ended", "0", map[string]string{"hugetlb.2MB.numa_stat": "total=2097152 N0=0 N1=2097152\n"})
	podOf(cgroups, "k/old", "1", map[string]string{"hugetlb.2MB.current": "4194304\n"})
	podOf(cgroups, "k/torn", "1", map[string]string{"hugetlb.2MB.numa_stat": "total=x N0=0\n", "hugetlb.2MB.current": "2097152\n", "hugetlb.1GB.current": "max\n"})
	podOf(cgroups, "k/off", "1", nil)
	used, err := HugepagesUsed(cgroups, records, nil)
	want := []PodHugepages{
		{[]string{"off"}, map[string]HugepagesUse{}},
		{[]string{"old"}, map[string]HugepagesUse{"2Mi": {Bytes: 4 * mib}}},
		{[]string{"torn"}, map[string]HugepagesUse{"2Mi": {Bytes: 2 * mib}}},
	}
	if err != nil || !reflect.DeepEqual(used, want) {
		t.Errorf("pods have %+v, %v, want %+v", used, err, want)
	}
	if used, err := HugepagesUsed(cgroups, fstest.MapFS{}, nil); err != nil || len(used) > 0 {
		t.Errorf("without records: %+v, %v", used, err)
	}
}

// The keeper removes the record of a container that has ended. Its pod, which starts it again
// after a while, keeps the pages of files in its volumes.
func TestHugepagesOfPodsWithoutARecord(t *testing.T) {
	const waits, recorded, off = "8a6d0a4e-3f57-4d6c-9a50-5b3d5ad5a9f1", "8a6d0a4e-3f57-4d6c-9a50-5b3d5ad5a9f2", "8a6d0a4e-3f57-4d6c-9a50-5b3d5ad5a9f3"
	cgroups := fstest.MapFS{}
	const slice = "kubepods.slice/kubepods-pod8a6d0a4e_3f57_4d6c_9a50_5b3d5ad5a9f1.slice"
	podOf(cgroups, slice, "1", map[string]string{"hugetlb.2MB.current": "2097152\n"})
	podOf(cgroups, "kubepods/pod"+recorded, "1", map[string]string{"hugetlb.2MB.current": "4194304\n"})
	podOf(cgroups, "kubepods/pod"+off, "1", nil) // has perhaps not begun
	records := pinned(t, record{Boot: "boot", Cgroup: "kubepods/pod" + recorded + "/a", Scope: ScopeContainer, Claims: []Claim{claimed("job", "2", "1", PartitionRoot)}})
	used, err := HugepagesUsed(cgroups, records, map[string][]string{
		waits: {"other"}, recorded: {"job", "more"}, off: {"off"}, "8a6d0a4e-3f57-4d6c-9a50-5b3d5ad5a9f4": {"gone"},
	})
	want := []PodHugepages{
		{[]string{"other"}, map[string]HugepagesUse{"2Mi": {Bytes: 2 * mib}}},
		{[]string{"job", "more"}, map[string]HugepagesUse{"2Mi": {Bytes: 4 * mib}}},
	}
	if err != nil || !reflect.DeepEqual(used, want) {
		t.Errorf("pods have %+v, %v, want %+v", used, err, want)
	}
}
