package driver

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

// cacheNode is a machine with a kernel that divides its two caches of 12 ways.
type cacheNode struct {
	disk
	groups *resctrlfs.FS
	pools  string
}

// tenWays leaves one class of the kernel to other tools.
const tenWays = "{os: {ways: 2}, guaranteed: {ways: 4, classes: 3}, besteffort: {ways: 4, classes: 3, defaultMinWays: 1, defaultMaxWays: 3}}"

func newCacheNode(t testing.TB, pools string) *cacheNode {
	t.Helper()
	return &cacheNode{newDisk(t), resctrlfs.New(resctrlfs.Rig(resctrlfs.Linux612, 2)), pools}
}

// newOneCacheNode returns a node whose NUMA nodes have one cache together.
func newOneCacheNode(t *testing.T) *cacheNode {
	t.Helper()
	n := newCacheNode(t, tenWays)
	n.groups = resctrlfs.New(resctrlfs.Rig(resctrlfs.Linux612, 1))
	for i := range n.machine.Cores {
		n.machine.Cores[i].L3 = new(0)
	}
	n.machine.L3s = []numa.Cache{{ID: 0, CPUs: n.machine.Online}}
	return n
}

func (n *cacheNode) config() Config {
	config := testConfig()
	config.Caches = &dividing.Config{
		Pools: *object.Parse[deviceclasses.CachePools](n.t, n.pools),
		Host:  resctrl.New(n.groups, numa.ResctrlView{AllTasks: true}),
	}
	return config
}

func (n *cacheNode) open() *Driver { n.t.Helper(); return n.openWith(n.config()) }

// boot boots the machine again and opens the driver.
func (n *cacheNode) boot() {
	n.t.Helper()
	n.groups = resctrlfs.New(resctrlfs.Rig(resctrlfs.Linux612, 2))
	config := n.config()
	config.BootID = "boot-2"
	n.openWith(config)
}

// Nodes have more functions than caches, and the scheduler looks at devices in their order.
func TestCachesAreTriedBeforeFunctions(t *testing.T) {
	n := newCacheNode(t, tenWays)
	n.machine.PCI = []numa.PCIFunction{{
		Address: "0000:3b:00.0", Kind: numa.NVMeFunction, Class: new(uint32(0x010802)), Vendor: new(uint16(0x8086)), Device: new(uint16(0x0a54)),
	}}
	config := n.config()
	config.Attached = withAttached(t, "true").Attached
	var kinds []string
	for _, device := range n.openWith(config).Publish(sound, cpuset.Set{}).Devices {
		kinds = append(kinds, *device.Attributes[deviceclasses.AttributeKind].StringValue)
	}
	if got, want := slices.Compact(kinds), []string{deviceclasses.KindZone, deviceclasses.KindCache, deviceclasses.KindNVMe}; !slices.Equal(got, want) {
		t.Errorf("kinds are in the order %q, want %q", got, want)
	}
}

// ofCache is one allocation result of a cache. amounts are like ways=4.
func ofCache(request, device string, amounts ...string) resourceapi.DeviceRequestAllocationResult {
	r := resourceapi.DeviceRequestAllocationResult{
		Request: request, Driver: Name, Pool: node, Device: device, ShareID: ptr.To(types.UID("share-" + request)),
		ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{},
	}
	if !strings.HasSuffix(device, "-shared") {
		amounts = append(amounts, "classes=1")
	}
	return consuming(r, amounts...)
}

// group returns what the kernel has of a group: its CPUs, the ways of both caches and the
// limits of bandwidth. It is empty if there is no such group.
func (n *cacheNode) group(number int) string {
	n.t.Helper()
	state, err := numa.ReadResctrl(n.groups, numa.ResctrlView{AllTasks: true})
	if err != nil {
		n.t.Fatal(err)
	}
	group, found := state.Group(resctrl.Name(number))
	if !found {
		return ""
	}
	text := group.CPUs.String() + ":"
	for cache := range 2 {
		mask, online := group.Schemata.Mask("L3", cache)
		if !online {
			continue
		}
		bandwidth, _ := group.Schemata.Bandwidth("MB", cache)
		text += fmt.Sprintf(" %x", mask)
		if bandwidth != 100 {
			text += fmt.Sprintf("@%d", bandwidth)
		}
	}
	return text
}

