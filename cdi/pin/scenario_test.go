package pin

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const (
	podA     = "pintest-pods/besteffort/podA"
	pauseA   = podA + "/pause"
	sidecarA = podA + "/sidecar"
	podB     = "pintest-pods/burstable/podB"

	scopeSystemd   = "pintest.slice/pintest-burstable.slice/pintest-burstable-pod1_2.slice/cri-containerd-0f3a.scope"
	sidecarSystemd = "pintest.slice/pintest-burstable.slice/pintest-burstable-pod1_2.slice/cri-containerd-77aa.scope"
)

func claimed(uid, cpus, nodes string, partition Partition) Claim {
	return Claim{ClaimRef: ClaimRef{uid, "team/" + uid}, Pinning: Pinning{CPUs: parse(cpus), Mems: mems(nodes), Partition: partition}}
}

// scenarios run on the fake of both kinds of kernel and on the real one.
var scenarios = []struct {
	name string
	run  func(machine)
}{
	{"pod scope", podScope},
	{"pod scope with two claims", podScopeGrows},
	{"two containers, then one after the other", oneAfterTheOther},
	{"two requests of one claim", requestsApart},
	{"a claim in one container, a request of it in another", wholeAndPart},
	{"claims of one container", claimsUnite},
	{"isolated", isolated},
	{"claim in two pods", inTwoPods},
	{"claim in a pod that comes later", inLaterPod},
	{"somebody else writes", somebodyWrites},
	{"sibling with cpus of its own", siblingWithCPUs},
	{"recorded sibling in the way", recordedSibling},
	{"cpu offline", oneOffline},
	{"all cpus offline", allOffline},
	{"systemd", systemdNames},
	{"refused", refused},
	{"record of another boot", otherBoot},
	{"container with cpus of its own in a pod", narrowInside},
	{"memory only", memoryOnly},
	{"cpus of a dead container in use again", deadInUse},
	{"slice of the host", sliceOfHost},
	{"quotas that only throttle", throttlingQuotas},
	{"quota for several requests of a container", quotaOfSeveralRequests},
	{"quota of a cgroup that a container has made", quotaOfACgroupOfTheContainer},
}

func TestScenarios(t *testing.T) {
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			eachFake(t, func(m machine) { scenario.run(m); checkEmptied(m) })
		})
	}
}

func TestKernelScenarios(t *testing.T) {
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			k := needKernel(t)
			scenario.run(k)
			checkEmptied(k)
		})
	}
}

// checkEmptied ends all containers, lets the keeper work, and checks that
// nobody lost a CPU and nothing is left.
func checkEmptied(m machine) {
	m.Helper()
	for _, top := range []string{"pintest-pods", "pintest-system", "pintest.slice"} {
		if _, err := m.host().Cgroups.Stat(top); err == nil {
			m.end(top)
		}
	}
	keep(m)
	if left := recordFiles(m); len(left) > 0 {
		m.Errorf("records left over: %q", left)
	}
	if left := partitions(m); len(left) > 0 {
		m.Errorf("partitions left over: %v", left)
	}
	if left := m.line(cpusFile + ".effective"); left != m.allCPUs().String() {
		m.Errorf("the root cgroup has cpus %s, want %s", left, m.allCPUs())
	}
	checkNoExclusive(m)
}

// checkNoExclusive looks for what dead partitions leave at their ancestors.
func checkNoExclusive(m machine) {
	m.Helper()
	var t tree
	if err := t.walk(m.host().Cgroups.FS(), ""); err != nil {
		m.Fatal(err)
	}
	for _, g := range t {
		m.Errorf("%s still has exclusive cpus %q (%s)", g.path, g.exclusive, g.state)
	}
}

// checkPartitions compares who has a partition, and checks that no CPU is in
// two of them and that the root cgroup has all others.
func checkPartitions(m machine, want ...Holding) {
	m.Helper()
	got := partitions(m)
	if !slices.Equal(got, want) {
		m.Errorf("partitions %v, want %v", got, want)
	}
	rest := m.allCPUs()
	for i, h := range got {
		for _, other := range got[:i] {
			if h.CPUs.Overlaps(other.CPUs) {
				m.Errorf("partitions %v and %v overlap", h, other)
			}
		}
		rest = rest.Difference(h.CPUs)
	}
	if left := m.line(cpusFile + ".effective"); left != rest.String() {
		m.Errorf("the root cgroup has cpus %s, want %s", left, rest)
	}
}

