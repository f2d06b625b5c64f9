package interrupts

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

// node is a machine with the record that its daemon would have.
type node struct {
	t      testing.TB
	kernel *sysfs.PowerHost
	host   *Host
	first  First
	claims map[string]Demand
}

const card = "0000:5e:00.0"

func newNode(t testing.TB) *node { return newNodeWith(t, false) }

func newNodeWith(t testing.TB, override bool) *node {
	t.Helper()
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Override: override, Lines: []sysfs.Line{
		{Number: 0, Name: "timer", CPUs: "0-7", Managed: true},
		{Number: 9, Name: "", CPUs: "0-7"}, // not in use
		{Number: 24, Name: "virtio0-input.0", CPUs: "0-7"},
		{Number: 25, Name: "mlx5_comp0", CPUs: "4", Function: card},
		{Number: 26, Name: "mlx5_comp1", CPUs: "5", Function: card},
		{Number: 27, Name: "nvme0q1", CPUs: "4-5", Managed: true},
		{Number: 28, Name: "ahci", CPUs: "1"},
		{Number: 29, Name: "xhci", CPUs: "2-5"},
	}})
	return &node{t: t, kernel: kernel, host: New(kernel, kernel.Write), claims: map[string]Demand{}}
}

func (n *node) demands(without string) (list []Demand) {
	for name, demand := range n.claims {
		if name != without {
			list = append(list, demand)
		}
	}
	return list
}

// plan is what the daemon decides if a claim ends, "" for none.
func (n *node) plan(ending string) (First, []Write) {
	n.t.Helper()
	state, machine, err := n.host.Read()
	if err != nil {
		n.t.Fatal(err)
	}
	return Plan(state, machine, n.first, n.demands(""), n.demands(ending))
}

func (n *node) apply(writes []Write) []Refusal {
	n.t.Helper()
	refused, err := n.host.Apply(writes)
	if err != nil {
		n.t.Fatal(err)
	}
	return refused
}

// begin and end do what the daemon does with a claim.
func (n *node) begin(name, cpus string, own ...int) []Refusal {
	n.t.Helper()
	set, err := cpuset.Parse(cpus)
	if err != nil {
		n.t.Fatal(err)
	}
	n.claims[name] = Demand{CPUs: set, Handle: set, Own: own}
	return n.look()
}

// look is what the daemon does now and then.
func (n *node) look() []Refusal {
	n.t.Helper()
	var writes []Write
	n.first, writes = n.plan("")
	return n.apply(writes)
}

func (n *node) end(name string) {
	n.t.Helper()
	next, writes := n.plan(name)
	n.first = next
	n.apply(writes)
	if delete(n.claims, name); len(n.claims) == 0 {
		n.first = First{}
	}
}

// expect compares the CPUs of interrupts, and the default as number -1.
func (n *node) expect(want map[int]string) {
	n.t.Helper()
	state, _, err := n.host.Read()
	if err != nil {
		n.t.Fatal(err)
	}
	got := map[int]string{-1: state.Default.String()}
	for _, line := range state.Lines {
		got[line.Number] = line.CPUs.String()
	}
	for number, cpus := range want {
		if got[number] != cpus {
			n.t.Errorf("interrupt %d has cpus %s, want %s", number, got[number], cpus)
		}
	}
}

func TestInterruptsAreMovedAwayAndBack(t *testing.T) {
	n := newNode(t)
	before := n.kernel.Values()
	refused := n.begin("a", "4-5")
	n.expect(map[int]string{-1: "0-3,6-7", 0: "0-7", 24: "0-3,6-7", 25: "0-3,6-7", 26: "0-3,6-7", 27: "4-5", 28: "1", 29: "2-3"})
	if want := []Refusal{{0, "timer", Managed}, {27, "nvme0q1", Managed}}; !reflect.DeepEqual(refused, want) {
		t.Errorf("refused are %v, want %v", refused, want)
	}
	state, _, err := n.host.Read()
	if stay := Staying(state, refused, n.claims["a"]); err != nil || !reflect.DeepEqual(stay, []Refusal{{27, "nvme0q1", Managed}}) {
		t.Errorf("the cpus handle %v, %v, want that of the drive only", stay, err)
	}
	if n.kernel.Values()["proc/irq/9/smp_affinity_list"] != before["proc/irq/9/smp_affinity_list"] {
		t.Error("an interrupt that is not in use was moved")
	}
	n.end("a")
	expectValues(t, n.kernel, before)
}