// all returns what the kernel has of all groups of classes.
func (n *cacheNode) all() (text string) {
	n.t.Helper()
	for number := 2; ; number++ {
		group := n.group(number)
		if group == "" {
			return text
		}
		text += fmt.Sprintf("%d %s\n", number, group)
	}
}

func TestClaimGetsWaysForItsCPUs(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	if got := n.group(2); got != ": 3 3" {
		t.Errorf("a class without a claim: %s", got)
	}
	devices := mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3", "bandwidthPercent=40")))
	if got := n.group(2); got != "4-5: 3 1c@40" {
		t.Errorf("group of the claim: %s", got)
	}
	want := ledger.CacheShare{L3: 1, Pool: "guaranteed", Group: 2, CPUs: "cpus", Ways: 3, BandwidthPercent: 40}
	if got := devices[1].Share.Cache(); got == nil || *got != want {
		t.Errorf("share %+v, want %+v", got, want)
	}
	if got := devices[1].Attributes["dra.numa/ways"].IntValue; got == nil || *got != 3 {
		t.Errorf("attributes %v", devices[1].Attributes)
	}
	files := n.files()
	if !strings.Contains(files[specName("uid-a")], `DRA_NUMA_CACHES_CACHE=1`) || !strings.Contains(files[ledger.CheckpointName], `"cache":{"l3":1,`) {
		t.Errorf("files: %v", files)
	}
	mustPrepare(t, n.open(), claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3", "bandwidthPercent=40")))
	assertFiles(t, n.files(), files)
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	if got := n.group(2); got != ": 3 3" {
		t.Errorf("after the claim: %s", got)
	}
}

func TestOneClassServesAClaimInEachCache(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=1")))
	mustPrepare(t, driver, claim("b", result("cpus", "numa-0", 2), ofCache("cache", "cache-0-guaranteed", "ways=2")))
	if got := n.group(2); got != "2-5: c 4" {
		t.Errorf("group of both claims: %s", got)
	}
}

// With sub-NUMA clustering, claims of both NUMA nodes share out the ways of one cache, whose
// id is not that of the NUMA node.
func TestWaysOfACacheOverTwoNUMANodes(t *testing.T) {
	n := newOneCacheNode(t)
	driver := n.open()
	mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-0-guaranteed", "ways=2", "bandwidthPercent=40")))
	mustPrepare(t, driver, claim("b", result("cpus", "numa-0", 2), ofCache("cache", "cache-0-guaranteed", "ways=2")))
	if a, b := n.group(2), n.group(3); a != "4-5: c@40" || b != "2-3: 30" {
		t.Errorf("groups %s and %s", a, b)
	}
	_, _, err := driver.Prepare(claim("c", result("cpus", "numa-1", 1), ofCache("cache", "cache-0-guaranteed", "ways=1")), nil)
	if err == nil {
		t.Error("five ways of four are given")
	}
	for _, uid := range []types.UID{"uid-a", "uid-b"} {
		if err := driver.Unprepare(uid); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := n.group(2), n.group(3); a != ": 3" || b != ": 3" {
		t.Errorf("groups %s and %s after the claims", a, b)
	}
}

// A NUMA node with two caches needs zoneBy: l3.
func TestWaysOfTwoCachesOfANUMANode(t *testing.T) {
	n := newCacheNode(t, tenWays)
	n.machine.Zones[0].CPUs, n.machine.Zones[1].CPUs = n.machine.Online, cpuset.Set{}
	for i := range n.machine.Cores {
		n.machine.Cores[i].Zone = 0
	}
	wanted := claim("a", result("cpus", "l3-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=2"))
	if _, _, err := n.open().Prepare(wanted, nil); err == nil {
		t.Error("zones have CPUs of two caches, and ways are given")
	}
	config := n.config()
	const why = "caches are not published: zone numa-0 has CPUs of 2 level-3 caches: want each zone in one level-3 cache; set zoneBy to l3"
	if err := dividing.WhyNone(&n.machine, config.Dividing()); err == nil || err.Error() != why {
		t.Errorf("error %v, want %s", err, why)
	}
	config.ZoneBy = deviceclasses.ZoneByL3
	if err := dividing.WhyNone(&n.machine, config.Dividing()); err != nil {
		t.Error(err)
	}
	driver := n.openWith(config)
	mustPrepare(t, driver, wanted)
	mustPrepare(t, driver, claim("b", result("cpus", "l3-0", 2), ofCache("cache", "cache-0-guaranteed", "ways=1")))
	if got := n.group(2); got != "2-5: 4 c" {
		t.Errorf("group of both claims: %s", got)
	}
}

// Two containers of a pod have ways of their own, and one of them a limit of bandwidth.
func TestTwoRequestsOfAClaimHaveAClassEach(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	mustPrepare(t, driver, configured(claim("a",
		result("one", "numa-1", 2), ofCache("one-cache", "cache-1-guaranteed", "ways=2", "bandwidthPercent=40"),
		result("two", "numa-1", 2), ofCache("two-cache", "cache-1-guaranteed", "ways=2"),
	), cacheFor("one-cache", "one"), cacheFor("two-cache", "two")))
	if one, two := n.group(2), n.group(3); one != "4-5: 3 30@40" || two != "6-7: 3 c" {
		t.Errorf("groups %s and %s", one, two)
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	if one, two := n.group(2), n.group(3); one != ": 3 3" || two != ": 3 3" {
		t.Errorf("groups %s and %s after the claim", one, two)
	}
}

// A core may be throttled as a whole, so its idle threads have the class, too.
func TestIdleThreadsHaveTheClass(t *testing.T) {
	n := newCacheNode(t, tenWays)
	mustPrepare(t, n.open(), configured(claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=2")), fromClaim(`"cores": "one-thread-per-core"`, "cpus")))
	if got := n.group(2); got != "4-5: 3 c" {
		t.Errorf("group of the claim: %s", got)
	}
}

// The mode exclusive is tested by the kernel on every cache, so only a class with a claim on
// each of them has it, and not where a pool overlaps.
func TestExclusiveModeWhereItFits(t *testing.T) {
	for pools, want := range map[string]numa.ResctrlMode{
		tenWays: numa.ModeExclusive,
		"{os: {ways: 2}, infra: {ways: 8}, guaranteed: {ways: 4, classes: 3}}": numa.ModeShareable,
	} {
		n := newCacheNode(t, pools)
		driver := n.open()
		mode := func() numa.ResctrlMode {
			state, err := numa.ReadResctrl(n.groups, numa.ResctrlView{AllTasks: true})
			if err != nil {
				t.Fatal(err)
			}
			group, _ := state.Group(resctrl.Name(2))
			return group.Mode
		}
		mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=2")))
		if got := mode(); got != numa.ModeShareable {
			t.Errorf("pools %s: a claim on one of two caches: mode %s", pools, got)
		}
		mustPrepare(t, driver, claim("b", result("cpus", "numa-0", 2), ofCache("cache", "cache-0-guaranteed", "ways=2")))
		if got := mode(); got != want {
			t.Errorf("pools %s: a claim on both caches: mode %s, want %s", pools, got, want)
		}
		n.check("exclusive")
		if err := n.groups.Write("dra-numa.2/mode", string(numa.ModeShareable)+"\n"); err != nil {
			t.Fatal(err)
		}
		driver.RepairCaches()
		if got := mode(); got != want {
			t.Errorf("pools %s: after another program made it shareable: mode %s, want %s", pools, got, want)
		}
	}
}

// The kernel compares a mask also with those of groups without CPUs and tasks, such as one
// that another program has just made. It is asked again only with other masks.
func TestExclusiveModeThatIsRefused(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	if err := n.groups.Mkdir("other"); err != nil {
		t.Fatal(err)
	}
	var asked []string
	n.groups.Around(func(c resctrlfs.Change, effect func() error) error {
		if c.Name == "dra-numa.2/mode" {
			asked = append(asked, c.Text)
		}
		return effect()
	})
	for i, cache := range []int{0, 1} {
		mustPrepare(t, driver, claim(fmt.Sprint(i), result("cpus", fmt.Sprintf("numa-%d", cache), 2), ofCache("cache", fmt.Sprintf("cache-%d-guaranteed", cache), "ways=2")))
	}
	for range 3 {
		driver.RepairCaches()
	}
	if len(asked) != 1 {
		t.Errorf("the kernel was asked for %q, want once", asked)
	}
	if err := driver.Unprepare("uid-1"); err != nil {
		t.Fatal(err)
	}
	if err := n.groups.Rmdir("other"); err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, driver, claim("wider", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3")))
	if len(asked) != 2 {
		t.Errorf("the kernel was asked for %q, want a second time", asked)
	}
}

// Best effort: the first claim grows, later ones shrink it, and it grows again.
func TestBestEffortGrowsAndShrinks(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2}, besteffort: {ways: 7, defaultMinWays: 2, defaultMaxWays: 5}}")
	driver := n.open()
	for i, want := range []string{"4: 3 7c", "4: 3 3c", "4: 3 1c"} {
		mustPrepare(t, driver, claim(fmt.Sprint(i), result("cpus", "numa-1", 1), ofCache("cache", "cache-1-besteffort", "ways=2")))
		if got := n.group(2); got != want {
			t.Errorf("with %d claims: %s, want %s", i+1, got, want)
		}
	}
	for _, uid := range []types.UID{"uid-1", "uid-2"} {
		if err := driver.Unprepare(uid); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.group(2); got != "4: 3 7c" {
		t.Errorf("alone again: %s", got)
	}
}

func TestMembersOfSharedHaveOneClass(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2}, infra: {ways: 10}, shared: {ways: 3, members: 10}}")
	driver := n.open()
	for _, name := range []string{"a", "b"} {
		mustPrepare(t, driver, claim(name, result("cpus", "numa-1", 2), ofCache("cache", "cache-1-shared", "members=1")))
	}
	if got := n.group(1); got != "4-7: 1c 1c" {
		t.Errorf("group of the members: %s", got)
	}
	if got := n.group(0); got != ": ffc ffc" {
		t.Errorf("group infra: %s", got)
	}
}

// The operator has taken the pool of a running claim away.
func TestMembersOfSharedKeepAClassWithoutThePool(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2}, guaranteed: {ways: 3}, shared: {ways: 3, members: 10}}")
	mustPrepare(t, n.open(), claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-shared", "members=1")))
	n.pools = "{os: {ways: 2}, guaranteed: {ways: 3}}"
	n.open().RepairCaches()
	if got := n.group(1); got != "4-5: 3 3" {
		t.Errorf("group of the member: %s, want the ways of os", got)
	}
}

// 4, 3 and 3 of 10 ways; the first and the third end; then 5.
func TestWaysAreMovedForALargerClaim(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2}, guaranteed: {ways: 8}}")
	driver := n.open()
	prepare := func(name string, ways int) {
		t.Helper()
		mustPrepare(t, driver, claim(name, result("cpus", "numa-1", 1), ofCache("cache", "cache-1-guaranteed", fmt.Sprintf("ways=%d", ways))))
	}
	prepare("a", 3)
	prepare("b", 2)
	prepare("c", 3)
	for _, uid := range []types.UID{"uid-a", "uid-c"} {
		if err := driver.Unprepare(uid); err != nil {
			t.Fatal(err)
		}
	}
	prepare("d", 6)
	if b, d := n.group(3), n.group(2); b != "5: 3 300" && b != "5: 3 c" || !strings.HasPrefix(d, "4: 3 ") {
		t.Errorf("groups %s and %s", b, d)
	}
}

