package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// cacheClasses are a class for each policy.
var cacheClasses = func() (text string) {
	for class, pool := range map[string]string{"gold": "guaranteed", "silver": "besteffort", "bronze": "shared"} {
		text += object.ClassText(class, fmt.Sprintf(`device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "cache" && device.attributes["dra.numa"].pool == %q`, pool))
	}
	return text
}()

// cachePod is a pod that asks for CPUs and part of the cache next to them. amounts are like
// "ways: 4". l3 is the id of the only cache that it takes, or "".
func cachePod(name, class string, cpus int, amounts, l3 string) string {
	selector := ""
	if l3 != "" {
		selector = fmt.Sprintf(`, selectors: [{cel: {expression: 'device.attributes["dra.numa"].l3 == %s'}}]`, l3)
	}
	cache := fmt.Sprintf("{name: cache, exactly: {deviceClassName: %s, capacity: {requests: {%s}}%s}}", class, amounts, selector)
	return claimingPod(name, "requests: ["+zoneRequest("cpus", fmt.Sprintf("cpu: %d", cpus))+", "+cache+"], "+
		"constraints: [{requests: [cpus, cache], matchAttribute: dra.numa/l3}]")
}

// divided is a cluster of one node whose two caches are divided into these pools, with pods
// that wait.
func divided(t *testing.T, pools string, pods ...string) *snapshot.Snapshot {
	t.Helper()
	s := object.Snapshot(t, append(slices.Clone(pods), zoneClass, cacheClasses)...)
	c := occupied.New(t)
	c.AddDivided("worker-1", pools)
	s.Nodes, s.Slices = append(s.Nodes, c.Nodes...), append(s.Slices, c.Slices...)
	return s
}

const fewerWays = "no device has enough ways, and the claim cannot have devices that differ in dra.numa/l3: ask for less"

