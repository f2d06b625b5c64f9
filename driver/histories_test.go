package driver

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

var historySteps = flag.Int("history-steps", 3000, "how long the random history of pods is")

// TestHistoriesGiveNothingTwice has pods come and go at random: deleted by force, without
// grace, with shared claims, while the daemon and the kubelet restart and drives are swapped.
// What a running container has is in no other grant.
func TestHistoriesGiveNothingTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	h := newHistory(t, 1)
	for step := range *historySteps {
		h.step()
		if wrong := h.check(); wrong != "" {
			t.Fatalf("step %d: %s\n%s", step, wrong, h.tail())
		}
	}
	t.Log(h.seen)
	for what, least := range map[string]int{
		"started": 100, "started again": 20, "deleted by force": 20, "waited": 10, "unprepared in use": 10, "shared": 20,
		"daemon": 20, "kubelet": 20, "swapped": 20, "lost": 3, "old answer": 5, "refused": 5,
	} {
		if h.seen[what] < least*(*historySteps)/3000 {
			t.Errorf("%s: %d times, want at least %d: not much of a test", what, h.seen[what], least)
		}
	}
}

// The test above finds each of these faults, or it would prove nothing.
func TestHistoriesFindFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	for fault, name := range map[int]string{nodesAreNotRead: "device nodes are not read again", inUseIsReleased: "what is in use is released", oldAnswers: "old answers of the API server count"} {
		wrong := ""
		for seed := uint64(0); wrong == "" && seed < 5; seed++ {
			h := newHistory(t, seed)
			h.fault = fault
			for step := 0; wrong == "" && step < 3000; step++ {
				h.step()
				wrong = h.check()
			}
		}
		if wrong == "" {
			t.Errorf("%s: nothing found", name)
		}
		t.Logf("%s: %s", name, wrong)
	}
}

// What a history does wrong, to show that it is noticed.
const (
	nodesAreNotRead = 1 + iota
	inUseIsReleased
	oldAnswers
)

// history is a node with a kubelet and a container runtime, and the objects of its claims and
// pods in the API server.
type history struct {
	t      *testing.T
	random *rand.Rand
	disk   disk
	hw     *hardware
	driver *Driver
	fault  int
	seen   map[string]int
	log    []string

	claims map[string]*resourceapi.ResourceClaim // in the API server, by name
	pods   map[types.UID]*pod
	made   int
	infos  map[types.UID]*claimInfo // of the kubelet
	asked  *answers                 // of the API server, not yet handed over
	specs  map[types.UID][]byte     // of claims, as the first container found them
}

// pod is a pod whose only container uses all of its claims.
type pod struct {
	uid       types.UID
	claims    []string
	deleted   bool // in the API server
	known     bool // to the kubelet's pod manager
	container *running
}

// running is what a container has: it stays until the container ends.
type running struct {
	claims    []types.UID
	cpus      cpuset.Set
	numbers   []string
	functions []string
}

// claimInfo is what the kubelet remembers of a claim: it does not prepare it for later pods.
type claimInfo struct {
	name     string
	prepared bool // lost with the kubelet
	grant    ledger.Grant
	devices  []string
	pods     map[types.UID]bool
	by       types.UID // the pod for which it was prepared
}

// answers is what the API server said at some time.
type answers struct {
	claims map[types.UID]*resourceapi.ResourceClaim
	since  uint64
}

// hardware is a machine whose drives are swapped.
type hardware struct {
	fs.FS
	slots [3]int // number of the drive in a slot; -1 if it is empty
}

func (h *hardware) ReadLink(name string) (string, error)       { return fs.ReadLink(h.FS, name) }
func (h *hardware) Lstat(name string) (fs.FileInfo, error)     { return fs.Lstat(h.FS, name) }
func (h *hardware) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(h.FS, name) }
func (h *hardware) ReadFile(name string) ([]byte, error)       { return fs.ReadFile(h.FS, name) }
func (h *hardware) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(h.FS, name) }

