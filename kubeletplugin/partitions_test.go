package kubeletplugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Each look is a letter, one second after the one before: "." no container,
// "o" as wanted, "x" a fault, "d" downgraded.
func TestFaultsThatLastAreTold(t *testing.T) {
	two := shareOf(2, 3)
	for looks, want := range map[string]string{
		".o.":     "",
		"xo":      "",                            // the hook was not yet done
		"xxxo":    "",                            // on a slow node
		"oxo":     "2 restored after 1s",         // repaired as soon as seen
		"oxxxxo":  "2 lost, 5 restored after 4s", // told once
		"oxxo..o": "2 lost, 3 restored after 2s", // another container
		"oxx..":   "2 lost",                      // it ended so
		"oxx.xo":  "2 lost",                      // and the next one begins
		"oddd":    "",                            // not a fault
		"oxdx":    "2 restored after 1s",         // downgraded is as wanted
	} {
		var watch faultWatch
		var got []string
		for i, look := range looks {
			var live []pin.Live
			if look != '.' {
				live = []pin.Live{{Cgroup: "pod/c", Claims: given("uid", 2, 3), Downgraded: look == 'd'}}
			}
			if look == 'x' {
				live[0].Fault = "root invalid"
			}
			states, turns := watch.look(time.Unix(int64(1000+i), 0), live)
			for _, turn := range turns {
				what := fmt.Sprintf("%d restored after %s", i, turn.lasted)
				if turn.lost {
					what = fmt.Sprintf("%d lost", i)
				}
				got = append(got, what)
				if turn.why != "root invalid" || len(turn.claims) != 1 {
					t.Errorf("%s: turn %+v", looks, turn)
				}
			}
			faulty := look == 'x' && slices.ContainsFunc(got, func(turn string) bool { return strings.HasSuffix(turn, " lost") }) && looks[i-1] == 'x'
			if state := states.of("uid", two); (state.whys[deviceclasses.FaultPartitionInvalid] != "") != faulty || state.downgraded != (look == 'd') {
				t.Errorf("%s: after look %d the claim is %+v", looks, i, state)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", looks, got, want)
		}
	}
}

// A hook that is at work for so long never ends.
func TestFaultThatWasAlwaysThere(t *testing.T) {
	var watch faultWatch
	two := shareOf(2, 3)
	live := []pin.Live{{Cgroup: "pod/c", Claims: given("uid", 2, 3), Fault: "root invalid"}}
	for _, test := range []struct {
		at   int64
		want string
	}{{0, ""}, {14, ""}, {15, "root invalid"}, {16, "root invalid"}} {
		states, turns := watch.look(time.Unix(1000+test.at, 0), live)
		if states.of("uid", two).whys[deviceclasses.FaultPartitionInvalid] != test.want || (len(turns) > 0) != (test.at == 15) {
			t.Errorf("after %d s: %+v, turns %+v, want fault %q", test.at, states, turns, test.want)
		}
	}
}

// A claim with two containers is as good as the worse of them.
func TestClaimOfTwoCgroups(t *testing.T) {
	var watch faultWatch
	live := []pin.Live{
		{Cgroup: "a", Claims: append(given("one", 2, 3), given("two", 4, 5)...), Fault: "root invalid"},
		{Cgroup: "b", Claims: given("two", 4), Downgraded: true},
	}
	watch.look(time.Unix(1000, 0), live)
	states, turns := watch.look(time.Unix(1015, 0), live)
	if len(turns) != 1 || len(turns[0].claims) != 2 {
		t.Errorf("turns %+v", turns)
	}
	for _, row := range []struct {
		claim string
		cpus  []int
		want  string // the fault, and whether it is downgraded
	}{
		{"one", []int{2, 3}, "root invalid false"},
		{"two", []int{4, 5}, "root invalid true"},
		{"two", []int{5}, "root invalid false"},
		{"two", []int{6}, " false"}, // another request of the claim
		{"three", []int{4}, " false"},
	} {
		state := states.of(types.UID(row.claim), shareOf(row.cpus...))
		if got := fmt.Sprint(state.whys[deviceclasses.FaultPartitionInvalid], " ", state.downgraded); got != row.want {
			t.Errorf("claim %s with cpus %d: %q, want %q", row.claim, row.cpus, got, row.want)
		}
	}
}

// given is what a claim gives a cgroup on NUMA node 0.
func given(claimUID string, cpus ...int) []pin.Claim {
	return []pin.Claim{{ClaimRef: pin.ClaimRef{UID: claimUID}, Pinning: pin.Pinning{CPUs: cpuset.New(cpus...), Mems: cpuset.New(0)}}}
}

// shareOf has memory of NUMA node 0 as well.
func shareOf(cpus ...int) ledger.Share {
	return ledger.Share{Request: "r", Device: "numa-0", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(cpus...), Partition: "root", MemoryBytes: 1 << 30}}
}

func TestWhatACgroupIsGiven(t *testing.T) {
	memory := pin.Pinning{Mems: cpuset.New(0, 1)}
	for name, row := range map[string]struct {
		given pin.Pinning
		share ledger.Share
		want  bool
	}{
		"its CPUs":                  {pin.Pinning{CPUs: cpuset.New(2, 3), Mems: cpuset.New(0)}, shareOf(2, 3), true},
		"of another request":        {pin.Pinning{CPUs: cpuset.New(4), Mems: cpuset.New(0)}, shareOf(2, 3), false},
		"memory only":               {memory, shareOf(), true},
		"memory beside CPUs":        {pin.Pinning{CPUs: cpuset.New(4), Mems: cpuset.New(0)}, shareOf(), true},
		"memory elsewhere":          {pin.Pinning{CPUs: cpuset.New(4), Mems: cpuset.New(1)}, shareOf(), false},
		"CPUs that the hook leaves": {memory, shareOf(2, 3), true},
		"CPUs without memory":       {pin.Pinning{CPUs: cpuset.New(2, 3)}, ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(2, 3), Partition: "root"}}, true},
		"neither CPUs nor memory":   {memory, ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}}}, false},
		"a PCI function":            {memory, ledger.Share{Kind: &ledger.FunctionShare{}}, false},
	} {
		if got := gives(row.given, row.share); got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
	}
}

func TestCPUsThatStayBlockedDoNotCount(t *testing.T) {
	var watch blockedWatch
	for _, look := range []struct {
		at            int64
		blocked, want cpuset.Set
	}{
		{-1, cpuset.New(1), cpuset.New(1)}, // the daemon of before may have reported it
		{0, cpuset.New(2, 3), cpuset.Set{}},
		{29, cpuset.New(2, 3, 5), cpuset.Set{}},
		{30, cpuset.New(2, 5), cpuset.New(2)},
		{31, cpuset.New(2, 3, 5), cpuset.New(2)}, // CPU 3 was free in between
		{59, cpuset.New(2, 3, 5), cpuset.New(2, 5)},
		{61, cpuset.New(2, 3, 5), cpuset.New(2, 3, 5)},
		{62, cpuset.Set{}, cpuset.Set{}},
		{63, cpuset.New(2), cpuset.Set{}},
	} {
		if got := watch.look(time.Unix(1000+look.at, 0), look.blocked); got != look.want {
			t.Errorf("after %d s with %s blocked: %s, want %s", look.at, look.blocked, got, look.want)
		}
	}
}