// Cases that users of caches know: where the pods go, and what explain says of the last
// one. The last pod is named p.
func TestCachesArePlacedAndExplained(t *testing.T) {
	const (
		ten   = "{os: {ways: 1}, guaranteed: {ways: 10}}"
		three = "{os: {ways: 1}, guaranteed: {ways: 10, classes: 3}}"
		valid = "{os: {ways: 1}, guaranteed: {ways: 10, validWays: [1, 2, 4]}}"
	)
	four := func(name string) string { return cachePod(name, "gold", 3, "ways: 4", "") }
	one := func(name string) string { return cachePod(name, "gold", 1, "ways: 1", "0") }
	const nameWays = "hint: name ways in the request's capacity: otherwise the request takes the driver's default, or all of it"
	var members, isMember, holdsMember []string
	for i := range 10 {
		name := fmt.Sprintf("m%d", i)
		members = append(members, cachePod(name, "bronze", 1, "", "0"))
		isMember = append(isMember, name+" cache-0-shared")
		holdsMember = append(holdsMember, "  pod default/"+name+" would hold 1 members of cache-0-shared")
	}
	for name, row := range map[string]struct {
		pools string
		pods  []string
		want  []string
	}{
		"five pods of 4 ways": {ten, []string{four("a"), four("b"), four("c"), four("d"), four("p")}, []string{
			"a cache-0-guaranteed", "b cache-0-guaranteed", "c cache-1-guaranteed", "d cache-1-guaranteed",
			"capacity: request cache: asks for 4 ways of one device: cache-0-guaranteed has 2 of 10 left, cache-1-guaranteed has 2 of 10 left",
			"  pod default/a would hold 4 ways of cache-0-guaranteed",
			"  pod default/b would hold 4 ways of cache-0-guaranteed",
			"  pod default/c would hold 4 ways of cache-1-guaranteed",
			"  pod default/d would hold 4 ways of cache-1-guaranteed",
			"hint: " + fewerWays,
		}},
		"ways here and CPUs there": {
			ten, []string{cachePod("a", "gold", 1, "ways: 9", "0"), cachePod("b", "gold", 18, "ways: 1", "1"), cachePod("p", "gold", 3, "ways: 2", "")}, []string{
				"a cache-0-guaranteed", "b cache-1-guaranteed",
				"constraint: request cpus: no value of dra.numa/l3 has enough devices for all requests that must match: cpus finds 0 on numa-0; cache finds 1 on cache-1-guaranteed",
				"capacity: request cpus: asks for 3 cpu of one device: numa-1 has 2 of 20 left",
				"  pod default/b would hold 18 cpu of numa-1",
				"capacity: request cache: asks for 2 ways of one device: cache-0-guaranteed has 1 of 10 left",
				"  pod default/a would hold 9 ways of cache-0-guaranteed",
			},
		},
		"no class is left": {three, []string{one("a"), one("b"), one("c"), one("p")}, []string{
			"a cache-0-guaranteed", "b cache-0-guaranteed", "c cache-0-guaranteed",
			"capacity: request cache: every request takes 1 classes of one device: cache-0-guaranteed has 0 of 3 left",
			"  pod default/a would hold 1 classes of cache-0-guaranteed",
			"  pod default/b would hold 1 classes of cache-0-guaranteed",
			"  pod default/c would hold 1 classes of cache-0-guaranteed",
		}},
		"the quota of members": {occupied.AllPools, append(members, cachePod("p", "bronze", 1, "", "0")), slices.Concat(
			isMember, []string{"capacity: request cache: every request takes 1 members of one device: cache-0-shared has 0 of 10 left"}, holdsMember,
		)},
		"bandwidth of 110": {ten, []string{cachePod("p", "gold", 1, "ways: 1, bandwidthPercent: 110", "")}, []string{
			"capacity: request cache: asks for 110 bandwidthPercent of one device: cache-0-guaranteed allows at most 100 per request, cache-1-guaranteed allows at most 100 per request",
			"hint: ask for at most 100 bandwidthPercent: no request gets more of one device",
		}},
		"bandwidth in MBps": {ten, []string{cachePod("p", "gold", 1, "ways: 1, bandwidthMBps: 1000", "")}, []string{
			`capacity: request cache: no device has a capacity named "bandwidthMBps"`,
			"hint: the devices have these capacities: bandwidthPercent, classes, ways",
		}},
		"validWays": {valid, []string{cachePod("p", "gold", 1, "ways: 5", "")}, []string{
			"capacity: request cache: asks for 5 ways of one device: cache-0-guaranteed allows at most 4 per request, cache-1-guaranteed allows at most 4 per request",
			"hint: ask for at most 4 ways: no request gets more of one device",
		}},
		"minima of besteffort": {occupied.AllPools, []string{
			cachePod("a", "silver", 1, "", "0"), cachePod("b", "silver", 1, "", "0"), cachePod("c", "silver", 1, "", "0"), cachePod("p", "silver", 1, "", "0"),
		}, []string{
			"a cache-0-besteffort", "b cache-0-besteffort", "c cache-0-besteffort",
			"capacity: request cache: the request does not name capacity ways, so it takes 2 of one device: cache-0-besteffort has 1 of 7 left",
			"  pod default/a would hold 2 ways of cache-0-besteffort",
			"  pod default/b would hold 2 ways of cache-0-besteffort",
			"  pod default/c would hold 2 ways of cache-0-besteffort",
			nameWays,
		}},
		"ways of members": {occupied.AllPools, []string{cachePod("p", "bronze", 1, "ways: 1", "")}, []string{
			`capacity: request cache: no device has a capacity named "ways"`,
			"hint: the devices have these capacities: members",
		}},
		"a pool that the node lacks": {ten, []string{cachePod("p", "bronze", 1, "", "")}, []string{
			"class: request cache: 4 devices are not of class bronze: device.attributes[\"dra.numa\"].pool == \"shared\" is not met: cache-0-guaranteed has dra.numa/pool \"guaranteed\", cache-1-guaranteed has dra.numa/pool \"guaranteed\"",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := divided(t, row.pools, row.pods...)
			c := cluster(t, s, "")
			waiting := s.Waiting()
			result, err := c.Run(t.Context(), waiting[:len(waiting)-1], Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, pod := range result.Pods {
				for _, claim := range pod.Claims {
					got = append(got, strings.TrimPrefix(pod.Pod, "default/")+" "+claim.Allocations[1].Device)
				}
			}
			e, err := c.ExplainPod(t.Context(), waiting[len(waiting)-1])
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range obstacles(e.Nodes[0]) {
				line, _, _ = strings.Cut(line, " through claim ") // its name is made up
				got = append(got, line)
			}
			for _, hint := range e.Hints {
				got = append(got, "hint: "+hint)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// On nodes without resctrl there is no device of kind cache at all.
func TestNoNodeHasCaches(t *testing.T) {
	e := explain(t, zonedNode("n1", []zone{{8, 1, "8Gi"}}), zonedNode("n2", []zone{{8, 1, "8Gi"}}), zoneClass, cacheClasses, cachePod("p", "gold", 1, "ways: 4", ""))
	want := []string{"no node has a device whose dra.numa/kind is cache, which class gold requires"}
	if diff := cmp.Diff(want, e.Hints); diff != "" || e.Nodes[1].Obstacles[0].Absent != funnel.Kind("dra.numa/kind", "cache") {
		t.Errorf("%+v, hints (-want +got):\n%s", e.Nodes[1].Obstacles, diff)
	}
	// A node that has caches makes this no reason for the others.
	s := divided(t, "{os: {ways: 1}, guaranteed: {ways: 10}}", zonedNode("n1", []zone{{8, 1, "8Gi"}}), cachePod("p", "gold", 1, "ways: 11", ""))
	e, err := cluster(t, s, "").ExplainPod(t.Context(), s.Pod("default", "p"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{fewerWays}, e.Hints); diff != "" || len(e.Nodes) != 2 {
		t.Errorf("%d nodes, hints (-want +got):\n%s", len(e.Nodes), diff)
	}
}