// checkLive compares what Inspect says, one line for each cgroup.
func checkLive(m machine, want ...string) {
	m.Helper()
	list, err := Inspect(m.host().Cgroups.FS(), m.host().Records.FS())
	if err != nil {
		m.Fatal(err)
	}
	var got []string
	for _, l := range list {
		line := fmt.Sprintf("%s %s", path.Base(l.Cgroup), l.Want.Partition)
		for _, claim := range l.Claims {
			line += " " + claim.UID
		}
		if l.Downgraded {
			line += " downgraded"
		}
		if l.Fault != "" {
			line += " fault"
		}
		got = append(got, line)
	}
	if !slices.Equal(got, want) {
		m.Errorf("live %q, want %q", got, want)
	}
}

func checkLine(m machine, file, want string) {
	m.Helper()
	if base := path.Base(file); base == memsFile || base == memsFile+".effective" {
		want = mems(want).String()
	}
	if got := m.line(file); got != want {
		m.Errorf("%s is %q, want %q", file, got, want)
	}
}

func mustPin(m machine, container string, scope Scope, claim Claim) {
	m.Helper()
	if err := Pin(m.host(), container, scope, claim); err != nil {
		m.Fatalf("pin %s to %s: %v", container, claim.Pinning, err)
	}
}

// mustRepair lets the keeper work once; it has something to do, and then not.
func mustRepair(m machine, want string) {
	m.Helper()
	lines := keep(m)
	if len(lines) == 0 || !strings.Contains(strings.Join(lines, "\n"), want) {
		m.Errorf("the keeper says %q, want %q", lines, want)
	}
	if again := keep(m); len(again) > 0 {
		m.Errorf("the keeper says again %q", again)
	}
}

func mustOnline(m machine, cpu int, online bool) {
	m.Helper()
	if err := m.setOnline(cpu, online); err != nil {
		m.Fatal(err)
	}
}

func running(m machine, dirs ...string) {
	m.Helper()
	for _, dir := range dirs {
		m.start(m.create(dir))
	}
}

func podScope(m machine) {
	running(m, pauseA, ctrA, sidecarA)
	claim := claimed("job", "2-3", "1", PartitionRoot)
	mustPin(m, ctrA, ScopePod, claim)
	checkPartitions(m, Holding{podA, parse("2-3"), "root"})
	mustPin(m, sidecarA, ScopePod, claimed("job", "2-3", "0", PartitionRoot))
	for file, want := range map[string]string{
		pauseA + "/cpuset.cpus.effective": "2-3", ctrA + "/cpuset.cpus.effective": "2-3", sidecarA + "/cpuset.cpus.effective": "2-3",
		pauseA + "/cpuset.mems.effective": m.allMems().String(), ctrA + "/cpuset.mems": "1", sidecarA + "/cpuset.mems": "0",
		podA + "/cpuset.mems": "", ctrA + "/cpuset.cpus": "2-3", sidecarA + "/cpuset.cpus": "2-3", ctrA + "/cpuset.cpus.partition": "member",
	} {
		checkLine(m, file, want)
	}
	checkLive(m, "a none job", "podA root job", "sidecar none job")
	h := m.host()
	wrap := h.around
	h.around = func(w Write, effect func() error) error {
		if w.Value != "verify" {
			m.Errorf("the same pin again writes %v", w)
		}
		if wrap != nil {
			return wrap(w, effect)
		}
		return effect()
	}
	if err := Pin(h, ctrA, ScopePod, claim); err != nil {
		m.Error(err)
	}
	m.end(ctrA)
	mustRepair(m, "released cgroup "+ctrA+" of claim team/job")
	checkPartitions(m, Holding{podA, parse("2-3"), "root"})
	m.remove(podA)
	mustRepair(m, "released cgroup "+podA)
	checkNoExclusive(m)
}