func slotAddress(slot int) string { return fmt.Sprintf("0001:2%d:00.0", 2*slot+1) }
func driveIn(slot int) string     { return fmt.Sprintf("nvme-0001-2%d-00-0", 2*slot+1) }

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{
		t: t, random: rand.New(rand.NewPCG(43, seed)), disk: pciDisk(t), hw: &hardware{slots: [3]int{0, 1, -1}}, seen: make(map[string]int),
		claims: make(map[string]*resourceapi.ResourceClaim), pods: make(map[types.UID]*pod), infos: make(map[types.UID]*claimInfo), specs: make(map[types.UID][]byte),
	}
	h.plug()
	h.restart()
	return h
}

// note remembers what was done.
func (h *history) note(what, format string, args ...any) {
	h.seen[what]++
	h.log = append(h.log, what+" "+fmt.Sprintf(format, args...))
}

func (h *history) tail() string { return strings.Join(h.log[max(0, len(h.log)-40):], "\n") }

func (h *history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%v\n%s", err, h.tail())
	}
}

// plug has the machine show what is in the slots.
func (h *history) plug() {
	machine := pciMachine(h.t)
	machine.PCI = nil
	for slot, number := range h.hw.slots {
		if number >= 0 {
			machine.PCI = append(machine.PCI, fake.NVMe(slotAddress(slot), slot, number))
		}
	}
	host, err := sysfs.NewHost(machine)
	h.must(err)
	h.hw.FS = host
	h.disk.machine, err = numa.Read(host)
	h.must(err)
}

// restart starts the daemon.
func (h *history) restart() {
	config := testConfig()
	config.Machine, config.Attached = h.hw, h.disk.selected
	if h.fault != inUseIsReleased {
		config.Containers = h.containers
	}
	var err error
	h.driver, err = Open(h.disk.machine, config, h.disk.state, h.disk.specs)
	h.must(err)
	_, err = h.driver.Recover(h.ask(h.driver.Grants()), nil)
	h.must(err)
	h.asked = nil
}

// containers is what the kernel shows: every pod has a cgroup while the kubelet knows it, or
// while its container runs.
func (h *history) containers() (Containers, error) {
	seen := Containers{Pods: make(map[types.UID]bool), AllPods: true, Recorded: make(map[types.UID]string)}
	for uid, pod := range h.pods {
		if pod.known || pod.container != nil {
			seen.Pods[uid] = pod.container != nil
		}
		if pod.container != nil {
			for _, claim := range pod.container.claims {
				seen.Recorded[claim] = "kubepods/" + string(uid)
			}
		}
	}
	return seen, nil
}

// ask asks the API server about claims.
func (h *history) ask(grants []ledger.Grant) map[types.UID]*resourceapi.ResourceClaim {
	says := make(map[types.UID]*resourceapi.ResourceClaim)
	for _, grant := range grants {
		says[grant.UID] = nil
		if claim := h.claims[grant.Name]; claim != nil {
			says[grant.UID] = claim.DeepCopy()
		}
	}
	return says
}

// some returns a random pod for which the function is true.
func (h *history) some(is func(*pod) bool) *pod {
	uids := slices.Sorted(maps.Keys(h.pods))
	for _, i := range h.random.Perm(len(uids)) {
		if pod := h.pods[uids[i]]; is(pod) {
			return pod
		}
	}
	return nil
}