func TestWhatACacheIsNotFor(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	zone, ways := result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=1")
	for name, row := range map[string]struct {
		claim *resourceapi.ResourceClaim
		want  string
	}{
		"no CPUs":       {claim("a", ways), `request cache: cpus: "", but no request of the claim is for a zone: a cache is for CPUs of the same claim`},
		"memory":        {claim("a", result("cpus", "numa-1", 0), ways), `request cache: request cpus has no CPUs: a cache is for CPUs of the same claim`},
		"another cache": {claim("a", result("cpus", "numa-0", 2), ways), `request cache: cache-1-guaranteed has ways of cache 1, but the CPUs of request cpus are in cache 0: add the constraint matchAttribute dra.numa/l3 for both requests`},
		// A request with count 2, or allocationMode All, has several results.
		"a zone of another cache, too": {
			claim("a", zone, second(result("cpus", "numa-0", 2)), ways),
			`request cache: cache-1-guaranteed has ways of cache 1, but the CPUs of request cpus are in cache 0: add the constraint matchAttribute dra.numa/l3 for both requests`,
		},
		"a zone without CPUs, too": {claim("a", zone, second(result("cpus", "numa-0", 0)), ways), `request cache: request cpus has no CPUs: a cache is for CPUs of the same claim`},
		"two zones":                {claim("a", zone, result("more", "numa-1", 2), ways), `request cache: cpus: "", allowed are the requests of the claim for zones: cpus, more`},
		"twice": {
			claim("a", zone, ways, ofCache("more", "cache-1-besteffort", "ways=1")),
			`request more: cpus: "cpus", but request cache is for the same CPUs: a claim has ways of one cache for each request for a zone`,
		},
		"no pool": {
			claim("a", zone, ofCache("cache", "cache-1-shared", "members=1")),
			`status.allocation.devices.results[1] (request "cache", device "cache-1-shared"): no such device, this node has cache-0-guaranteed, cache-0-besteffort, cache-1-guaranteed, cache-1-besteffort`,
		},
		"too many": {
			claim("a", zone, ofCache("cache", "cache-1-guaranteed", "ways=5")),
			`status.allocation.devices.results[1] (request "cache", device "cache-1-guaranteed"): consumedCapacity ways "5": allowed are 1 to 4`,
		},
	} {
		if _, _, err := driver.Prepare(row.claim, nil); err == nil || err.Error() != row.want {
			t.Errorf("%s: error %v, want %s", name, err, row.want)
		}
	}
	if len(driver.Grants()) > 0 {
		t.Errorf("grants %v", driver.Grants())
	}
}