func podScopeGrows(m machine) {
	running(m, pauseA, ctrA, ctrB)
	m.write(ctrA+"/"+cpusFile, "2-5") // as a runtime that knows both claims
	mustPin(m, ctrB, ScopeContainer, claimed("other", "7", "0", PartitionRoot))
	mustPin(m, ctrA, ScopePod, claimed("one", "2-3", "1", PartitionRoot))
	checkLine(m, ctrA+"/cpuset.cpus.effective", "2-3")
	mustPin(m, ctrA, ScopePod, claimed("two", "4-5", "0", PartitionIsolated))
	checkLine(m, ctrA+"/cpuset.cpus.effective", "2-5")
	checkLine(m, ctrA+"/cpuset.mems", "0-1")
	checkPartitions(m, Holding{podA, parse("2-5"), "isolated"}, Holding{ctrB, parse("7"), "root"})
	// A claim that cannot be: the pod keeps what it had.
	before := recordFiles(m)
	err := Pin(m.host(), ctrA, ScopePod, claimed("three", "6-7", "0", PartitionRoot))
	if !errors.Is(err, ErrInUse) {
		m.Errorf("pin to cpus of another pod: %v", err)
	}
	checkPartitions(m, Holding{podA, parse("2-5"), "isolated"}, Holding{ctrB, parse("7"), "root"})
	if after := recordFiles(m); !slices.Equal(before, after) {
		m.Errorf("records %q, want %q", after, before)
	}
	checkLive(m, "a none one two", "b root other", "podA isolated one two")
	if lines := keep(m); len(lines) > 0 {
		m.Errorf("the keeper says %q", lines)
	}
}

func oneAfterTheOther(m machine) {
	claim := claimed("job", "2-3", "0", PartitionRoot)
	running(m, pauseA, ctrA)
	mustPin(m, ctrA, ScopeContainer, claim)
	running(m, sidecarA)
	err := Pin(m.host(), sidecarA, ScopeContainer, claim)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), ctrA+" of the same pod uses the claim") {
		m.Errorf("pin while another container has the claim: %v", err)
	}
	checkPartitions(m, Holding{ctrA, parse("2-3"), "root"})
	m.end(ctrA) // its cgroup is still there
	mustPin(m, sidecarA, ScopeContainer, claim)
	checkPartitions(m, Holding{sidecarA, parse("2-3"), "root"})
	checkLine(m, ctrA+"/"+exclusiveFile, "")
	if files := recordFiles(m); !slices.Equal(files, []string{"sidecar.json"}) {
		m.Errorf("records %q", files)
	}
}

// The containers of a pod name different requests of one claim: each has a partition.
func requestsApart(m machine) {
	running(m, pauseA, ctrA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "0", PartitionRoot))
	running(m, sidecarA)
	mustPin(m, sidecarA, ScopeContainer, claimed("job", "4-5", "1", PartitionIsolated))
	checkPartitions(m, Holding{ctrA, parse("2-3"), "root"}, Holding{sidecarA, parse("4-5"), "isolated"})
	checkLive(m, "a root job", "sidecar isolated job")
	if lines := keep(m); len(lines) > 0 {
		m.Errorf("the keeper says %q", lines)
	}
	// It starts again, and the other one is not touched.
	m.end(sidecarA)
	checkPartitions(m, Holding{ctrA, parse("2-3"), "root"}, Holding{sidecarA, parse("4-5"), "isolated"})
	running(m, sidecarA)
	mustPin(m, sidecarA, ScopeContainer, claimed("job", "4-5", "1", PartitionIsolated))
	checkPartitions(m, Holding{ctrA, parse("2-3"), "root"}, Holding{sidecarA, parse("4-5"), "isolated"})
	// One of the requests is used in another pod: the other request stays exclusive.
	running(m, ctrB)
	mustPin(m, ctrB, ScopeContainer, claimed("job", "2-3", "0", PartitionRoot))
	checkPartitions(m, Holding{sidecarA, parse("4-5"), "isolated"})
	checkLive(m, "a none job downgraded", "b none job downgraded", "sidecar isolated job")
}

// A container has the whole claim, another one a request of it: the pod is the
// partition, and inside of it each container has its own CPUs.
func wholeAndPart(m machine) {
	for _, order := range [][]string{{sidecarA, ctrA}, {ctrA, sidecarA}} {
		running(m, pauseA, ctrA, sidecarA)
		for _, container := range order {
			mustPin(m, container, ScopePod, claimed("job", "2-3", "0", PartitionRoot))
			if container == ctrA {
				mustPin(m, container, ScopePod, claimed("job", "4-5", "0", PartitionRoot))
			}
		}
		checkPartitions(m, Holding{podA, parse("2-5"), "root"})
		checkLine(m, ctrA+"/cpuset.cpus.effective", "2-5")
		checkLine(m, sidecarA+"/cpuset.cpus.effective", "2-3")
		checkLive(m, "a none job", "podA root job", "sidecar none job")
		m.write(sidecarA+"/"+cpusFile, "2-5")
		mustRepair(m, "repaired cgroup "+sidecarA)
		checkLine(m, sidecarA+"/cpuset.cpus.effective", "2-3")
		m.end(podA)
		mustRepair(m, "released cgroup "+podA)
	}
}

