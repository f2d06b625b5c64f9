package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// mixedClaim has a CPU and a way of the cache of a zone of the test's node, and also runs
// on shared CPUs.
func mixedClaim(name string, zone int) *resourceapi.ResourceClaim {
	return configured(ownClaim(name, zone), fromClaim(`"mixed": true`))
}

// ownClaim is the same without shared CPUs.
func ownClaim(name string, zone int) *resourceapi.ResourceClaim {
	return claim(name, result("cpus", fmt.Sprintf("numa-%d", zone), 1), ofCache("cache", fmt.Sprintf("cache-%d-guaranteed", zone), "ways=1", "bandwidthPercent=40"))
}

// The test's node has classes 2 to 7.
func TestContainersOfAMixedClaimJoinItsGroup(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	mustPrepare(t, driver, mixedClaim("a", 1))
	if got := n.group(7); got != "4: 3 4@40" {
		t.Errorf("group of the claim: %s", got)
	}
	if text := n.files()[specName("uid-a")]; !strings.Contains(text, `"intelRdt":{"closID":"dra-numa.7"}`) || !strings.Contains(text, `"--group=dra-numa.7"`) || !strings.Contains(text, `"cdiVersion":"0.7.0"`) {
		t.Errorf("CDI spec %s", text)
	}
	mustPrepare(t, driver, ownClaim("b", 1))
	if text := n.files()[specName("uid-b")]; strings.Contains(text, "intelRdt") || !strings.Contains(text, `"cdiVersion":"0.6.0"`) {
		t.Errorf("CDI spec of a claim that is not mixed %s", text)
	}
}

// Tasks of the group have its ways in each cache, so no claim has others there.
func TestGroupThatIsJoinedServesNoOtherClaim(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2, bandwidthPercent: 50}, guaranteed: {ways: 8, classes: 2}}")
	driver := n.open()
	mustPrepare(t, driver, ownClaim("own", 0))
	mustPrepare(t, driver, mixedClaim("mixed", 1))
	if own, mixed := n.group(2), n.group(3); own != "2: 4@40 3" || mixed != "4: 3@50 4@40" {
		t.Errorf("groups %s and %s", own, mixed)
	}
	_, _, err := driver.Prepare(ownClaim("more", 0), nil)
	if err == nil || !strings.Contains(err.Error(), "request cache: no class is left in cache 0: claims use all 2") {
		t.Errorf("error %v", err)
	}
	_, _, err = driver.Prepare(mixedClaim("more", 1), nil)
	if err == nil || !strings.Contains(err.Error(), "no class is left that no claim uses in any cache: a mixed claim needs such a class, and claims use all 2") {
		t.Errorf("error %v", err)
	}

	driver.RepairCaches()
	classes := func() (list []string) {
		for _, device := range driver.Publish(func(types.UID, ledger.Share) string { return "" }, cpuset.Set{}).Devices {
			if classes, isCache := device.Capacity["classes"]; isCache {
				list = append(list, device.Name+" "+classes.Value.String())
			}
		}
		return list
	}
	if got, want := classes(), []string{"cache-0-guaranteed 1", "cache-1-guaranteed 2"}; !slices.Equal(got, want) {
		t.Errorf("published classes %q, want %q", got, want)
	}
	driver.SetMachine(n.machine)
	if got, want := classes(), []string{"cache-0-guaranteed 1", "cache-1-guaranteed 2"}; !slices.Equal(got, want) {
		t.Errorf("published classes after the machine was read again %q, want %q", got, want)
	}
	if err := driver.Unprepare("uid-mixed"); err != nil {
		t.Fatal(err)
	}
	if report := driver.RepairCaches(); !report.Changed {
		t.Error("nothing new is published")
	}
	if got, want := classes(), []string{"cache-0-guaranteed 2", "cache-1-guaranteed 2"}; !slices.Equal(got, want) {
		t.Errorf("published classes %q, want %q", got, want)
	}
	mustPrepare(t, driver, ownClaim("more", 0))
}

