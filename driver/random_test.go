package driver

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// TestRandomOperationsAndKills does to a node what a cluster does. It kills the daemon
// between and inside steps, also during recovery. A kill drops the Driver; the files
// stay as they are.
func TestRandomOperationsAndKills(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	const operations, wantKills = 2400, 240
	w := newWorld(t)
	for i := range operations {
		w.killing = w.killing || i%(operations/wantKills) == 0 // an operation without steps leaves the kill to the next one
		w.operate()
		if t.Failed() {
			t.Fatalf("operation %d", i)
		}
	}
	if w.kills != wantKills || w.shortages < 20 || w.orphans < 10 || w.insideWrites < 20 {
		t.Errorf("%d kills, %d inside of writes, %d shortages, %d orphans: not much of a test", w.kills, w.insideWrites, w.shortages, w.orphans)
	}
	if w.degraded < 10 || w.offline < 20 || w.mixed < 20 || w.idle < 20 || w.unbound < 20 {
		t.Errorf("%d neighbours lost a partition, %d grants a CPU, %d are mixed, %d leave CPUs idle, %d bind nothing: not much of a test",
			w.degraded, w.offline, w.mixed, w.idle, w.unbound)
	}
	if w.attached < 100 || w.taken < 20 || w.gone < 5 {
		t.Errorf("%d PCI functions granted, %d were taken, %d gone: not much of a test", w.attached, w.taken, w.gone)
	}
	if w.pageless < 20 || w.huge < 20 || w.gigantic < 20 {
		t.Errorf("%d times too few hugepages, %d shares with hugepages, %d pages of 1 GiB: not much of a test", w.pageless, w.huge, w.gigantic)
	}
	w.plug(cpuset.Set{})
	for uid := range w.claims {
		if err := w.driver.Unprepare(uid); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.driver.Observe(nil); err != nil {
		t.Fatal(err)
	}
	assertConsistent(t, w.disk, w.driver)
	if free := w.driver.planner().free(); free != w.driver.layout.grantable || len(w.driver.grants) > 0 {
		t.Errorf("after all, cpus %s are free of %s", free, w.driver.layout.grantable)
	}
}

// world is the node, and 10 claims as the API server has them.
type world struct {
	t      *testing.T
	random *rand.Rand
	disk   disk
	driver *Driver

	claims claims // some are allocated
	pods   []*corev1.Pod
	whole  numa.Machine // with all CPUs online
	shares int          // made so far: each share has its own id

	pages     pages
	functions []string // devices that are PCI functions
	unplugged string   // address of the function that is gone; "" for none

	killing                                 bool // during this operation
	kills, insideWrites, shortages, orphans int
	degraded, offline, mixed, idle, unbound int
	attached, taken, gone                   int
	pageless, huge, gigantic                int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, random: rand.New(rand.NewPCG(4, 5)), disk: pciDisk(t), claims: claims{}} // 16 CPUs in 4 zones: often short
	w.pages = withPages(&w.disk.machine)
	w.whole = w.disk.machine
	for _, device := range attached.Devices(w.whole, w.disk.selected) {
		w.functions = append(w.functions, device.Name)
	}
	for i := range 10 {
		made := claim(fmt.Sprintf("claim-%d", i))
		w.claims[made.UID] = made
	}
	for range 15 {
		w.pods = append(w.pods, w.pod())
	}
	var err error
	if w.driver, err = w.disk.tryOpen(w.config()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) config() Config {
	config := testConfig()
	config.ReservedMemory, config.Hugepages = reservedPages, w.pages.read
	return config
}

// pod returns a pod that uses a few of the claims, in containers of any kind.
func (w *world) pod() *corev1.Pod {
	var line []string
	first := w.random.IntN(10)
	for range 1 + w.random.IntN(3) {
		kind := []string{"init", "side", "main", "main", "main"}[w.random.IntN(5)]
		line = append(line, fmt.Sprintf("%s:claim-%d/r0,claim-%d", kind, first, (first+w.random.IntN(3))%10))
	}
	return podOf(strings.Join(line, " "))
}

// podsOf returns up to three pods that use the claim; none, as if they were unknown, is
// possible too.
func (w *world) podsOf(claim *resourceapi.ResourceClaim) (pods []*corev1.Pod) {
	for _, i := range w.random.Perm(len(w.pods)) {
		if slices.Contains(slices.Collect(maps.Values(ledger.ClaimNames(w.pods[i]))), claim.Name) {
			pods = append(pods, w.pods[i])
		}
	}
	return pods[:min(len(pods), (w.random.IntN(6)+1)/2)]
}

// plug takes these CPUs offline and all others online. A restart finds the same CPUs.
func (w *world) plug(offline cpuset.Set) {
	w.disk.machine = without(w.whole, offline)
	w.driver.SetMachine(w.disk.machine)
	for _, grant := range w.driver.Grants() {
		if grant.CPUs().Overlaps(offline) {
			w.offline++
		}
	}
}

// plugFunction removes a PCI function without telling the driver, or puts it back.
func (w *world) plugFunction() {
	w.t.Helper()
	if w.unplugged != "" {
		w.disk.plug(w.unplugged, true)
		w.unplugged = ""
		return
	}
	_, w.unplugged, _ = attached.Parse(w.functions[w.random.IntN(len(w.functions))])
	w.disk.plug(w.unplugged, false)
}

// operate does one thing to one claim and compares before and after.
func (w *world) operate() {
	w.t.Helper()
	uids := slices.Sorted(maps.Keys(w.claims))
	uid := uids[w.random.IntN(len(uids))]
	before := w.driver.grants
	w.pages.change(w.random, w.driver.Grants())
	switch w.random.IntN(10) {
	case 0, 1: // a new allocation, or a different one
		w.claims[uid] = configured(claim(w.claims[uid].Name, w.results()...), w.configs()...)
		w.prepare(uid)
	case 2, 3: // the kubelet repeats its call
		w.prepare(uid)
	case 4, 5:
		w.unprepare(uid)
	case 6:
		w.unprepare("uid-of-nobody")
	case 7:
		w.plug(cpuset.New(w.random.IntN(16), w.random.IntN(16)))
		w.plugFunction()
	case 8:
		w.observe()
	default: // deallocated while the daemon is down
		w.claims[uid].Status.Allocation = nil
		w.restart()
	}
	w.compare(uid, before)
	assertDisjoint(w.t, w.driver)
	assertConsistent(w.t, w.disk, w.driver)
}

// compare checks the claims to which nothing was done. The only change allowed is that
// a claim has lost its partition.
func (w *world) compare(uid types.UID, before ledger.List) {
	w.t.Helper()
	for other, claim := range w.claims {
		now, kept := w.driver.grants.Find(other)
		then, had := before.Find(other)
		wishes, err := w.driver.planner().wishes(claim)
		needed := had && err == nil && fulfils(then, wishes)
		if other == uid {
			continue
		}
		if kept && had && len(now.Shares) == len(then.Shares) {
			then.Shares = slices.Clone(then.Shares)
			for i := range now.Shares {
				if then := &then.Shares[i]; now.Shares[i].Scope() == ledger.ScopeShared && then.Scope() != ledger.ScopeShared {
					*then = then.WithScope(ledger.ScopeShared)
					w.degraded++
				}
			}
		}
		if needed && !kept || kept && !withoutNodes(now).Equal(withoutNodes(then)) { // a drive that was swapped has other nodes
			w.t.Errorf("%s was changed to %s by what was done to %s", then, now, uid)
		}
	}
}

func (w *world) configs() (configs []resourceapi.DeviceAllocationConfiguration) {
	for _, fields := range []string{`"mixed": true`, `"partition": "isolated"`, `"memoryPolicy": "bind"`, `"cores": "one-thread-per-core"`, `"cores": "thread", "l3": "prefer"`, `"placement": "spread"`} {
		if w.random.IntN(4) == 0 {
			configs = append(configs, fromClaim(fields, []string{"r0", "r1"}[:w.random.IntN(3)]...))
		}
	}
	return configs
}

func (w *world) results() []resourceapi.DeviceRequestAllocationResult {
	var results []resourceapi.DeviceRequestAllocationResult
	for i := range 1 + w.random.IntN(2) {
		zones := zones.Of(&w.whole, deviceclasses.ZoneBys()[w.random.IntN(4)])
		zone := zones[w.random.IntN(len(zones))]
		made := result(fmt.Sprintf("r%d", i), zone.Device, int64(w.random.IntN(4)))
		if w.random.IntN(2) == 0 {
			made = counted(made)
			if zone.L3 == nil && !zone.Isolated && w.random.IntN(2) == 0 {
				made = consuming(made, fmt.Sprintf("hugepages1Gi=%dGi", 1+w.random.IntN(2)))
			}
			if zone.L3 == nil && !zone.Isolated && w.random.IntN(2) == 0 {
				made = consuming(made, fmt.Sprintf("hugepages2Mi=%dMi", 2+2*w.random.IntN(4)))
			}
		}
		w.shares++
		made.ShareID = ptr.To(types.UID(fmt.Sprintf("share-%d", w.shares)))
		results = append(results, made)
	}
	if w.random.IntN(3) == 0 {
		results = append(results[w.random.IntN(len(results)+1):], functionResult("f", w.functions[w.random.IntN(len(w.functions))]))
	}
	return results
}

// prepare runs the same steps as Prepare.
func (w *world) prepare(uid types.UID) {
	w.t.Helper()
	wishes, err := w.driver.planner().wishes(w.claims[uid])
	if err != nil {
		return // not allocated
	}
	before, had := w.driver.grants.Find(uid)
	renewed := !had || !fulfils(before, wishes)
	if renewed {
		w.pages.release(uid) // the containers of an earlier allocation have ended
	}
	next, err := w.driver.planner().plan(w.claims[uid], w.podsOf(w.claims[uid]), wishes)
	if err != nil {
		w.short(wishes, before, err)
		return
	}
	grant := next.Grant
	w.attached += len(grant.Functions())
	if zones := zoneWishes(wishes); renewed && len(grant.Shares) > 0 {
		if !w.pages.suffice(uid, zones, w.driver.Grants()) {
			w.t.Errorf("%s has pages of others: %v", grant, w.pages)
		}
		for _, zone := range zones {
			w.huge += min(1, len(zone.hugepageBytes))
			w.gigantic += int(zone.hugepageBytes["1Gi"] >> 30)
		}
	}
	if slices.ContainsFunc(grant.Shares, func(s ledger.Share) bool { return s.Zone() != nil && s.Zone().Mixed }) {
		w.mixed++
	}
	if slices.ContainsFunc(grant.Shares, func(s ledger.Share) bool { return s.Zone() != nil && !s.Zone().IdleCPUs.IsEmpty() }) {
		w.idle++
	}
	if !fulfils(grant, wishes) || had && fulfils(before, wishes) && before.CPUs() != grant.CPUs() {
		w.t.Errorf("%s planned for %v, recorded is %s", grant, wishes, before)
	}
	delete(w.driver.orphans, uid)
	if w.perform(w.driver.prepareSteps(next)) {
		return // after recovery it has the old grant, the new one, or none
	}
	if !grantOf(w.driver, uid).Equal(grant) {
		w.t.Errorf("%s is on record, prepared was %s", grantOf(w.driver, uid), grant)
	}
}

// short checks whether the node is as full as the error says.
func (w *world) short(wishes []wish, own ledger.Grant, err error) {
	w.t.Helper()
	if errors.Is(err, errBindsNothing) && !slices.ContainsFunc(wishes, func(wish wish) bool {
		zone, ok := wish.wanted.(zoneWish)
		return ok && (zone.memoryBytes > 0 || len(zone.hugepageBytes) > 0) && zone.config.MemoryPolicy != "preferred"
	}) {
		w.unbound++
		return
	}
	if strings.Contains(err.Error(), " of hugepages ") {
		w.pageless++
		if w.pages.suffice(own.UID, zoneWishes(wishes), w.driver.Grants()) {
			w.t.Errorf("refused %v with pages %v: %v", wishes, w.pages, err)
		}
		return
	}
	for _, wish := range wishes {
		function, ok := wish.wanted.(functionWish)
		if !ok {
			continue
		}
		if errors.Is(err, devnode.ErrGone) && function.address == w.unplugged {
			w.gone++
			return
		}
		if strings.Contains(err.Error(), "PCI function "+function.address+": claim ") {
			w.taken++
			for _, other := range w.driver.grants {
				for _, f := range other.Functions() {
					if other.UID != own.UID && (f.Address == function.address || f.PhysFn == function.address || strings.HasPrefix(function.address, "0001:31:00.") && f.Address == "0001:31:00.0") {
						return
					}
				}
			}
		}
	}
	w.shortages++
	free := w.driver.planner().free().Union(own.CPUs())
	for _, one := range zoneWishes(wishes) {
		wanted := 0
		for _, other := range zoneWishes(wishes) {
			if other.zone.CPUs.Overlaps(one.zone.CPUs) {
				wanted += other.cpus
			}
		}
		if free.Intersection(one.zone.CPUs).Size() < wanted {
			return
		}
	}
	w.t.Errorf("refused %v with cpus %s free: %v", wishes, free, err)
}

func zoneWishes(wishes []wish) (of []zoneWish) {
	for _, wish := range wishes {
		if zone, ok := wish.wanted.(zoneWish); ok {
			of = append(of, zone)
		}
	}
	return of
}

func (w *world) unprepare(uid types.UID) {
	w.t.Helper()
	before := grantOf(w.driver, uid)
	killed := w.perform(w.driver.unprepareSteps(uid))
	if now, kept := w.driver.grants.Find(uid); kept && (!killed || !now.Equal(before)) {
		w.t.Errorf("%s is still on record, released was %s", now, before)
	}
	if free := w.driver.planner().free(); !killed && !before.CPUs().Intersection(w.driver.layout.grantable).IsSubsetOf(free) {
		w.t.Errorf("cpus %s of the released claim are not among the free %s", before.CPUs(), free)
	}
}

// observe first sees a partition of some claim, and then none. It may be killed while
// it releases something.
func (w *world) observe() {
	w.t.Helper()
	held := w.left()
	if _, err := w.driver.Observe(held); err != nil {
		w.t.Fatal(err)
	}
	assertConsistent(w.t, w.disk, w.driver)
	if steps := w.driver.observeSteps(w.driver.planner().planObservation(nil)); len(steps) > 0 && w.killing {
		w.kill(steps)
		w.restart()
		return
	}
	if _, err := w.driver.Observe(nil); err != nil {
		w.t.Fatal(err)
	}
}

// left returns a partition that a container of some claim has left behind, or none.
func (w *world) left() (held []Held) {
	if grants := w.driver.Grants(); len(grants) > 0 && w.random.IntN(2) == 0 {
		cpus := grants[w.random.IntN(len(grants))].CPUs().Union(cpuset.New(15))
		held = []Held{{Cgroup: "kubepods/left", CPUs: cpus, Invalid: []string{"", "invalid"}[w.random.IntN(2)]}}
	}
	return held
}

// perform runs all steps, or is killed and restarts.
func (w *world) perform(steps []step) (killed bool) {
	w.t.Helper()
	if !w.killing {
		if err := perform(steps); err != nil {
			w.t.Error(err)
		}
		return false
	}
	w.kill(steps)
	w.restart()
	return true
}

// kill runs some of the steps, and perhaps a part of the next one.
func (w *world) kill(steps []step) {
	w.t.Helper()
	w.kills++
	w.killing = false
	done := w.random.IntN(len(steps) + 1)
	if err := perform(steps[:done]); err != nil {
		w.t.Fatal(err)
	}
	if done < len(steps) && w.random.IntN(2) == 0 {
		w.insideWrites++
		w.disk.crashInside(w.random, steps[done])
	}
}

// restart recovers with or without answers from the API server, and with or without a
// partition that some claim left. It may be killed as well.
func (w *world) restart() {
	w.t.Helper()
	said := claims{}
	if w.random.IntN(3) > 0 {
		said = w.claims
	}
	held := w.left()
	config := w.config()
	config.ZoneBy = deviceclasses.ZoneBys()[w.random.IntN(4)] // operators may change it at any time
	restarted, err := w.disk.tryRead(config)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.killing {
		w.kill(restarted.recoverySteps(restarted.planner().planRecovery(said, held).grants))
		w.restart()
		return
	}
	if _, err = restarted.Recover(said, held); err != nil {
		w.t.Fatal(err)
	}
	w.driver = restarted
	w.orphans += len(restarted.orphans)
	assertConsistent(w.t, w.disk, w.driver)
	if w.random.IntN(2) == 0 { // otherwise it waits for the next Observe
		if _, err := restarted.Observe(nil); err != nil {
			w.t.Fatal(err)
		}
	}
}