func claimsUnite(m machine) {
	running(m, ctrA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2", "0", PartitionRoot))
	mustPin(m, ctrA, ScopeContainer, claimed("job", "3", "1", PartitionRoot))
	mustPin(m, ctrA, ScopeContainer, claimed("extra", "5", "1", PartitionIsolated))
	mustPin(m, ctrA, ScopeContainer, claimed("memory", "", "0", PartitionRoot))
	checkPartitions(m, Holding{ctrA, parse("2-3,5"), "isolated"})
	checkLine(m, ctrA+"/cpuset.mems.effective", "0-1")
	checkLive(m, "a isolated extra job memory")
}

func isolated(m machine) {
	running(m, ctrA, ctrB)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "0", PartitionIsolated))
	mustPin(m, ctrB, ScopeContainer, claimed("shared", "5", "1", PartitionNone))
	checkPartitions(m, Holding{ctrA, parse("2-3"), "isolated"})
	checkLine(m, ctrB+"/cpuset.cpus.effective", "5")
	m.write(ctrA+"/"+partitionFile, "root")
	mustRepair(m, "repaired cgroup "+ctrA)
	checkPartitions(m, Holding{ctrA, parse("2-3"), "isolated"})
}

func inTwoPods(m machine) {
	claim := claimed("job", "2-3", "0", PartitionRoot)
	running(m, ctrA, ctrB, ctrC)
	mustPin(m, ctrC, ScopeContainer, claimed("other", "6", "0", PartitionRoot))
	mustPin(m, ctrA, ScopeContainer, claim)
	mustPin(m, ctrB, ScopePod, claim)
	other := Holding{ctrC, parse("6"), "root"}
	checkPartitions(m, other)
	for _, dir := range []string{ctrA, podB, ctrB} {
		checkLine(m, dir+"/cpuset.cpus.effective", "2-3")
	}
	checkLive(m, "a none job downgraded", "b none job", "c root other", "podB none job downgraded")
	if lines := keep(m); len(lines) > 0 {
		m.Errorf("the keeper says %q", lines)
	}
	m.end(ctrA)
	mustRepair(m, "repaired cgroup "+podB)
	checkPartitions(m, Holding{podB, parse("2-3"), "root"}, other)
	running(m, ctrA)
	mustPin(m, ctrA, ScopeContainer, claim)
	checkPartitions(m, other)
	m.end(podB)
	mustRepair(m, "repaired cgroup "+ctrA)
	checkPartitions(m, Holding{ctrA, parse("2-3"), "root"}, other)
}

// inLaterPod has a pod come to a claim in pod scope that nobody has asked about: a container
// without the claim may run in it, which must not have the CPUs to itself.
func inLaterPod(m machine) {
	claim := claimed("job", "2-3", "0", PartitionRoot)
	later := claim
	later.Later = true
	running(m, ctrA, ctrB)
	mustPin(m, ctrA, ScopePod, claim)
	checkPartitions(m, Holding{podA, parse("2-3"), "root"})
	mustPin(m, ctrB, ScopePod, later)
	checkPartitions(m)
	m.end(podA)
	keep(m)
	checkPartitions(m)
	checkLine(m, ctrB+"/cpuset.cpus.effective", "2-3")
	checkLive(m, "b none job", "podB none job downgraded")
	// The claim was prepared again, which asked about the pod, and the container restarts.
	mustPin(m, ctrB, ScopePod, claim)
	checkPartitions(m, Holding{podB, parse("2-3"), "root"})
	mustPin(m, ctrB, ScopePod, later)
	checkPartitions(m)
	running(m, ctrA)
	mustPin(m, ctrA, ScopePod, claim)
	m.end(podB)
	keep(m)
	checkPartitions(m, Holding{podA, parse("2-3"), "root"})
}

