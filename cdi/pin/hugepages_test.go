package pin

import (
	"maps"
	"testing"
	"testing/fstest"
)

const hugePod = "kubepods/burstable/pod1"

func TestHugepagesOfAPodAreThoseOfItsClaims(t *testing.T) {
	records := fstest.MapFS{}
	for _, r := range []record{
		{"boot", hugePod + "/one", ScopeContainer, []Claim{claimed("job", "2-3", "1", PartitionRoot)}},
		{"boot", hugePod + "/two", ScopeContainer, []Claim{claimed("job", "4", "1", PartitionRoot), claimed("other", "", "0", PartitionNone)}},
	} {
		text, err := r.render()
		if err != nil {
			t.Fatal(err)
		}
		records[r.file()] = &fstest.MapFile{Data: text}
	}
	cgroups := fstest.MapFS{
		hugePod + "/hugetlb.2MB.numa_stat":     {Data: []byte("total=6291456 N0=2097152 N1=4194304\n")},
		hugePod + "/hugetlb.1GB.numa_stat":     {Data: []byte("total=0 N0=0 N1=0\n")},
		hugePod + "/one/hugetlb.2MB.numa_stat": {Data: []byte("total=4194304 N0=0 N1=4194304\n")}, // a part of the pod's
	}
	used, err := HugepagesUsed(cgroups, records)
	if err != nil || len(used) != 2 {
		t.Fatal(used, err)
	}
	for claim, nodes := range used {
		for node, want := range map[int]uint64{0: 2 << 20, 1: 4 << 20} {
			if got := nodes[node]; !maps.Equal(got, map[string]uint64{"2Mi": want, "1Gi": 0}) {
				t.Errorf("claim %s has %v on NUMA node %d, want %d of 2Mi", claim, got, node, want)
			}
		}
	}
}
