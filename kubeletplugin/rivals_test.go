package kubeletplugin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// rivalNode is a node with a clock of its own, whose daemon can restart.
type rivalNode struct {
	t        *testing.T
	dir      *os.Root
	registry string
	config   driver.Config
	clock    time.Time
	rivals   *rivals
}

func newRivalNode(t *testing.T, config driver.Config) *rivalNode {
	t.Helper()
	n := &rivalNode{t: t, dir: files.OpenTemp(t), registry: t.TempDir(), config: config, clock: time.Unix(1000, 0)}
	n.restart()
	return n
}

func (n *rivalNode) restart() {
	n.rivals = newRivals(n.dir, n.registry, n.config)
	n.rivals.now = func() time.Time { return n.clock }
	for name, known := range n.rivals.known {
		known.seen = n.clock
		n.rivals.known[name] = known
	}
}

func (n *rivalNode) expect(what, cpus string, present bool, memory []string, all ...*resourceapi.ResourceSlice) {
	n.t.Helper()
	got := n.rivals.look(all)
	if got.cpus != cpus || got.present != present || !slices.Equal(got.memory, memory) {
		n.t.Errorf("%s: CPUs of %q (%t), memory of %q, want %q (%t), %q", what, got.cpus, got.present, got.memory, cpus, present, memory)
	}
}

// After a boot, all slices are gone, and the first driver that publishes a card again would
// share it with one that comes later.
func TestFunctionsOfAnotherDriverAreRememberedUntilItIsGone(t *testing.T) {
	n := newRivalNode(t, driver.Config{NodeName: node})
	expect := func(what, want string, all ...*resourceapi.ResourceSlice) {
		t.Helper()
		var got []string
		for address, name := range n.rivals.look(all).functions {
			got = append(got, address+" "+name)
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	card, other := sliceOfFunction("one", virtualFunction), sliceOfFunction("two", "0000:5E:00.0")
	expect("nobody", "")
	expect("what is no address is not remembered", "", sliceOfFunction("odd", "0000:3b:00.1 cpus"))
	n.restart()
	if got := n.rivals.look(nil); got.cpus != "" {
		t.Errorf("driver %s gives out CPUs", got.cpus)
	}
	expect("two slices", "0000:3b:00.1 dra.net, 0000:5e:00.0 dra.net", card, other)
	expect("one of them is gone", "0000:5e:00.0 dra.net", other)
	expect("the kubelet starts", "0000:5e:00.0 dra.net")
	n.restart()
	expect("the node boots", "0000:5e:00.0 dra.net")
	n.clock = n.clock.Add(rivalsLast)
	expect("the driver was uninstalled", "")
	n.restart()
	expect("forgotten on disk", "")

	expect("installed again", "0000:5e:00.0 dra.net", other)
	empty := sliceOfFunction("two", "")
	empty.Spec.Devices[0].Attributes = nil
	expect("its slices have no function any more", "", empty)
	n.restart()
	expect("nor does the file", "")
}

// A kubelet that starts deletes all slices of its node. Zones that came back before the
// other driver's would take CPUs from its pods.
func TestRivalIsRememberedUntilItIsGone(t *testing.T) {
	n := newRivalNode(t, driver.Config{})
	cpu, memory := otherSlice("dra.cpu"), otherSlice("dra.memory")
	n.expect("nobody", "", false, nil, otherSlice("gpu.example.com", "cpu", "memory"))
	n.expect("both", "dra.cpu", true, []string{"dra.memory"}, cpu, memory)
	n.expect("slices are away", "dra.cpu", false, []string{"dra.memory"})
	n.restart()
	n.expect("restart", "dra.cpu", false, []string{"dra.memory"})

	socket := filepath.Join(n.registry, "dra.cpu-7f1b-reg.sock")
	files.Write(t, socket, "")
	n.clock = n.clock.Add(rivalsLast)
	n.expect("one has a socket, the other is gone", "dra.cpu", false, nil)
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	n.clock = n.clock.Add(rivalsLast - time.Second)
	n.expect("not long enough", "dra.cpu", false, nil)
	n.clock = n.clock.Add(time.Second)
	n.expect("long enough", "", false, nil)
	n.restart()
	n.expect("forgotten on disk", "", false, nil)
}

func TestNamedDriversAreRivals(t *testing.T) {
	n := newRivalNode(t, driver.Config{CPUDrivers: []string{"cores.example.com", "all.example.com"}, MemoryDrivers: []string{"all.example.com"}})
	empty := otherSlice("cores.example.com")
	empty.Spec.Devices = nil
	n.expect("no devices", "", false, nil, empty)
	n.expect("named", "all.example.com", true, []string{"all.example.com"}, otherSlice("all.example.com"), otherSlice("cores.example.com"))
	n.expect("one of two is left", "cores.example.com", true, []string{"all.example.com"}, otherSlice("cores.example.com"))
}

func TestDamagedListOfRivalsIsPassedOver(t *testing.T) {
	n := newRivalNode(t, driver.Config{})
	if err := n.dir.WriteFile(rivalsFile, []byte("\n\x00\xff cpus\ndra.cpu\na b c\ndra.memory memory caches\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.restart()
	n.expect("damaged", "", false, []string{"dra.memory"})
}

func TestMappedCPUsAreARivals(t *testing.T) {
	n := newRivalNode(t, driver.Config{})
	slice := otherSlice("cores.example.com")
	slice.Spec.Devices[0].NodeAllocatableResources = map[corev1.ResourceName]resourceapi.NodeAllocatableResource{
		corev1.ResourceCPU: {Mapping: &resourceapi.NodeAllocatableMapping{}},
	}
	n.expect("mapped", "cores.example.com", true, nil, slice)
}