func somebodyWrites(m machine) {
	running(m, ctrA, sidecarA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
	for _, w := range []Write{
		{ctrA + "/" + partitionFile, member},
		{ctrA + "/" + cpusFile, "2-5"},
		{ctrA + "/" + cpusFile, "2"},
		{ctrA + "/" + cpusFile, ""},
		{ctrA + "/" + memsFile, "0"},
		{ctrA + "/" + exclusiveFile, "2"},
		{ctrA + "/" + exclusiveFile, ""},
		{podA + "/" + exclusiveFile, ""},
	} {
		if path.Base(w.File) == memsFile && hasOneNode() {
			continue // it is what the claim has
		}
		if err := m.try(w.File, w.Value); err != nil {
			m.Logf("%v: %v", w, err)
			continue
		}
		mustRepair(m, "repaired cgroup "+ctrA)
		checkPartitions(m, Holding{ctrA, parse("2-3"), "root"})
		checkLine(m, ctrA+"/cpuset.cpus.effective", "2-3")
		checkLine(m, ctrA+"/"+cpusFile, "2-3")
		checkLine(m, ctrA+"/cpuset.mems.effective", "1")
		checkLive(m, "a root job")
	}
}

// Up to Linux 6.19 a sibling with an overlapping cpuset.cpus of its own makes
// the partition invalid; 7.0 lets the partition win, but 7.2 still refuses an
// exclusive set that leaves the sibling nothing. It clears the file of a cgroup
// with tasks, which 6.12 refuses.
func siblingWithCPUs(m machine) {
	claim := claimed("job", "2-3", "0", PartitionRoot)
	running(m, ctrA, sidecarA)
	sibling := sidecarA + "/" + cpusFile
	for _, row := range []struct{ own, old, now string }{
		{"3-4", "4", "3-4"},
		{"3", m.allCPUs().Difference(parse("2-3")).String(), ""},
		{"0-7", "0-1,4-7", "0-7"},
	} {
		left := row.now
		if m.siblingsInvalidate() {
			left = row.old
		}
		// Before: the hook sees to it.
		m.write(sibling, row.own)
		mustPin(m, ctrA, ScopeContainer, claim)
		checkPartitions(m, Holding{ctrA, parse("2-3"), "root"})
		checkLine(m, sibling, left)
		// Afterwards: the keeper does.
		m.write(sibling, "5")
		m.write(sibling, row.own)
		if m.siblingsInvalidate() {
			checkLive(m, "a root job fault")
			mustRepair(m, "repaired cgroup "+ctrA)
			checkLine(m, sibling, left)
		}
		checkLive(m, "a root job")
		checkPartitions(m, Holding{ctrA, parse("2-3"), "root"})
		m.write(sibling, "5")
		m.write(ctrA+"/"+partitionFile, member)
		m.write(ctrA+"/"+exclusiveFile, "")
	}
}

// A sibling that a record gives overlapping CPUs keeps them: somebody gave them
// twice, and the second container must not start.
func recordedSibling(m machine) {
	running(m, ctrA, sidecarA)
	mustPin(m, sidecarA, ScopeContainer, claimed("shared", "3", "0", PartitionNone))
	err := Pin(m.host(), ctrA, ScopeContainer, claimed("job", "2-3", "0", PartitionRoot))
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "cgroup "+sidecarA+" has cpuset.cpus 3") {
		m.Errorf("pin over a recorded sibling: %v", err)
	}
	checkPartitions(m)
	checkLine(m, sidecarA+"/cpuset.cpus.effective", "3")
	checkLive(m, "sidecar none shared")
	if files := recordFiles(m); !slices.Equal(files, []string{"sidecar.json"}) {
		m.Errorf("records %q", files)
	}
}

func oneOffline(m machine) {
	running(m, ctrA, ctrB)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "4-5", "0", PartitionRoot))
	mustOnline(m, 5, false)
	defer mustOnline(m, 5, true)
	checkLive(m, "a root job fault")
	var lines []string
	k := keeper(m.host(), &lines)
	k.Lock = func() (func(), error) { return nil, errors.New("no write helps: the keeper must not hold up hooks") }
	for range 3 {
		if healthy := k.pass(m.Context(), &watch{}); healthy || k.Counts().Unrepaired != 1 {
			m.Errorf("the keeper is content without cpu 5, and counts %d cgroups", k.Counts().Unrepaired)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], ctrA+" should have cpus 4-5 for claim team/job: ") {
		m.Errorf("the keeper says %q, want one line", lines)
	}
	checkLine(m, ctrA+"/"+partitionFile, "root")
	err := Pin(m.host(), ctrB, ScopeContainer, claimed("new", "5-6", "0", PartitionRoot))
	if err == nil {
		m.Error("pin to an offline cpu is nil")
	}
	mustOnline(m, 5, true)
	k.Lock = keeper(m.host(), nil).Lock
	if healthy := k.pass(m.Context(), &watch{}); !healthy || len(lines) > 2 {
		m.Errorf("with cpu 5 again the keeper says %q", lines)
	}
	checkPartitions(m, Holding{ctrA, parse("4-5"), "root"})
	checkLive(m, "a root job")
}