// second returns another result of the same request.
func second(r resourceapi.DeviceRequestAllocationResult) resourceapi.DeviceRequestAllocationResult {
	r.ShareID = ptr.To(*r.ShareID + "-2")
	return r
}

// A request for two zones whose CPUs have the same cache has ways of it.
func TestWaysOfOneCacheForTwoZonesOfARequest(t *testing.T) {
	n := newOneCacheNode(t)
	mustPrepare(t, n.open(), claim("a", result("cpus", "numa-0", 2), second(result("cpus", "numa-1", 2)), ofCache("cache", "cache-0-guaranteed", "ways=3")))
	if got := n.group(2); got != "2-5: 1c" {
		t.Errorf("group of the claim: %s", got)
	}
}

func TestWaysAreForTheZoneWithCPUs(t *testing.T) {
	n := newCacheNode(t, tenWays)
	mustPrepare(t, n.open(), claim("a", counted(result("memory", "numa-1", 0)), result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=2")))
	if got := n.group(2); got != "4-5: 3 c" {
		t.Errorf("group of the claim: %s", got)
	}
}

// A node that no longer divides its caches, or never did.
func TestClaimOfANodeWithoutPools(t *testing.T) {
	n := newCacheNode(t, tenWays)
	wanted := claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=1"))
	_, _, err := n.disk.open().Prepare(wanted, nil)
	if err == nil || !strings.Contains(err.Error(), "this node does not divide its caches") {
		t.Errorf("error %v", err)
	}
	mustPrepare(t, n.open(), wanted)
	driver := n.disk.open()
	if grant := grantOf(driver, "uid-a"); len(grant.Shares) != 2 {
		t.Errorf("the claim holds %+v", grant)
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Error(err)
	}
}

func TestRefusedWaysAreAnErrorAndPutBack(t *testing.T) {
	n, driver := newGrownNode(t)
	n.groups.Fail(2, syscall.EIO)
	wanted := claim("b", result("cpus", "numa-1", 1), ofCache("cache", "cache-1-besteffort", "ways=2"))
	if _, _, err := driver.Prepare(wanted, nil); !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), "give claim default/b its ways: move masks of group dra-numa.") {
		t.Errorf("error %v", err)
	}
	if got := n.group(2); got != "4: 3 7c" {
		t.Errorf("the older claim: %s", got)
	}
	n.groups.Around(nil)
	mustPrepare(t, driver, wanted)
	if a, b := n.group(2), n.group(3); a != "4: 3 3c" || b != "5: 3 1c0" {
		t.Errorf("claims: %s and %s", a, b)
	}
}

