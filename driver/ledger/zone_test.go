package ledger

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestKernelShowsThePolicyAs(t *testing.T) {
	for _, row := range []struct {
		share ZoneShare
		want  string
	}{
		{ZoneShare{NUMANodes: []int{1}, MemoryBytes: 1}, ""},
		{ZoneShare{NUMANodes: []int{0, 1}, MemoryBytes: 1, MemoryPolicy: "bind"}, "bind:0-1"},
		{ZoneShare{NUMANodes: []int{1}, MemoryPolicy: "bind"}, ""}, // another request of the claim has the memory
		{ZoneShare{NUMANodes: []int{1}, MemoryPolicy: "preferred"}, "prefer:1"},
		{ZoneShare{NUMANodes: []int{0, 2}, MemoryBytes: 1, MemoryPolicy: "preferred"}, "prefer (many):0,2"},
		{ZoneShare{NUMANodes: []int{0, 1}, MemoryPolicy: "interleave"}, "interleave:0-1"},
		{ZoneShare{NUMANodes: []int{3}, MemoryPolicy: "weighted-interleave"}, "weighted interleave:3"},
	} {
		for _, partitions := range []bool{true, false} {
			if got := row.share.spec(partitions).(*cdi.Zone).MemoryPolicy; got != row.want {
				t.Errorf("%+v: %q, want %q", row.share, got, row.want)
			}
			if _, err := pin.ParseMemoryPolicy(row.want); err != nil && row.want != "" {
				t.Error(err)
			}
		}
	}
}

func TestKernelExclusive(t *testing.T) {
	some := cpuset.New(2, 3)
	for name, row := range map[string]struct {
		share     Share
		want      bool
		partition string // that the hook makes
	}{
		"root":        {Share{Kind: &ZoneShare{NUMANodes: []int{0}, CPUs: some, Partition: "root"}}, true, "root"},
		"isolated":    {Share{Kind: &ZoneShare{NUMANodes: []int{0}, CPUs: some, Partition: "isolated"}}, true, "isolated"},
		"of a pod":    {Share{Kind: &ZoneShare{NUMANodes: []int{0}, CPUs: some, Partition: "root", Scope: ScopePod}}, true, "root"},
		"none":        {Share{Kind: &ZoneShare{NUMANodes: []int{0}, CPUs: some, Partition: "none"}}, false, "none"},
		"shared":      {Share{Kind: &ZoneShare{NUMANodes: []int{0}, CPUs: some, Partition: "root", Scope: ScopeShared}}, false, "none"},
		"mixed":       {Share{Kind: &ZoneShare{NUMANodes: []int{0}, CPUs: some, Partition: "root", Mixed: true}}, false, "none"},
		"memory only": {Share{Kind: &ZoneShare{NUMANodes: []int{0}}}, false, "none"},
	} {
		if got := row.share.KernelExclusive(); got != row.want || row.share.Spec(true).Kind.(*cdi.Zone).Partition != row.partition {
			t.Errorf("%s: %t and the hook makes a %s, want %t and %s", name, got, row.share.Spec(true).Kind.(*cdi.Zone).Partition, row.want, row.partition)
		}
	}
}