func allOffline(m machine) {
	running(m, ctrA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "4-5", "0", PartitionRoot))
	for cpu := 4; cpu <= 5; cpu++ {
		err := m.setOnline(cpu, false)
		defer mustOnline(m, cpu, true)
		if errors.Is(err, syscall.EBUSY) && cpu == 5 {
			m.Log("this kernel keeps the last CPU of a partition online: ", err)
			return
		} else if err != nil {
			m.Fatal(err)
		}
	}
	checkLive(m, "a root job fault")
	k := keeper(m.host(), nil)
	k.Lock = func() (func(), error) {
		m.Error("no write helps, and the keeper takes the lock")
		return func() {}, nil
	}
	k.pass(m.Context(), &watch{})
	mustOnline(m, 4, true)
	mustOnline(m, 5, true)
	if m.line(ctrA+"/"+partitionFile) != "root" {
		mustRepair(m, "repaired cgroup "+ctrA)
	}
	checkPartitions(m, Holding{ctrA, parse("4-5"), "root"})
	checkLine(m, ctrA+"/cpuset.cpus.effective", "4-5")
}

func systemdNames(m machine) {
	running(m, scopeSystemd, sidecarSystemd)
	claim := claimed("job", "2-3", "1", PartitionRoot)
	mustPin(m, scopeSystemd, ScopePod, claim)
	mustPin(m, sidecarSystemd, ScopePod, claim)
	checkPartitions(m, Holding{path.Dir(scopeSystemd), parse("2-3"), "root"})
	want := []string{"cri-containerd-0f3a.scope.json", "cri-containerd-77aa.scope.json", "pintest-burstable-pod1_2.slice.json"}
	if files := recordFiles(m); !slices.Equal(files, want) {
		m.Errorf("records %q", files)
	}
}

func refused(m machine) {
	running(m, ctrA, ctrB)
	mustPin(m, ctrB, ScopeContainer, claimed("other", "7", "0", PartitionRoot))
	for _, scope := range []Scope{ScopeContainer, ScopePod} {
		for _, claim := range []Claim{
			claimed("job", "2,7", "0", PartitionRoot), claimed("job", "2,900", "0", PartitionRoot),
			claimed("job", "2", "60", PartitionRoot), claimed("job", "2,900", "0", PartitionNone),
		} {
			err := Pin(m.host(), ctrA, scope, claim)
			if err == nil || strings.Contains(err.Error(), "\n") {
				m.Errorf("pin to %s in scope %s: %v, want an error of one line", claim.Pinning, scope, err)
			}
			if files := recordFiles(m); !slices.Equal(files, []string{"b.json"}) {
				m.Errorf("records %q", files)
			}
			checkPartitions(m, Holding{ctrB, parse("7"), "root"})
			if lines := keep(m); len(lines) > 0 {
				m.Errorf("the keeper says %q", lines)
			}
			for _, dir := range []string{ctrA, podA, path.Dir(podA)} {
				checkLine(m, dir+"/"+exclusiveFile, "")
			}
			checkLine(m, podA+"/cpuset.cpus.effective", m.line(path.Dir(podA)+"/cpuset.cpus.effective"))
		}
	}
	if err := Pin(m.host(), "pintest-pods/../../etc", ScopePod, claimed("x", "2", "", PartitionRoot)); err == nil {
		m.Error("pin outside of the mount is nil")
	}
}

// A pod's cgroup has the same path after a reboot.
func otherBoot(m machine) {
	running(m, ctrA)
	old := m.host()
	old.Boot = "boot before"
	if err := old.save(record{Boot: old.Boot, Cgroup: podA, Scope: ScopePod, Claims: []Claim{claimed("job", "5-6", "", PartitionRoot)}}); err != nil {
		m.Fatal(err)
	}
	mustPin(m, ctrA, ScopePod, claimed("job", "2-3", "0", PartitionRoot))
	checkPartitions(m, Holding{podA, parse("2-3"), "root"})
	if err := old.save(record{Boot: old.Boot, Cgroup: ctrB, Scope: ScopeContainer, Claims: []Claim{claimed("job", "2-3", "", PartitionRoot)}}); err != nil {
		m.Fatal(err)
	}
	mustRepair(m, "released cgroup "+ctrB)
	checkPartitions(m, Holding{podA, parse("2-3"), "root"})
}

func memoryOnly(m machine) {
	running(m, ctrA, sidecarA)
	for _, dir := range []string{ctrA, sidecarA} {
		mustPin(m, dir, ScopePod, claimed("memory", "", "1", PartitionRoot))
		checkLine(m, dir+"/cpuset.mems.effective", "1")
	}
	checkPartitions(m)
	checkLive(m, "a none memory", "sidecar none memory")
	if hasOneNode() {
		return // no other node to write
	}
	m.write(ctrA+"/"+memsFile, "0")
	mustRepair(m, "repaired cgroup "+ctrA)
	checkLine(m, ctrA+"/cpuset.mems.effective", "1")
}