// Whatever another program does to the groups is undone, and no pod waits for it.
func TestGroupsAreRepaired(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3", "bandwidthPercent=40")))
	write := func(file, text string) func() error { return func() error { return n.groups.Write(file, text) } }
	for name, change := range map[string]func() error{
		"removed":   func() error { return n.groups.Rmdir("dra-numa.2") },
		"mask":      write("dra-numa.2/schemata", "L3:1=ff0\n"),
		"bandwidth": write("dra-numa.2/schemata", "MB:1=70\n"),
		"default":   write("schemata", "L3:1=fff\n"),
		"CPUs":      write("cpus_list", "0-7\n"),
	} {
		if err := change(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if report := driver.RepairCaches(); len(report.News) > 0 || report.Changed {
			t.Errorf("%s: %+v", name, report)
		}
		if got := n.group(2); got != "4-5: 3 1c@40" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, online := range []bool{false, true} {
		for cpu := 4; cpu < 8; cpu++ {
			n.groups.SetOnline(cpu, online)
		}
		driver.RepairCaches()
	}
	if got := n.group(2); got != "4-5: 3 1c@40" {
		t.Errorf("after the last CPU of the cache was gone: %s", got)
	}
}

func TestRebootAndRemountRebuildTheGroups(t *testing.T) {
	n := newCacheNode(t, tenWays)
	mustPrepare(t, n.open(), claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3")))
	n.boot()
	if got := n.group(2); got != "4-5: 3 1c" {
		t.Errorf("after the boot: %s", got)
	}
}

// What is published follows the kernel, and a fault is a taint.
func TestPublishedCachesFollowTheKernel(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	none := func(types.UID, ledger.Share) string { return "" }
	names := func() (list []string) {
		for _, device := range driver.Publish(none, cpuset.Set{}).Devices {
			name := device.Name
			for _, taint := range device.Taints {
				name += " " + taint.Value
			}
			list = append(list, name)
		}
		return list
	}
	all := []string{"numa-0", "numa-1", "numa-2", "cache-0-guaranteed", "cache-0-besteffort", "cache-1-guaranteed", "cache-1-besteffort"}
	if got := names(); !slices.Equal(got, all) {
		t.Errorf("devices %q", got)
	}
	zone := driver.Publish(none, cpuset.Set{}).Devices[1]
	if l3 := zone.Attributes[deviceclasses.AttributeL3].IntValue; l3 == nil || *l3 != 1 {
		t.Errorf("%s has l3 %v", zone.Name, l3)
	}
	mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3")))
	if err := errors.Join(n.groups.Mkdir("COS1"), n.groups.Write("COS1/schemata", "L3:0=fff;1=fff\n"), n.groups.Write("COS1/cpus_list", "6\n")); err != nil {
		t.Fatal(err)
	}
	if report := driver.RepairCaches(); !report.Changed || !strings.Contains(strings.Join(report.News, "\n"), `"COS1"`) {
		t.Errorf("report %+v", report)
	}
	if report := driver.RepairCaches(); report.Changed {
		t.Errorf("again: %+v", report)
	}
	publication := driver.Publish(none, cpuset.Set{})
	if got := names(); !publication.Renewed || !slices.Equal(got, all[:3]) {
		t.Errorf("devices %q", got)
	}
	if problems := publication.Problems["cache-1-guaranteed"]; len(problems) != 1 || !strings.Contains(problems[0], "not enough ways") {
		t.Errorf("problems %q", publication.Problems)
	}
	if got := n.group(2); got != "4-5: 3 1c" {
		t.Errorf("the claim keeps its ways: %s", got)
	}
	if err := n.groups.Rmdir("COS1"); err != nil {
		t.Fatal(err)
	}
	driver.RepairCaches()
	n.groups.Around(func(c resctrlfs.Change, effect func() error) error {
		if c.Name == "dra-numa.2/cpus_list" {
			return syscall.EIO
		}
		return effect()
	})
	if err := n.groups.Write("cpus_list", "0-7\n"); err != nil {
		t.Fatal(err)
	}
	driver.RepairCaches()
	want := slices.Clone(all)
	want[5], want[6] = want[5]+" ways-missing", want[6]+" ways-missing"
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("devices %q, want %q", got, want)
	}
	n.groups.Around(nil)
	driver.RepairCaches()
	if got := names(); !slices.Equal(got, all) {
		t.Errorf("devices %q", got)
	}
}

// newGrownNode is a node on which claim a has all five ways that a best-effort claim can have.
func newGrownNode(t *testing.T) (*cacheNode, *Driver) {
	t.Helper()
	n := newCacheNode(t, "{os: {ways: 2}, besteffort: {ways: 7, defaultMinWays: 2, defaultMaxWays: 5}}")
	driver := n.open()
	mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 1), ofCache("cache", "cache-1-besteffort", "ways=2")))
	return n, driver
}