// step does one thing.
func (h *history) step() {
	h.controllers()
	switch n := h.random.IntN(100); {
	case n < 14:
		h.create()
	case n < 44:
		if pod := h.some(func(p *pod) bool { return p.known && !p.deleted && p.container == nil }); pod != nil {
			h.sync(pod)
		}
	case n < 54: // a container fails, and is started again
		if pod := h.some(func(p *pod) bool { return p.known && !p.deleted && p.container != nil }); pod != nil {
			pod.container = nil
			if h.start(pod) {
				h.note("started again", "%s", pod.uid)
			}
		}
	case n < 60: // with a grace period: the kubelet unprepares when the container has ended
		if pod := h.some(func(p *pod) bool { return p.known && !p.deleted }); pod != nil {
			pod.container, pod.known, pod.deleted = nil, false, true
			h.note("deleted", "%s", pod.uid)
			h.reconcile()
		}
	case n < 67: // by force, or with a grace period of 0: it runs for a while
		if pod := h.some(func(p *pod) bool { return p.known && !p.deleted && p.container != nil }); pod != nil {
			pod.known, pod.deleted = false, true
			h.note("deleted by force", "%s", pod.uid)
		}
	case n < 71:
		if pod := h.some(func(p *pod) bool { return p.deleted && p.container != nil }); pod != nil {
			pod.container = nil
			h.note("ended", "%s", pod.uid)
		}
	case n < 76:
		h.reconcile()
	case n < 79:
		for _, info := range h.infos {
			info.prepared = false
		}
		h.note("kubelet", "restarts")
	case n < 82:
		h.note("daemon", "restarts")
		h.restart()
	case n < 87:
		h.swap()
	case n < 95:
		h.look()
	default:
		h.observe()
	}
}

// controllers do what the controllers and the scheduler do.
func (h *history) controllers() {
	for _, pod := range h.pods {
		if pod.deleted && pod.container == nil && !pod.known {
			delete(h.pods, pod.uid)
		}
	}
	for name, claim := range h.claims {
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(by resourceapi.ResourceClaimConsumerReference) bool {
			pod := h.pods[by.UID]
			return pod == nil || pod.deleted
		})
		if len(claim.Status.ReservedFor) == 0 {
			claim.Status.Allocation = nil
			if !strings.HasPrefix(name, "shared") {
				delete(h.claims, name)
			}
		}
	}
}

// create makes a pod that is scheduled here, if there is room.
func (h *history) create() {
	if len(h.pods) > 12 {
		return
	}
	h.made++
	made := &pod{uid: types.UID(fmt.Sprintf("pod-%d", h.made)), known: true}
	name := fmt.Sprintf("own-%d", h.made)
	if h.random.IntN(2) == 0 {
		name = fmt.Sprintf("shared-%d", h.random.IntN(2))
	}
	claim := h.claims[name]
	if claim == nil {
		claim = &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(fmt.Sprintf("uid-%s-%d", name, h.made))}}
	}
	if claim.Status.Allocation == nil {
		results := h.allocate()
		if results == nil {
			return
		}
		claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}
	} else {
		h.seen["shared"]++
	}
	h.claims[name] = claim
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: string(made.uid), UID: made.uid})
	made.claims = []string{name}
	h.pods[made.uid] = made
	h.note("created", "%s with %s: %v", made.uid, name, claim.Status.Allocation.Devices.Results)
}

// allocate does what the scheduler does: it counts claims, and knows nothing of containers.
func (h *history) allocate() (results []resourceapi.DeviceRequestAllocationResult) {
	used := make(map[string]int64)
	for _, claim := range h.claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			quantity := result.ConsumedCapacity["cpu"]
			used[result.Device] += max(1, quantity.Value())
		}
	}
	if h.random.IntN(3) > 0 {
		zone := fmt.Sprintf("numa-%d", h.random.IntN(3))
		if used[zone] > 0 {
			return nil // each claim has the whole zone but for the reserved CPUs: often short
		}
		return append(results, result("cpus", zone, 2))
	}
	slot := h.random.IntN(len(h.hw.slots))
	if h.hw.slots[slot] < 0 || used[driveIn(slot)] > 0 {
		return nil
	}
	return append(results, functionResult("drive", driveIn(slot)))
}

