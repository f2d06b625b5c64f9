package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// The tests of this file ask the real kernel. They need root, at least 8 CPUs,
// two memory nodes, and NUMA_PIN_CGROUP: a writable root of cgroup v2 with cpuset.
// Build them with go test -c and run them in a machine of their own.

const (
	ctrA = "pintest-pods/besteffort/podA/a"
	ctrB = "pintest-pods/burstable/podB/b"
	ctrC = "pintest-pods/podC/c"
)

func TestKernelKeepsEverybodyOff(t *testing.T) {
	k := needKernel(t)
	other := k.create("pintest-pods/besteffort/podX/x")
	service := k.create("pintest-system/sshd.service")
	inside, outside := k.start(k.create(ctrA)), k.start(other)
	k.pin(ctrA, exclusive("2-3", "1"))
	k.expect(ctrA+"/cpuset.cpus.partition", "root")
	rest := k.all.Difference(parse("2-3")).String()
	for _, dir := range []string{".", other, service, "pintest-pods"} {
		k.expect(path.Join(dir, "cpuset.cpus.effective"), rest)
	}
	k.expectAllowed(inside, "Cpus", "2-3")
	k.expectAllowed(inside, "Mems", "1")
	k.expectAllowed(outside, "Cpus", rest)
	k.expectAllowed(1, "Cpus", rest)
	k.pin(ctrA, exclusive("2-3", "1"))
	k.remove("pintest-pods/besteffort/podA")
	k.expect("cpuset.cpus.effective", k.all.String())
}

func TestKernelUnitesHooksOfOneContainer(t *testing.T) {
	k := needKernel(t, ctrB)
	k.pin(k.create(ctrA), exclusive("1", "0"))
	k.pin(ctrB, exclusive("6-7", "1"))
	k.pin(ctrA, exclusive("4-5", "1"))
	k.expect(ctrA+"/cpuset.cpus.effective", "1,4-5")
	k.expect(ctrA+"/cpuset.mems.effective", "0-1")
	k.expect("pintest-pods/besteffort/cpuset.cpus.exclusive", "1,4-5")
	k.expect("pintest-pods/cpuset.cpus.exclusive", "1,4-7")
	k.expect(ctrB+"/cpuset.cpus.partition", "root")
	k.expect(ctrB+"/cpuset.cpus.exclusive.effective", "6-7")
	k.pin(ctrA, Pinning{Mems: mems("0")})
	k.expect(ctrA+"/cpuset.mems.effective", "0-1")
	k.expect(ctrA+"/cpuset.cpus.partition", "root")
}

func TestKernelGivesCPUsOfDeadContainerToOtherQoSClass(t *testing.T) {
	k := needKernel(t, ctrB)
	k.pin(k.create(ctrC), exclusive("1", "0"))
	k.pin(k.create(ctrA), exclusive("2-5", "0"))
	k.remove(ctrA)
	k.expect("pintest-pods/besteffort/cpuset.cpus.exclusive", "2-5")
	k.pin(ctrB, exclusive("4-6", "0"))
	k.expect("pintest-pods/besteffort/cpuset.cpus.exclusive", "")
	k.expect("pintest-pods/besteffort/podA/cpuset.cpus.exclusive", "")
	k.expect("pintest-pods/cpuset.cpus.exclusive", "1,4-6")
	k.expect(ctrC+"/cpuset.cpus.partition", "root")
	k.expect(ctrC+"/cpuset.cpus.effective", "1")
}

func TestKernelIsolatedAndNone(t *testing.T) {
	k := needKernel(t, ctrA, ctrB)
	k.pin(ctrA, Pinning{CPUs: parse("2-3"), Partition: PartitionIsolated})
	k.expect(ctrA+"/cpuset.cpus.partition", "isolated")
	k.pin(ctrA, exclusive("4", ""))
	k.expect(ctrA+"/cpuset.cpus.partition", "isolated")
	k.expect(ctrA+"/cpuset.cpus.effective", "2-4")
	k.pin(ctrB, Pinning{CPUs: parse("5"), Mems: mems("1"), Partition: PartitionNone})
	k.expect(ctrB+"/cpuset.cpus.partition", "member")
	k.expect(ctrB+"/cpuset.cpus.effective", "5")
}

func TestKernelNamesHolder(t *testing.T) {
	k := needKernel(t, ctrB)
	k.pin(k.create(ctrA), exclusive("2-3", "0"))
	err := k.tryPin(ctrB, exclusive("3-4", "0"))
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), ctrA+" holds cpus 3 ") {
		t.Errorf("pin to a held cpu: %v", err)
	}
	k.expect(ctrA+"/cpuset.cpus.effective", "2-3")
	k.expect("pintest-pods/burstable/cpuset.cpus.exclusive", "")
}

