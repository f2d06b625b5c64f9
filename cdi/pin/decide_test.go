package pin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	container := func(cgroup string, claims ...Claim) record {
		return record{Boot: "", Cgroup: cgroup, Scope: ScopeContainer, Claims: claims}
	}
	pod := func(cgroup string, claims ...Claim) record {
		return record{Boot: "", Cgroup: cgroup, Scope: ScopePod, Claims: claims}
	}
	job := claimed("job", "2-3", "0", PartitionRoot)
	for _, test := range []struct {
		name, want string
		live       []record
	}{
		{"alone", "k/p/a cpus=2-3 mems=0 root", []record{container("k/p/a", job)}},
		{
			"union and the higher kind", "k/p/a cpus=2-3,5 mems=0-1 isolated",
			[]record{container("k/p/a", claimed("extra", "5", "1", PartitionIsolated), job)},
		},
		{"two pods", "k/p/a cpus=2-3 mems=0 none downgraded\nk/q cpus=2-3 mems=0 none downgraded", []record{container("k/p/a", job), pod("k/q", job)}},
		{
			"two pods, one more claim", "k/p/a cpus=2-3,5 mems=0 none downgraded\nk/q/b cpus=2-3 mems=0 none downgraded\nk/q/c cpus=6 mems= root",
			[]record{
				container("k/p/a", claimed("extra", "5", "", PartitionRoot), job), container("k/q/b", job),
				container("k/q/c", claimed("x", "6", "", PartitionRoot)),
			},
		},
		{
			"shared with a container of the pod that wants none", "k/p/a cpus=2-3 mems=0 none downgraded\nk/p/b cpus=2-3 mems= none",
			[]record{container("k/p/a", job), container("k/p/b", claimed("job", "2-3", "", PartitionNone))},
		},
		{
			"two requests of a claim", "k/p/a cpus=2-3 mems=0 root\nk/p/b cpus=4-5 mems= isolated\nk/q cpus=6 mems= root",
			[]record{container("k/p/a", job), container("k/p/b", claimed("job", "4-5", "", PartitionIsolated)), pod("k/q", claimed("job", "6", "", PartitionRoot))},
		},
		{
			"a stale record of the same CPUs", "k/p/a cpus=2-3 mems=0 root\nk/q cpus=2-3 mems= root",
			[]record{container("k/p/a", job), pod("k/q", claimed("over", "2-3", "", PartitionRoot))},
		},
		{
			"a container in its pod's partition", "k/p cpus=2-5 mems= root\nk/p/a cpus=2-3 mems=0 none\nk/p/b cpus=2-5 mems= none",
			[]record{pod("k/p", claimed("job", "2-5", "", PartitionRoot)), container("k/p/a", claimed("job", "2-3", "0", PartitionNone)), container("k/p/b", claimed("job", "2-5", "", PartitionNone))},
		},
		{
			"one request in two pods, another in one", "k/p/a cpus=2-3 mems=0 none downgraded\nk/p/b cpus=4 mems= root\nk/q/c cpus=2-3 mems=0 none downgraded",
			[]record{container("k/p/a", job), container("k/p/b", claimed("job", "4", "", PartitionRoot)), container("k/q/c", job)},
		},
		{
			"memory of the claim elsewhere", "k/p cpus=2-3 mems=0 root\nk/p/a cpus= mems=1 none\nk/q/b cpus= mems=1 none",
			[]record{pod("k/p", job), container("k/p/a", claimed("job", "", "1", PartitionNone)), container("k/q/b", claimed("job", "", "1", PartitionNone))},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, d := range decide(test.live) {
				line := fmt.Sprintf("%s cpus=%s mems=%s %s", d.Cgroup, d.want.CPUs, d.want.Mems, d.want.Partition)
				if d.downgraded {
					line += " downgraded"
				}
				got = append(got, line)
			}
			if text := strings.Join(got, "\n"); text != test.want {
				t.Errorf("decided\n%s\nwant\n%s", text, test.want)
			}
		})
	}
}

// However containers come and go, what is decided has no CPU of a claim in a
// partition and elsewhere too, and does not depend on the order.
func TestDecideKeepsClaimsApart(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		var live []record
		for range 12 {
			uid := random.IntN(4) // claim n has CPUs 2n and 2n+1
			claim := claimed(fmt.Sprint(uid), fmt.Sprintf("%d-%d", 2*uid, 2*uid+1), "0", Partition(random.IntN(3)))
			scope := []Scope{ScopeContainer, ScopePod}[random.IntN(2)]
			admitted, err := admit(live, "", fmt.Sprintf("k/p%d/c%d", random.IntN(3), random.IntN(20)), scope, claim)
			if err == nil {
				live = replaced(live, admitted)
			}
			if random.IntN(4) == 0 && len(live) > 0 {
				live = slices.Delete(live, 0, 1)
			}
		}
		decided := decide(live)
		for i, d := range decided {
			for j, other := range decided {
				inside := isWithin(other.Cgroup, d.Cgroup) && other.want.Partition == PartitionNone
				if i == j || inside || d.want.Partition == PartitionNone || !d.want.CPUs.Overlaps(other.want.CPUs) {
					continue
				}
				t.Fatalf("seed %d: %s has partition %s of cpus %s, and %s has %s", seed, d.Cgroup, d.want.Partition, d.want.CPUs, other.Cgroup, other.want.CPUs)
			}
		}
		random.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
		for _, d := range decide(live) {
			i := slices.IndexFunc(decided, func(old decision) bool { return old.Cgroup == d.Cgroup })
			if decided[i].want != d.want || decided[i].downgraded != d.downgraded {
				t.Fatalf("seed %d: in another order %s has %v", seed, d.Cgroup, d.want)
			}
		}
	}
}