// sync is the kubelet's worker for a pod that has no container yet.
func (h *history) sync(pod *pod) {
	for _, name := range pod.claims {
		claim := h.claims[name]
		if claim == nil || claim.Status.Allocation == nil {
			return
		}
		info := h.infos[claim.UID]
		if info == nil {
			info = &claimInfo{name: name, pods: make(map[types.UID]bool)}
			h.infos[claim.UID] = info
		}
		info.pods[pod.uid] = true
		if info.prepared {
			continue
		}
		h.faulty()
		grant, devices, err := h.driver.Prepare(claim.DeepCopy(), nil)
		if err != nil {
			h.note("refused", "%s: %v", pod.uid, err)
			return
		}
		info.prepared, info.grant, info.devices, info.by = true, grant, nil, pod.uid
		for _, device := range devices {
			info.devices = append(info.devices, device.CDIDeviceIDs...)
		}
		h.note("prepared", "%s for %s: %s", grant, pod.uid, info.devices)
	}
	if h.random.IntN(3) > 0 {
		return // images take a while
	}
	if h.start(pod) {
		h.note("started", "%s", pod.uid)
	}
}

// start starts a container as the runtime does: from the CDI specs that there are now.
func (h *history) start(pod *pod) bool {
	container := &running{}
	for _, name := range pod.claims {
		claim := h.claims[name]
		if claim == nil || h.infos[claim.UID] == nil {
			return false
		}
		container.claims = append(container.claims, claim.UID)
		for _, id := range h.infos[claim.UID].devices {
			if !h.add(container, claim.UID, strings.TrimPrefix(id, "dra.numa/claim=")) {
				h.note("not started", "%s: no device %s", pod.uid, id)
				return false
			}
		}
	}
	pod.container = container
	return true
}

// observe is the daemon's look at the node.
func (h *history) observe() {
	if h.fault != nodesAreNotRead {
		news, err := h.driver.RereadFunctions()
		h.must(err)
		for _, changed := range news {
			h.note("reread", "%s", changed)
		}
	}
	report, err := h.driver.Observe(nil)
	h.must(err)
	for _, finding := range report {
		if finding.Outcome == Waiting {
			h.seen["waited"]++
		}
		h.note("observed", "%s", finding)
	}
}

// look asks the API server whether claims are gone. The answer comes later.
func (h *history) look() {
	if h.asked == nil {
		h.asked = &answers{since: h.driver.Prepares(), claims: h.ask(h.driver.Grants())}
		for uid := range h.infos { // also about what is prepared before the answer comes
			if _, asked := h.asked.claims[uid]; !asked {
				h.asked.claims[uid] = nil
			}
		}
		h.seen["asked"]++
		return
	}
	if h.random.IntN(3) > 0 {
		return
	}
	if h.fault == oldAnswers {
		h.asked.since = math.MaxUint64
	}
	h.note("old answer", "%v", slices.Sorted(maps.Keys(h.asked.claims)))
	h.driver.Reconsider(h.asked.claims, h.asked.since)
	h.asked = nil
}

// reconcile is the kubelet's loop that unprepares the claims of pods that are not active.
func (h *history) reconcile() {
	for uid, info := range h.infos {
		maps.DeleteFunc(info.pods, func(uid types.UID, _ bool) bool { return h.pods[uid] == nil || !h.pods[uid].known })
		if len(info.pods) > 0 {
			continue
		}
		err := h.driver.Unprepare(uid)
		var inUse *InUseError
		if errors.As(err, &inUse) {
			h.note("unprepared in use", "%s: %v", info.name, err)
			err = h.driver.Abandon(uid)
		}
		h.must(err)
		delete(h.infos, uid)
		h.note("unprepared", "%s", info.name)
	}
}

