package driver

import (
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// The kernel counts the hugepages of a pod, and not those of a claim. When the pages of a
// pod counted for each of its claims, a page in use stood for several promised ones. When
// pages that could not be seen counted as not used, they were promised for ever.
func TestPagesOfPodsWithSeveralClaims(t *testing.T) {
	const mib = 1 << 20
	byNode := func(node0, node1 uint64, claims ...types.UID) PodHugepages {
		return podWith(map[int]map[string]uint64{0: {"2Mi": node0 * mib}, 1: {"2Mi": node1 * mib}}, claims...)
	}
	sum := func(bytes uint64, claims ...types.UID) PodHugepages {
		return PodHugepages{Claims: claims, Sizes: map[string]HugepagesUse{"2Mi": {Bytes: bytes * mib}}}
	}
	unseen := func(claims ...types.UID) PodHugepages { return PodHugepages{Claims: claims} }
	held := []*resourceapi.ResourceClaim{
		withHugepages("a", "4Mi"), withHugepages("b", "4Mi"), withHugepages("c", "4Mi"),
		claim("d", consuming(result("r", "numa-0", 0), "hugepages2Mi=4Mi")), claim("cpus", result("r", "numa-1", 2)),
	}
	disk := newDisk(t)
	driver := disk.open()
	for _, claim := range held {
		mustPrepare(t, driver, claim)
	}
	for _, row := range []struct {
		name string
		pods []PodHugepages
		kept uint64 // MiB of NUMA node 1
		who  string
	}{
		{"no pod runs", nil, 12, "default/a 4Mi, default/b 4Mi, default/c 4Mi"},
		{"a claim each", []PodHugepages{byNode(0, 4, "uid-a"), byNode(0, 2, "uid-b")}, 6, "default/b 2Mi, default/c 4Mi"},
		{"one pod with two claims", []PodHugepages{byNode(0, 4, "uid-a", "uid-b")}, 8, "default/a and default/b 4Mi, default/c 4Mi"},
		{"it has all of them", []PodHugepages{byNode(0, 8, "uid-b", "uid-a")}, 4, "default/c 4Mi"},
		{"it has more than they hold", []PodHugepages{byNode(0, 10, "uid-a", "uid-b")}, 4, "default/c 4Mi"},
		{"pods that share a claim", []PodHugepages{byNode(0, 6, "uid-b", "uid-c"), byNode(0, 4, "uid-b", "uid-a")}, 2, "default/a and default/b and default/c 2Mi"},
		{"pods that share a claim, two pods first", []PodHugepages{byNode(0, 2, "uid-c"), byNode(0, 4, "uid-a"), byNode(0, 0, "uid-a", "uid-c")}, 6, "default/a and default/c 2Mi, default/b 4Mi"},
		{"pods that share a claim without hugepages", []PodHugepages{byNode(0, 8, "uid-a", "uid-cpus"), byNode(0, 0, "uid-b", "uid-cpus")}, 8, "default/b 4Mi, default/c 4Mi"},
		{"another NUMA node", []PodHugepages{byNode(4, 0, "uid-a", "uid-d")}, 12, "default/a 4Mi, default/b 4Mi, default/c 4Mi"},
		{"the sum, and one NUMA node", []PodHugepages{sum(3, "uid-a")}, 9, "default/a 1Mi, default/b 4Mi, default/c 4Mi"},
		{"the sum, and all of it can be elsewhere", []PodHugepages{sum(4, "uid-a", "uid-d")}, 12, "default/a 4Mi, default/b 4Mi, default/c 4Mi"},
		{"the sum, and a part cannot be elsewhere", []PodHugepages{sum(6, "uid-a", "uid-d")}, 10, "default/a 2Mi, default/b 4Mi, default/c 4Mi"},
		{"the sum of two pods", []PodHugepages{sum(6, "uid-a", "uid-d"), sum(2, "uid-d")}, 8, "default/b 4Mi, default/c 4Mi"},
		{"nothing is seen", []PodHugepages{unseen("uid-a", "uid-b")}, 4, "default/c 4Mi"},
		{"nothing is seen of one pod of two", []PodHugepages{unseen("uid-a"), byNode(0, 0, "uid-a", "uid-b"), byNode(0, 0, "uid-c")}, 4, "default/c 4Mi"},
		{"a pod of claims that have ended", []PodHugepages{byNode(0, 8, "uid-x")}, 12, "default/a 4Mi, default/b 4Mi, default/c 4Mi"},
	} {
		grants := driver.grants.Grants()
		slices.SortFunc(grants, ledger.ByAge)
		kept, _, who := driver.planner().keptHugepages(Hugepages{Pods: row.pods}, grants, cpuset.New(1), "2Mi")
		if kept != row.kept*mib || strings.Join(who, ", ") != row.who {
			t.Errorf("%s: %d MiB are kept for %q, want %d for %q", row.name, kept/mib, who, row.kept, row.who)
		}
	}
}