func TestAClaimHandlesItsOwnInterrupts(t *testing.T) {
	n := newNode(t)
	before := n.kernel.Values()
	own, err := n.host.OfFunction(card)
	if err != nil || len(own) != 2 {
		t.Fatalf("interrupts of the card %v, %v", own, err)
	}
	n.begin("a", "2-3", own...)
	n.begin("b", "4-5")
	n.expect(map[int]string{-1: "0-1,6-7", 24: "0-1,6-7", 25: "2-3", 26: "2-3", 29: "0-1,6-7"})
	n.end("a")
	n.expect(map[int]string{-1: "0-3,6-7", 24: "0-3,6-7", 25: "0-3,6-7", 26: "0-3,6-7", 29: "2-3"})
	n.end("b")
	expectValues(t, n.kernel, before)
}

func TestANewInterruptStaysAwayAndIsFreeAfterTheClaim(t *testing.T) {
	n := newNode(t)
	n.begin("a", "4-5")
	n.kernel.Request(sysfs.Line{Number: 40, Name: "new"})               // by default
	n.kernel.Request(sysfs.Line{Number: 41, Name: "spread", CPUs: "5"}) // its driver decides
	n.expect(map[int]string{40: "0-3,6-7", 41: "5"})
	n.look()
	n.expect(map[int]string{40: "0-3,6-7", 41: "0-3,6-7"})
	n.kernel.End(24)
	n.end("a")
	n.expect(map[int]string{-1: "0-7", 40: "0-7", 41: "5", 25: "4"})
}

// A drive that gets its kernel driver again has new interrupts, with the old numbers in another
// order: that of the controller may have the number that a queue had.
func TestANewInterruptWithAnOldNumberIsFreeAfterTheClaim(t *testing.T) {
	n := newNode(t)
	n.begin("a", "4-5")
	n.kernel.End(28)
	n.kernel.Request(sysfs.Line{Number: 28, Name: "nvme1q0"}) // by default
	n.look()
	n.expect(map[int]string{28: "0-3,6-7"})
	n.end("a")
	n.expect(map[int]string{-1: "0-7", 28: "0-7"})
}

func TestWhatAnotherProgramWritesStays(t *testing.T) {
	n := newNode(t)
	n.begin("a", "4-5")
	for file, text := range map[string]string{"proc/irq/24/smp_affinity_list": "2", "proc/irq/28/smp_affinity_list": "5", "proc/irq/default_smp_affinity": "3"} {
		if err := n.kernel.Write(file, text); err != nil {
			t.Fatal(err)
		}
	}
	n.look()
	n.expect(map[int]string{-1: "0-1", 24: "2", 28: "0-3,6-7", 29: "2-3"})
	n.begin("b", "0-3")
	n.expect(map[int]string{-1: "6-7", 24: "6-7", 28: "6-7"})
	n.end("a")
	n.end("b")
	n.expect(map[int]string{-1: "0-1", 24: "2", 28: "5", 29: "2-5"})
}

func TestFullVectorsAndNoOtherCPU(t *testing.T) {
	n := newNode(t)
	before := n.kernel.Values()
	n.kernel.SetFull(cpuset.New(0, 1, 2, 3, 6, 7))
	refused := n.begin("a", "4-5")
	if len(refused) != 6 || refused[1] != (Refusal{24, "virtio0-input.0", NoVector}) {
		t.Errorf("refused are %v", refused)
	}
	n.kernel.SetFull(cpuset.Set{})
	n.look()
	n.expect(map[int]string{24: "0-3,6-7"})
	n.begin("b", "0-3,6-7") // now nothing is left
	n.expect(map[int]string{-1: "0-7", 24: "0-7", 28: "1"})
	n.end("a")
	n.end("b")
	expectValues(t, n.kernel, before)
}

// The kernel refuses interrupts for CPUs of which none is online.
func TestInterruptsDoNotMoveToOfflineCPUs(t *testing.T) {
	n := newNode(t)
	n.kernel.Request(sysfs.Line{Number: 40, Name: "siblings", CPUs: "4-5"})
	if err := n.kernel.Write("proc/irq/default_smp_affinity", "30"); err != nil {
		t.Fatal(err)
	}
	n.kernel.SetOnline(5, false)
	if refused := n.begin("a", "4"); len(refused) != 2 { // those that are managed
		t.Errorf("refused are %v", refused)
	}
	n.expect(map[int]string{-1: "0-3,5-7", 25: "0-3,5-7", 40: "0-3,5-7"})
	n.look()
	n.end("a")
	n.expect(map[int]string{-1: "4-5", 25: "4", 40: "4-5"})
}