// swap takes a drive out or puts one in. The kernel gives it the lowest free number.
func (h *history) swap() {
	slot := h.random.IntN(len(h.hw.slots))
	if h.hw.slots[slot] >= 0 {
		h.hw.slots[slot] = -1
	} else {
		number := 0
		for slices.Contains(h.hw.slots[:], number) {
			number++
		}
		h.hw.slots[slot] = number
	}
	h.plug()
	h.driver.SetMachine(h.disk.machine)
	h.note("swapped", "drives in slots are %v", h.hw.slots)
}

// check says what is given to two.
func (h *history) check() string {
	for uid, pod := range h.pods {
		has := pod.container
		if has == nil {
			continue
		}
		for _, grant := range h.driver.Grants() {
			if slices.Contains(has.claims, grant.UID) {
				continue
			}
			if both := grant.CPUs().Intersection(has.cpus); !both.IsEmpty() {
				return fmt.Sprintf("the container of %s runs on cpus %s, which %s has", uid, both, grant)
			}
			for _, f := range grant.Functions() {
				for _, node := range f.Nodes {
					if !node.IsShared() && slices.Contains(has.numbers, node.Number()) {
						return fmt.Sprintf("the container of %s has device %s, which %s has", uid, node.Number(), grant)
					}
				}
				if slices.Contains(has.functions, f.Address) {
					return fmt.Sprintf("the container of %s has PCI function %s, which %s has", uid, f.Address, grant)
				}
			}
		}
	}
	for uid, info := range h.infos {
		pod := h.pods[info.by]
		if grant, held := h.driver.Grant(uid); info.prepared && pod != nil && pod.known && (!held || grant.CPUs() != info.grant.CPUs()) {
			return fmt.Sprintf("claim %s is prepared for %s, and has %s instead of %s", info.name, info.by, grant, info.grant)
		}
	}
	return ""
}

// faulty has the driver forget which devices other claims have, as it once did.
func (h *history) faulty() {
	if h.fault != nodesAreNotRead {
		return
	}
	for i, grant := range h.driver.grants {
		forgotten := ledger.NewListed(withoutNodes(grant.Grant))
		h.driver.grants = slices.Clone(h.driver.grants)
		h.driver.grants[i] = forgotten
	}
}

// add gives the container a device of a claim, or says that it cannot start.
func (h *history) add(container *running, claim types.UID, name string) bool {
	text, err := h.disk.specs.ReadFile(specName(claim))
	if h.fault == nodesAreNotRead { // the spec of Prepare, as it once stayed
		if first := h.specs[claim]; first != nil {
			text, err = first, nil
		}
		if strings.Contains(string(text), "--function") {
			h.specs[claim] = text
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	h.must(err)
	var spec specs.Spec
	h.must(json.Unmarshal(text, &spec))
	i := slices.IndexFunc(spec.Devices, func(d specs.Device) bool { return d.Name == name })
	if i < 0 {
		h.seen["lost"]++
		return false
	}
	edits := spec.Devices[i].ContainerEdits
	var numbers []string
	for _, node := range edits.DeviceNodes {
		numbers = append(numbers, devnode.Node{Type: node.Type, Major: uint32(node.Major), Minor: uint32(node.Minor)}.Number())
	}
	for _, arg := range edits.Hooks[0].Args {
		switch flag, value, _ := strings.Cut(arg, "="); flag {
		case "--cpus":
			cpus, err := cpuset.Parse(value)
			h.must(err)
			container.cpus = container.cpus.Union(cpus)
		case "--function":
			container.functions = append(container.functions, value)
			access, err := devnode.Read(h.hw, value)
			has := func(number string) bool {
				return slices.ContainsFunc(access.Nodes, func(n devnode.Node) bool { return n.Number() == number })
			}
			if h.fault != nodesAreNotRead && (err != nil || slices.ContainsFunc(numbers, func(n string) bool { return !has(n) })) {
				h.seen["lost"]++
				return false // the hook refuses it
			}
		}
	}
	container.numbers = append(container.numbers, numbers...)
	return true
}
