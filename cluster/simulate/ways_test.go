package simulate

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// growing is a pod with ways of the pool besteffort of cache 0, up to a maximum; 0 for that of
// the pool.
func growing(name, amounts string, most int) string {
	pod := cachePod(name, "silver", 1, amounts, "0")
	if most == 0 {
		return pod
	}
	return strings.Replace(pod, "constraints:", fmt.Sprintf("config: [{requests: [cache], opaque: {driver: dra.numa, "+
		"parameters: {apiVersion: dra.numa/v1alpha1, kind: CacheConfig, maxWays: %d}}}], constraints:", most), 1)
}

// waysOf returns lines such as "a 2 5 5": minimum, reachable and maximum.
func waysOf(result Result) (lines []string) {
	for _, pod := range result.Pods {
		for _, claim := range pod.Claims {
			for _, a := range claim.Allocations {
				if a.Ways != nil {
					lines = append(lines, fmt.Sprint(strings.TrimPrefix(pod.Pod, "default/"), " ", a.Ways.Min, " ", a.Ways.Reachable, " ", a.Ways.Max))
				}
			}
		}
	}
	return lines
}

func TestBestEffortClaimsReachWhatIsLeft(t *testing.T) {
	const fixed = `{os: {ways: 1}, besteffort: {ways: 7, defaultMinWays: 2, defaultMaxWays: 5, growing: false}}`
	three := []string{growing("a", "", 0), growing("b", "", 0), growing("c", "", 0)}
	unpublished := func(s *snapshot.Snapshot) {
		for i := range s.Slices[0].Spec.Devices {
			delete(s.Slices[0].Spec.Devices[i].Attributes, deviceclasses.AttributeDefaultMaxWays)
		}
	}
	// running is pod r with a claim of cache 0, whose status is a document.
	running := func(reservedFor, document string) []string {
		status := allocated("cache", "dra.numa", "cache-0-besteffort", shareID, `consumedCapacity: {ways: "2", classes: "1"}`)
		status = strings.ReplaceAll(status, "pool: n1", "pool: worker-1")
		if document != "" {
			status += "\n  devices: [{driver: dra.numa, pool: worker-1, device: cache-0-besteffort, " + shareID + ", data: " + document + "}]"
		}
		held := claim("held", "requests: [{name: cache, exactly: {deviceClassName: silver}}]", status)
		if reservedFor != "" {
			held = reserved(held, reservedFor)
		}
		return []string{held, growing("a", "", 0)}
	}
	for name, row := range map[string]struct {
		pools  string
		pods   []string
		change func(*snapshot.Snapshot)
		want   []string
	}{
		"one after the other":       {occupied.AllPools, three, nil, []string{"a 2 5 5", "b 2 3 5", "c 2 2 5"}},
		"a maximum of its own":      {occupied.AllPools, []string{growing("a", "ways: 1", 7), growing("b", "ways: 1", 2)}, nil, []string{"a 1 7 7", "b 1 2 2"}},
		"more than the pool has":    {occupied.AllPools, []string{growing("a", "", 8), growing("b", "", 0)}, nil, []string{"a 2 0 0", "b 2 0 5"}},
		"less than its minimum":     {occupied.AllPools, []string{growing("a", "ways: 6", 0)}, nil, []string{"a 6 0 0"}},
		"claims do not grow":        {fixed, []string{growing("a", "", 0), growing("b", "", 3)}, nil, []string{"a 2 0 0", "b 2 0 3"}},
		"a node of an older driver": {occupied.AllPools, three[:1], unpublished, []string{"a 2 0 0"}},
		"other claims are hidden":   {occupied.AllPools, three[:1], func(s *snapshot.Snapshot) { s.Unseen = []snapshot.Unseen{{}} }, []string{"a 2 0 5"}},
		"a claim that is reserved":  {occupied.AllPools, running("r", ""), nil, []string{"a 2 3 5"}},
		"a claim that nobody uses":  {occupied.AllPools, running("", ""), nil, []string{"a 2 5 5"}},
		"a claim that is prepared":  {occupied.AllPools, running("r", `{pool: besteffort, l3: 0, group: dra-numa.2, request: cpus, ways: 2, maxWays: 2}`), nil, []string{"a 2 5 5"}},
		"a second pod of a claim": {occupied.AllPools, []string{
			claim("c", "requests: [{name: cache, exactly: {deviceClassName: silver}}]", ""), using("a", "c"), using("b", "c"),
		}, nil, []string{"a 2 5 5", "b 2 0 5"}},
		"guaranteed": {occupied.AllPools, []string{cachePod("a", "gold", 1, "", "")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := divided(t, row.pools, row.pods...)
			if row.change != nil {
				row.change(s)
			}
			result, err := cluster(t, s, "").Run(t.Context(), s.Waiting(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, waysOf(result)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The number is what the driver gives the claim.
func TestClaimReachesWhatTheDriverGives(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	said := 0
	for range 30 {
		var pods []string
		most := make(map[string]int)
		for i := range 1 + r.IntN(5) {
			name, least := fmt.Sprintf("p%d", i), 1+r.IntN(3)
			if r.IntN(2) == 0 {
				most["default/"+name] = least + r.IntN(8-least)
			}
			pods = append(pods, growing(name, fmt.Sprintf("ways: %d", least), most["default/"+name]))
		}
		s, c := object.Snapshot(t, append(pods, zoneClass, cacheClasses)...), occupied.New(t)
		node := c.AddDivided("worker-1", occupied.AllPools)
		s.Nodes, s.Slices = c.Nodes, c.Slices
		result, err := cluster(t, s, "").Run(t.Context(), s.Waiting(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var held []caches.Holding
		for i, pod := range result.Pods {
			given := pod.Claims[0].Allocations[1]
			ask, err := node.Ask(resourceapi.DeviceRequestAllocationResult{Device: given.Device, ConsumedCapacity: given.ConsumedCapacity}, deviceclasses.CacheConfig{MaxWays: most[pod.Pod]})
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, caches.Holding{Ask: ask, Group: 2 + i, CPUs: cpuset.New(i)})
			goal := node.Goal(held, numa.ResctrlState{})
			at := slices.IndexFunc(goal.Wanted.Groups, func(g resctrl.Group) bool { return g.Name == resctrl.Name(2+i) })
			mask, _ := goal.Wanted.Groups[at].Schemata.Mask("L3", 0)
			if want := (Ways{ask.MinWays, bits.OnesCount64(mask), ask.MaxWays}); *given.Ways != want {
				t.Errorf("%s: %+v, want %+v", pod.Pod, *given.Ways, want)
			}
			said++
		}
	}
	if said < 50 {
		t.Errorf("%d claims", said)
	}
}