// A container inside of its pod's partition has its claim's CPUs, all of them,
// whatever its runtime set.
func narrowInside(m machine) {
	running(m, pauseA, ctrA)
	for _, own := range []string{"2", "2-5", m.allCPUs().String()} {
		m.write(ctrA+"/"+cpusFile, own)
		mustPin(m, ctrA, ScopePod, claimed("job", "2-3", "0", PartitionRoot))
		checkPartitions(m, Holding{podA, parse("2-3"), "root"})
		checkLine(m, ctrA+"/cpuset.cpus.effective", "2-3")
		checkLine(m, ctrA+"/"+cpusFile, "2-3")
	}
}

// A dead container's CPUs are given to another one before any keeper ran.
func deadInUse(m machine) {
	running(m, ctrA, ctrB, ctrC)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-5", "0", PartitionRoot))
	m.end(ctrA)
	checkLive(m)
	mustPin(m, ctrB, ScopeContainer, claimed("next", "4-6", "0", PartitionRoot))
	checkPartitions(m, Holding{ctrB, parse("4-6"), "root"})
	m.remove(podB)
	mustPin(m, ctrC, ScopeContainer, claimed("last", "5", "0", PartitionRoot))
	checkPartitions(m, Holding{ctrC, parse("5"), "root"})
}

// Kernels before 6.7 have no cpuset.cpus.exclusive. Containers get their CPUs and memory
// nodes there too, in the cooperative mode and without exclusivity.
func TestKernelWithoutExclusiveCPUs(t *testing.T) {
	m := newFake(t, true)
	m.bare = true
	running(m, ctrA, sidecarA, ctrB)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionNone))
	mustPin(m, sidecarA, ScopePod, claimed("job", "2-3", "0", PartitionNone))
	mustPin(m, ctrB, ScopeContainer, claimed("memory", "", "1", PartitionRoot))
	for file, want := range map[string]string{
		ctrA + "/cpuset.cpus.effective": "2-3", ctrA + "/cpuset.mems.effective": "1", sidecarA + "/cpuset.cpus.effective": "2-3",
		ctrB + "/cpuset.mems.effective": "1", ctrB + "/cpuset.cpus": "",
	} {
		checkLine(m, file, want)
	}
	err := Pin(m.host(), ctrB, ScopeContainer, claimed("other", "6-7", "0", PartitionRoot))
	if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "the kernel has no cpuset.cpus.exclusive, so it cannot make partition root") {
		t.Errorf("pin to a partition: %v", err)
	}
	checkLine(m, ctrB+"/cpuset.cpus", "")
	m.write(ctrA+"/"+cpusFile, "2-5")
	mustRepair(m, "repaired cgroup "+ctrA)
	if list, err := Holdings(m.host().Cgroups.FS()); err != nil || len(list) != 0 {
		t.Errorf("holdings %v, %v, want none", list, err)
	}
	if supported, err := Probe(m.host().Cgroups, 2); supported || err != nil {
		t.Errorf("probe: %t, %v, want that partitions are not supported", supported, err)
	}
	m.end(ctrA)
	mustRepair(m, "released cgroup "+ctrA)
}

// liftable is a claim on a node that lifts quotas, in a pod whose limits add up to 2 CPUs.
func liftable(claim Claim) Claim { return liftableIn(2000, claim) }

func liftableIn(podLimit int64, claim Claim) Claim {
	claim.LiftQuota, claim.PodLimit = true, podLimit
	return claim
}

// limit gives cgroups quotas, as kubelet and runtime do.
func limit(m machine, quotas map[string]string) {
	m.Helper()
	for cgroup, value := range quotas {
		file := path.Join(cgroup, quotaFile)
		if _, err := m.host().Cgroups.Stat(file); err != nil {
			m.Skip("the root cgroup does not enable the cpu controller")
		}
		m.write(file, value)
	}
}

func checkQuotas(m machine, want map[string]string) {
	m.Helper()
	for cgroup, line := range want {
		checkLine(m, path.Join(cgroup, quotaFile), line)
	}
}

