package driver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// TestScopesAgainstASimulatedPod takes random pods through every state in which the
// kubelet can bring them, with partitions as the scopes say. It checks that no
// container ever misses a CPU of its claims, or shares one that it should not share.
func TestScopesAgainstASimulatedPod(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 5))
	seen := map[string]int{}
	for i := range 20_000 {
		line := randomPod(random)
		shares := []string{"a/r"}
		for _, more := range []string{"b/r", "c/r+mixed", "c/s"} {
			if random.IntN(2) == 0 {
				shares = append(shares, more)
			}
		}
		scopes := strings.Fields(scopesOf([]string{line}, strings.Join(shares, " ")))
		for _, scope := range scopes {
			seen[scope]++
		}
		if problem := simulate(line, shares, scopes); problem != "" {
			t.Fatalf("pod %d, %s, has %v with scopes %v: %s", i, line, shares, scopes, problem)
		}
		if len(shares) == 1 && scopes[0] == ledger.ScopeShared {
			for _, better := range []string{"container", ledger.ScopePod} {
				if simulate(line, shares, []string{better}) == "" {
					t.Fatalf("pod %d, %s: %s is shared, but could be of a %s", i, line, shares[0], better)
				}
			}
		}
	}
	for _, scope := range []string{"container", ledger.ScopePod, ledger.ScopeShared} {
		if seen[scope] < 500 {
			t.Errorf("scope %s was decided %d times", scope, seen[scope])
		}
	}
}

func randomPod(random *rand.Rand) string {
	var line []string
	add := func(kind string) {
		var uses []string
		for _, use := range []string{"a", "a", "b", "c/r", "c/s", "c"}[random.IntN(2):] {
			if random.IntN(3) == 0 {
				uses = append(uses, use)
			}
		}
		line = append(line, kind+":"+strings.Join(uses, ","))
	}
	for range random.IntN(3) {
		add([]string{"init", "side"}[random.IntN(2)])
	}
	for range 1 + random.IntN(2) {
		add("main")
	}
	return strings.Join(line, " ")
}

// simulated is a container that runs or has run.
type simulated struct {
	kind string
	uses []string // its shares
}

// simulate returns what is wrong at the first moment when something is wrong.
func simulate(line string, shares, scopes []string) string {
	var containers []simulated
	for word := range strings.FieldsSeq(line) {
		kind, uses, _ := strings.Cut(word, ":")
		next := simulated{kind: kind}
		for _, share := range shares {
			name, _, _ := strings.Cut(share, "+")
			claim, _, _ := strings.Cut(name, "/")
			list := strings.Split(uses, ",")
			if slices.Contains(list, claim) || slices.Contains(list, name) {
				next.uses = append(next.uses, share)
			}
		}
		containers = append(containers, next)
	}
	var pod []string // shares in the pod's partition, which stays as long as the pod
	var running []int
	for i, container := range containers {
		running = append(running, i)
		for _, share := range container.uses {
			if scopes[slices.Index(shares, share)] == ledger.ScopePod && !slices.Contains(pod, share) {
				pod = append(pod, share)
			}
		}
		// Sidecars and main containers may end or start again at any time.
		for subset := range 1 << len(running) {
			var now []int
			for bit, index := range running {
				if subset>>bit&1 == 1 {
					now = append(now, index)
				}
			}
			if problem := moment(containers, now, pod, shares, scopes); problem != "" {
				return problem
			}
		}
		if container.kind == "init" {
			running = running[:len(running)-1]
		}
	}
	return ""
}

// moment checks the containers that run now.
func moment(containers []simulated, now []int, pod, shares, scopes []string) string {
	owner := map[string]int{} // by share: the container whose partition has it
	scopeOf := func(share string) string { return scopes[slices.Index(shares, share)] }
	for _, i := range now {
		uses := containers[i].uses
		own := slices.DeleteFunc(slices.Clone(uses), func(share string) bool {
			return scopeOf(share) != "container" || strings.HasSuffix(share, "+mixed")
		})
		if missing := slices.DeleteFunc(slices.Clone(uses), func(s string) bool { return slices.Contains(own, s) }); len(own) > 0 && len(missing) > 0 {
			return fmt.Sprintf("container %d is a partition without %v", i, missing)
		}
		if len(own) > 0 && len(pod) > 0 {
			return fmt.Sprintf("container %d is a partition of its own in that of the pod", i)
		}
		for _, share := range own {
			if other, taken := owner[share]; taken {
				return fmt.Sprintf("%s is in the partitions of containers %d and %d", share, other, i)
			}
			owner[share] = i
		}
	}
	for _, i := range now {
		uses := containers[i].uses
		if len(pod) > 0 && !slices.ContainsFunc(uses, func(share string) bool { return slices.Contains(pod, share) }) {
			return fmt.Sprintf("container %d is in the partition of the pod, but has none of %v", i, pod)
		}
		for _, share := range uses {
			if len(pod) > 0 && !slices.Contains(pod, share) {
				return fmt.Sprintf("container %d is in the partition of the pod, without its %s", i, share)
			}
			if other, taken := owner[share]; taken && other != i {
				return fmt.Sprintf("%s is in the partition of container %d, and container %d has it", share, other, i)
			}
		}
	}
	return ""
}