func TestMixedClaimOfTwoCachesHasOneGroup(t *testing.T) {
	n := newCacheNode(t, tenWays)
	wanted := configured(claim("a",
		result("near", "numa-1", 1), ofCache("near-cache", "cache-1-guaranteed", "ways=1"),
		result("far", "numa-0", 1), ofCache("far-cache", "cache-0-guaranteed", "ways=2"),
	), fromClaim(`"mixed": true`, "near", "far"), cacheFor("near-cache", "near"), cacheFor("far-cache", "far"))
	mustPrepare(t, n.open(), wanted)
	if got := n.group(7); got != "2,4: c 4" {
		t.Errorf("group of the claim: %s", got)
	}
}

func cacheFor(cache, cpus string) resourceapi.DeviceAllocationConfiguration {
	config := fromClaim(`"cpus": "`+cpus+`"`, cache)
	config.Opaque.Parameters.Raw = []byte(strings.Replace(string(config.Opaque.Parameters.Raw), "ZoneConfig", "CacheConfig", 1))
	return config
}

func TestMembersOfSharedJoinTheirGroup(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2}, shared: {ways: 3, members: 10}}")
	driver := n.open()
	for _, name := range []string{"a", "b"} {
		mustPrepare(t, driver, configured(claim(name, result("cpus", "numa-1", 1), ofCache("cache", "cache-1-shared", "members=1")), fromClaim(`"mixed": true`)))
		if text := n.files()[specName(types.UID("uid-"+name))]; !strings.Contains(text, `"closID":"dra-numa.1"`) {
			t.Errorf("CDI spec %s", text)
		}
	}
}

func TestContainerJoinsOneGroupOnly(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	pod := object.Parse[corev1.Pod](t, `
metadata: {name: p, namespace: default}
spec:
  resourceClaims: [{name: one, resourceClaimName: a}, {name: two, resourceClaimName: b}]
  containers:
  - {name: main, resources: {claims: [{name: one}, {name: two, request: cpus}]}}
  - {name: side, resources: {claims: [{name: two}]}}`)
	if _, _, err := driver.Prepare(mixedClaim("a", 1), []*corev1.Pod{pod}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := driver.Prepare(mixedClaim("b", 1), []*corev1.Pod{pod}); err != nil {
		t.Errorf("two containers: %v", err)
	}
	if err := driver.Unprepare("uid-b"); err != nil {
		t.Fatal(err)
	}
	pod.Spec.Containers[0].Resources.Claims[1].Request = ""
	_, _, err := driver.Prepare(mixedClaim("b", 1), []*corev1.Pod{pod})
	if want := "container main of pod p would have the ways of dra-numa.6 and dra-numa.7: a container can have those of one mixed claim only"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// checkJoined fails if a group that containers join has ways of another claim in any
// cache. The default group has one way.
func (n *cacheNode) checkJoined(driver *Driver, step int) {
	n.t.Helper()
	users := make(map[string][]string)
	for _, grant := range driver.Grants() {
		for _, share := range grant.Shares {
			if cache := share.Cache(); cache != nil {
				name := resctrl.Name(cache.Group)
				users[name] = append(users[name], grant.Name)
			}
		}
	}
	for _, grant := range driver.Grants() {
		for _, share := range grant.Shares {
			joined := grant.JoinedGroup(share)
			if joined == "" {
				continue
			}
			if len(users[joined]) != 1 {
				n.t.Fatalf("step %d: containers join %s, which serves claims %q", step, joined, users[joined])
			}
			cache := share.Cache()
			if ways := strings.Fields(n.group(cache.Group))[2-cache.L3]; ways != "1" {
				n.t.Fatalf("step %d: containers join %s, which has ways %s of the other cache", step, joined, ways)
			}
		}
	}
}