func TestKernelWithoutController(t *testing.T) {
	k := needKernel(t, "pintest-pods/podA")
	if err := k.root.Mkdir("pintest-pods/podA/a", 0o755); err != nil {
		t.Fatal(err)
	}
	err := k.tryPin("pintest-pods/podA/a", exclusive("1", "0"))
	if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "cgroup.subtree_control of pintest-pods/podA lacks cpuset") {
		t.Errorf("pin without controller: %v", err)
	}
}

func TestKernelRefusesWhatIsNotThere(t *testing.T) {
	k := needKernel(t, ctrA)
	for _, want := range []Pinning{
		exclusive("1", "0,60"), exclusive("1", "60"), exclusive("1,900", "0"), exclusive("8000", "0"),
		exclusive(k.all.String(), "0"),
	} {
		err := k.tryPin(ctrA, want)
		t.Logf("pin to cpus %s, mems %s: %v", want.CPUs, want.Mems, err)
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("pin to cpus %s, mems %s: %v, want an error of one line", want.CPUs, want.Mems, err)
		}
		k.expect(ctrA+"/cpuset.cpus.partition", "member")
		k.expect("cpuset.cpus.effective", k.all.String())
		k.remove("pintest-pods/besteffort/podA")
		k.create(ctrA)
	}
}

func TestKernelProbe(t *testing.T) {
	k := needKernel(t)
	for _, left := range []string{"", probeDir, probeLeaf} { // what a killed probe left
		if left != "" {
			k.create(left)
		}
		if left == probeLeaf {
			if err := joinErrors(k.host().enforce([]decision{{record: record{Cgroup: probeLeaf}, want: exclusive("1", "")}}, nil)...); err != nil {
				t.Fatal(err)
			}
		}
		supported, err := Probe(k.root, 1)
		if err != nil || !supported {
			t.Errorf("Probe(1) with %q left over = %v, %v", left, supported, err)
		}
		if _, err := k.root.Stat(probeDir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the probe left %s behind: %v", probeDir, err)
		}
	}
	k.pin(k.create(ctrA), exclusive("1", ""))
	if _, err := Probe(k.root, 1); !errors.Is(err, ErrInUse) {
		t.Errorf("Probe of a held cpu: %v", err)
	}
}

// TestKernelAgreesWithPlan starts and ends containers at random: what the plan
// says is free must be granted, and no live partition may ever lose its CPUs.
func TestKernelAgreesWithPlan(t *testing.T) {
	k := needKernel(t)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	live := map[string]cpuset.Set{}
	ended := 0 // names are never used again, as runtimes do not either
	for step := range 150 {
		qos := []string{"", "besteffort/", "burstable/"}[random.IntN(3)]
		pod, c := random.IntN(2), random.IntN(2)
		ctr := fmt.Sprintf("pintest-pods/%spod%d/%s%d%d-%d", qos, pod, strings.TrimSuffix(qos, "/"), pod, c, ended)
		for name := range live {
			if strings.HasPrefix(name, ctr[:strings.LastIndex(ctr, "-")+1]) {
				ctr = name
			}
		}
		if _, running := live[ctr]; running && random.IntN(2) == 0 {
			ended++
			k.remove([]string{ctr, path.Dir(ctr)}[random.IntN(2)])
			for other := range live {
				if _, err := k.root.Stat(other); err != nil {
					delete(live, other)
				}
			}
			continue
		}
		free := k.all.Difference(cpuset.New(0))
		for _, cpus := range live {
			free = free.Difference(cpus)
		}
		var want cpuset.Set
		for cpu := range free.All() {
			if random.IntN(4) == 0 {
				want = want.Union(cpuset.New(cpu))
			}
		}
		if want.IsEmpty() {
			continue
		}
		k.create(ctr)
		k.pin(ctr, Pinning{CPUs: want, Mems: cpuset.New(0), Partition: PartitionRoot})
		live[ctr] = live[ctr].Union(want)
		for name, cpus := range live {
			k.expect(name+"/cpuset.cpus.partition", "root")
			if got := k.set(name + "/cpuset.cpus.effective"); got != cpus {
				t.Fatalf("step %d: %s has cpus %s, want %s", step, name, got, cpus)
			}
		}
	}
}

// TestKernelPinTime logs how long a pin takes on a full node.
func TestKernelPinTime(t *testing.T) {
	k := needKernel(t)
	for pod := range 220 {
		k.create(fmt.Sprintf("pintest-pods/besteffort/pod%d/c%d", pod, pod))
	}
	k.pin("pintest-pods/besteffort/pod0/c0", exclusive("1", "0"))
	k.create(ctrA)
	begin := time.Now()
	if _, err := readTree(k.root.FS(), ctrA); err != nil {
		t.Fatal(err)
	}
	snapshot := time.Since(begin)
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	begin = time.Now()
	k.pin(ctrA, exclusive("2-3", "0"))
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	t.Logf("222 pods: snapshot %s, pin %s (user %s)", snapshot, time.Since(begin),
		time.Duration(after.Utime.Nano()-before.Utime.Nano()))
}