func throttlingQuotas(m machine) {
	const main, none = ctrA + "/" + innerCgroup, "max 100000"
	running(m, pauseA, main, sidecarA)
	limits := map[string]string{ctrA: "200000 100000", main: "200000 100000", sidecarA: "50000 100000", podA: "250000 100000"}
	lifted := map[string]string{ctrA: none, main: none, sidecarA: "50000 100000", podA: none}
	limit(m, limits)
	mustPin(m, ctrA, ScopeContainer, liftableIn(2500, claimed("job", "2-3", "1", PartitionRoot)))
	checkQuotas(m, lifted)
	if lines := keep(m); len(lines) > 0 {
		m.Errorf("the keeper says %q", lines)
	}
	// A resize, or systemd, writes them again.
	limit(m, limits)
	mustRepair(m, "lifted a CPU quota that only throttles: "+podA+"/cpu.max <- max 100000")
	checkQuotas(m, lifted)
	// Less than the claim's CPUs is what somebody wants.
	less := map[string]string{ctrA: "199000 100000", main: "199000 100000", sidecarA: "50000 100000", podA: "249000 100000"}
	limit(m, less)
	if lines := keep(m); len(lines) > 0 {
		m.Errorf("the keeper says %q", lines)
	}
	checkQuotas(m, less)
	limit(m, map[string]string{ctrA: "3000 1000", main: "3000 1000"})
	mustRepair(m, "lifted")
	checkQuotas(m, map[string]string{ctrA: "max 1000", main: "max 1000", podA: less[podA]}) // which a resize has given the pod itself
	limit(m, map[string]string{podA: "250000 100000"})
	mustRepair(m, "lifted")
	checkQuotas(m, map[string]string{podA: none})
	// Another container that keeps its own leaves the pod's alone.
	mustPin(m, sidecarA, ScopeContainer, claimed("other", "4", "1", PartitionRoot))
	limit(m, map[string]string{sidecarA: "100000 100000"})
	if lines := keep(m); len(lines) > 0 {
		m.Errorf("the keeper says %q", lines)
	}
}

// A container may make a cgroup with the name of crun's.
func quotaOfACgroupOfTheContainer(m machine) {
	const own = ctrA + "/" + innerCgroup
	running(m, pauseA, ctrA)
	limit(m, map[string]string{ctrA: "200000 100000"})
	mustPin(m, ctrA, ScopeContainer, liftable(claimed("job", "2-3", "1", PartitionRoot)))
	m.end(ctrA)
	running(m, own)
	limit(m, map[string]string{ctrA: "200000 100000", own: "200000 100000"})
	mustRepair(m, "lifted a CPU quota that only throttles: "+ctrA+"/cpu.max <- max 100000")
	checkQuotas(m, map[string]string{ctrA: "max 100000", own: "200000 100000"})
}

// The first of two hooks does not know that the container has more CPUs than its quota allows.
func quotaOfSeveralRequests(m machine) {
	const main = ctrA + "/" + innerCgroup
	running(m, pauseA, main)
	limit(m, map[string]string{ctrA: "300000 100000", main: "300000 100000", podA: "300000 100000"})
	first, second := liftableIn(3000, claimed("job", "2-3", "1", PartitionRoot)), liftableIn(3000, claimed("job", "4-5", "1", PartitionRoot))
	mustPin(m, ctrA, ScopeContainer, first)
	checkQuotas(m, map[string]string{ctrA: "max 100000", main: "max 100000", podA: "max 100000"})
	for range 2 {
		mustPin(m, ctrA, ScopeContainer, second)
		checkQuotas(m, map[string]string{ctrA: "300000 100000", main: "300000 100000", podA: "max 100000"})
		if lines := keep(m); len(lines) > 0 {
			m.Errorf("the keeper says %q", lines)
		}
	}
	limit(m, map[string]string{ctrA: "400000 100000", main: "400000 100000"})
	mustRepair(m, "lifted")
	checkQuotas(m, map[string]string{ctrA: "max 100000", main: "max 100000"})
}

// The kubelet writes the CPUs of its start to the cgroup of all pods.
func TestRefusalSaysThatTheCgroupOfAllPodsHasFewerCPUs(t *testing.T) {
	eachFake(t, func(m machine) {
		running(m, ctrA)
		m.write("pintest-pods/"+cpusFile, "0-5")
		err := Pin(m.host(), ctrA, ScopeContainer, claimed("job", "6-7", "0", PartitionNone))
		want := `is "0-5", want "6-7": cgroup pintest-pods above it has only cpus 0-5: if the others came online after the kubelet's start, restart the kubelet`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		mustPin(m, ctrA, ScopeContainer, claimed("job", "6-7", "0", PartitionRoot))
	})
}