func TestTheDefaultOfOfflineCPUsIsGivenBackLater(t *testing.T) {
	n := newNode(t)
	if err := n.kernel.Write("proc/irq/default_smp_affinity", "30"); err != nil {
		t.Fatal(err)
	}
	n.begin("a", "4-5")
	n.expect(map[int]string{-1: "0-3,6-7"})
	n.kernel.SetOnline(4, false)
	n.kernel.SetOnline(5, false)
	_, writes := n.plan("a")
	due := Due(writes, n.apply(writes))
	for _, online := range []bool{false, true} {
		n.kernel.SetOnline(4, online)
		n.kernel.SetOnline(5, online)
		var err error
		if due, err = n.host.Retry(due); err != nil || online != (len(due) == 0) {
			t.Errorf("cpus 4-5 are online: %t: %d writes are due, %v", online, len(due), err)
		}
	}
	n.expect(map[int]string{-1: "4-5", 25: "4"})
}

func TestOtherErrorsAreErrors(t *testing.T) {
	n := newNode(t)
	denied := errors.New("denied")
	n.host = New(n.kernel, func(string, string) error { return denied })
	n.claims["a"] = Demand{CPUs: cpuset.New(4)}
	_, writes := n.plan("")
	if _, err := n.host.Apply(writes); !errors.Is(err, denied) || err.Error() != "move interrupts to cpus 0-3,5-7: denied" {
		t.Errorf("error %v", err)
	}
}

func TestANodeWithoutDemandsDoesNothing(t *testing.T) {
	n := newNode(t)
	if n.look(); n.kernel.Writes() != 0 || !n.first.IsZero() {
		t.Errorf("%d writes, record %v", n.kernel.Writes(), n.first)
	}
}

// Claims begin and end in any order, the daemon dies between any two writes, devices come
// and go. After the last claim, every interrupt has the CPUs that it had first.
func TestRandomClaims(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 1))
	sequences := 10_000
	if testing.Short() {
		sequences = 1000
	}
	for sequence := range sequences {
		n := newNode(t)
		before := n.kernel.Values()
		next := 100
		for range 1 + random.IntN(8) {
			part := fmt.Sprint(2 * random.IntN(4))
			cpus := fmt.Sprintf("%s-%d", part, int(part[0]-'0')+1)
			switch _, held := n.claims[part]; {
			case held && random.IntN(3) > 0:
				die(n, random, part)
				n.end(part)
			case random.IntN(4) == 0:
				n.kernel.Request(sysfs.Line{Number: next, Name: "new"})
				before[fmt.Sprintf("proc/irq/%d/smp_affinity_list", next)] = "0-7\n"
				next++
			case !held:
				set, _ := cpuset.Parse(cpus)
				n.claims[part] = Demand{CPUs: set}
				if random.IntN(2) == 0 {
					n.claims[part] = Demand{CPUs: set, Handle: set, Own: []int{25 + random.IntN(2)}}
				}
				die(n, random, "")
				n.look()
			}
		}
		for name := range maps.Clone(n.claims) {
			n.end(name)
		}
		if expectValues(t, n.kernel, before); t.Failed() {
			t.Fatalf("sequence %d", sequence)
		}
	}
}

// die leaves what a daemon leaves that dies at any moment while a claim begins or ends.
func die(n *node, random *rand.Rand, ending string) {
	next, writes := n.plan(ending)
	if random.IntN(4) > 0 {
		n.first = next
		n.apply(writes[:random.IntN(len(writes)+1)])
	}
}

func expectValues(t testing.TB, kernel *sysfs.PowerHost, want map[string]string) {
	t.Helper()
	for name, text := range kernel.Values() {
		if text != want[name] {
			t.Errorf("%s has %q, want %q", name, text, want[name])
		}
	}
}

// irqaffinity= as the kernel reads it: the last one counts, and the CPU that booted is added.
func TestInterruptsBeginWhereTheCommandLineSays(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "0-7",
		"quiet irqaffinity=2-3\n":           "0,2-3",
		"irqaffinity=2 irqaffinity=4-5,900": "0,4-5",
		"irqaffinity=N":                     "0-7",
		"xirqaffinity=2":                    "0-7",
	} {
		files := fstest.MapFS{
			"sys/devices/system/cpu/possible": {Data: []byte("0-7\n")}, "sys/devices/system/cpu/online": {Data: []byte("0-7\n")}, "proc/irq/default_smp_affinity": {Data: []byte("0f\n")},
		}
		if line != "" {
			files["proc/cmdline"] = &fstest.MapFile{Data: []byte(line)}
		}
		if began, err := New(files, nil).Began(); err != nil || began.String() != want {
			t.Errorf("%q: %s, %v, want %s", line, began, err, want)
		}
	}
}