// The daemon is killed after each change of the kernel's files. The next start gives the
// same.
func TestCrashWhileWaysAreGivenHeals(t *testing.T) {
	second := claim("b", result("cpus", "numa-1", 1), ofCache("cache", "cache-1-besteffort", "ways=2", "bandwidthPercent=50"))
	resctrlfs.KilledAtEach(t, 3, func(done int) bool {
		n, driver := newGrownNode(t)
		killed, err := n.groups.Killed(done, func() error {
			_, _, err := driver.Prepare(second, nil)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		n.check(fmt.Sprintf("killed after %d", done))
		driver = n.open()
		mustPrepare(t, driver, second)
		if a, b := n.group(2), n.group(3); a != "4: 3 3c" || b != "5: 3 1c0@50" {
			t.Errorf("killed after %d changes: %s and %s", done, a, b)
		}
		if err := driver.Unprepare("uid-b"); err != nil {
			t.Fatal(err)
		}
		return killed
	})
}

// The same while a claim ends, and another one grows.
func TestCrashWhileWaysAreTakenHeals(t *testing.T) {
	second := claim("b", result("cpus", "numa-1", 1), ofCache("cache", "cache-1-besteffort", "ways=2", "bandwidthPercent=50"))
	resctrlfs.KilledAtEach(t, 3, func(done int) bool {
		n, driver := newGrownNode(t)
		mustPrepare(t, driver, second)
		killed, err := n.groups.Killed(done, func() error { return driver.Unprepare("uid-b") })
		if err != nil {
			t.Fatal(err)
		}
		n.check(fmt.Sprintf("killed after %d", done))
		driver = n.open()
		if err := driver.Unprepare("uid-b"); err != nil {
			t.Fatal(err)
		}
		driver.RepairCaches()
		if a, b := n.group(2), n.group(3); a != "4: 3 7c" || b != ": 3 3" {
			t.Errorf("killed after %d changes: %s and %s", done, a, b)
		}
		return killed
	})
}

// check fails if two groups with CPUs of a cache have the same way.
func (n *cacheNode) check(when string) {
	n.t.Helper()
	state, err := numa.ReadResctrl(n.groups, numa.ResctrlView{AllTasks: true})
	if err != nil {
		n.t.Fatal(err)
	}
	for cache := range 2 {
		var taken uint64
		for _, group := range state.Groups {
			mask, _ := group.Schemata.Mask("L3", cache)
			ofCache := cpuset.New(4*cache, 4*cache+1, 4*cache+2, 4*cache+3)
			if !group.CPUs.Overlaps(ofCache) {
				continue
			}
			if taken&mask != 0 {
				n.t.Fatalf("%s: ways %x of cache %d are in two groups: %+v", when, taken&mask, cache, state.Groups)
			}
			taken |= mask
		}
	}
}

// cacheSteps is 100,000 in make cache-steps.
var cacheSteps = flag.Int("cache-steps", 3000, "how many random claims with ways, or counters, come or go")

// Random claims of both pools come and go, and the kernel refuses some writes.
func TestRandomClaimsNeverShareWays(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	r := rand.New(rand.NewPCG(20, 5))
	n := newCacheNode(t, "{os: {ways: 1}, groups: [{name: dpdk, cpus: 0-1, ways: 1}], guaranteed: {ways: 5}, besteffort: {ways: 3, defaultMinWays: 1, defaultMaxWays: 3}}")
	driver := n.open()
	empty := n.all()
	type held struct {
		device string
		ways   int
	}
	holds := make(map[string]held)
	given, refused := 0, 0
	for step := range *cacheSteps {
		name := fmt.Sprint("c", r.IntN(6))
		cache, pool := r.IntN(2), []string{"guaranteed", "besteffort"}[r.IntN(2)]
		device := fmt.Sprintf("cache-%d-%s", cache, pool)
		if r.IntN(10) == 0 {
			n.groups.Fail(1+r.IntN(3), syscall.EIO)
		}
		if _, has := holds[name]; has {
			if err := driver.Unprepare(types.UID("uid-" + name)); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			delete(holds, name)
			n.groups.Around(nil)
			driver.RepairCaches()
			n.check(fmt.Sprint("step ", step))
			continue
		}
		amount, left := 1+r.IntN(3), map[string]int{"guaranteed": 5, "besteffort": 3}[pool]
		cpus := 2 + 2*cache // CPUs 0 and 1 are reserved
		for _, h := range holds {
			if h.device == device {
				left -= h.ways
			}
			if strings.HasPrefix(h.device, fmt.Sprintf("cache-%d-", cache)) {
				cpus--
			}
		}
		if left < amount || cpus < 1 {
			continue // the scheduler does not allocate it
		}
		wanted := claim(name, result("cpus", fmt.Sprintf("numa-%d", cache), 1), ofCache("cache", device, fmt.Sprintf("ways=%d", amount)))
		if r.IntN(3) == 0 {
			wanted = configured(wanted, fromClaim(`"mixed": true`))
		}
		_, _, err := driver.Prepare(wanted, nil)
		n.groups.Around(nil)
		n.check(fmt.Sprint("step ", step))
		holds[name] = held{device, amount}
		if err != nil {
			refused++
			if !errors.Is(err, syscall.EIO) {
				t.Fatalf("step %d: %v", step, err)
			}
			driver.RepairCaches()
		} else {
			given++
		}
		n.check(fmt.Sprint("step ", step))
		n.checkJoined(driver, step)
		problems := make(map[string][]string)
		if driver.dividing.Current().AddProblems(problems, driver.Grants()); len(problems) > 0 {
			t.Fatalf("step %d: %v", step, problems)
		}
	}
	for name := range holds {
		if err := driver.Unprepare(types.UID("uid-" + name)); err != nil {
			t.Fatal(err)
		}
	}
	driver.RepairCaches()
	if left := n.all(); left != empty {
		t.Errorf("after the last claim the groups are %s, want %s", left, empty)
	}
	t.Logf("%d given, %d refused", given, refused)
	if given < *cacheSteps/6 || refused < *cacheSteps/150 {
		t.Errorf("%d given, %d refused: too few to tell", given, refused)
	}
}

// Classes that the kernel does not have are not given to claims.
func TestNodeWithoutItsGroupsIsTainted(t *testing.T) {
	n := newCacheNode(t, tenWays)
	n.groups.Around(func(c resctrlfs.Change, effect func() error) error {
		if c.Call == "mkdir" {
			return syscall.EACCES
		}
		return effect()
	})
	driver := n.open()
	report := driver.RepairCaches()
	if len(report.News) != 6 || report.News[0] != "group dra-numa.2: mkdir dra-numa.2: permission denied" {
		t.Errorf("news %q", report.News)
	}
	tainted := func() (devices int) {
		for _, device := range driver.Publish(func(types.UID, ledger.Share) string { return "" }, cpuset.Set{}).Devices {
			devices += len(device.Taints)
		}
		return devices
	}
	if got := tainted(); got != 4 {
		t.Errorf("%d devices have a taint, want all 4 of caches", got)
	}
	wanted := claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=1"))
	if _, _, err := driver.Prepare(wanted, nil); err == nil || err.Error() != "give claim default/a its ways: the kernel has no group dra-numa.2" {
		t.Errorf("error %v", err)
	}
	n.groups.Around(nil)
	driver.RepairCaches()
	if got := tainted(); got != 0 {
		t.Errorf("%d devices have a taint", got)
	}
	mustPrepare(t, driver, wanted)
}

func TestStatusSaysWhatWasAskedAndWhatWasGiven(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2}, guaranteed: {ways: 4, validWays: [1, 2, 4]}}")
	driver := n.open()
	asking := claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=4", "bandwidthPercent=60"))
	asking.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "cache", Exactly: &resourceapi.ExactDeviceRequest{Capacity: &resourceapi.CapacityRequirements{
		Requests: map[resourceapi.QualifiedName]resource.Quantity{"ways": resource.MustParse("3"), "dra.numa/bandwidthPercent": resource.MustParse("55")},
	}}}}
	said := func(devices []PreparedDevice) deviceclasses.CacheStatus {
		return devices[1].Share.Status().(deviceclasses.CacheStatus)
	}
	got := said(mustPrepare(t, driver, asking))
	if want := (deviceclasses.CacheAmounts{Ways: 3, BandwidthPercent: 55}); got.Asked != want || got.Ways != 4 || got.BandwidthPercent != 60 {
		t.Errorf("status %+v, want asked %+v", got, want)
	}
	exact := claim("b", result("cpus", "numa-0", 2), ofCache("cache", "cache-0-guaranteed", "ways=2", "bandwidthPercent=100"))
	exact.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "cache", Exactly: &resourceapi.ExactDeviceRequest{Capacity: &resourceapi.CapacityRequirements{
		Requests: map[resourceapi.QualifiedName]resource.Quantity{"ways": resource.MustParse("2"), "bandwidthPercent": resource.MustParse("100")},
	}}}}
	if got := said(mustPrepare(t, driver, exact)); got.Asked != (deviceclasses.CacheAmounts{}) {
		t.Errorf("what was asked is given, but the status says asked: %+v", got.Asked)
	}
}
