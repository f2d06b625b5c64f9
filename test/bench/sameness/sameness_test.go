package sameness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// pods is how many pods are placed on generated machines, and recorded on each recorded one.
const (
	pods     = 900
	recorded = 6
)

// singleThreaded has cores of one thread.
func singleThreaded() fake.Machine {
	return fake.Machine{
		Make: fake.AMD, Sockets: 2, ZonesPerSocket: 2, L3sPerSocket: 4, CoresPerSocket: 16, Threads: 1, MemoryBytes: 16 << 30,
		Hugepages: []fake.Hugepages{{PageBytes: 2 << 20, Pages: 64, FreePages: 64}, {PageBytes: 1 << 30, Pages: 2, FreePages: 2}},
	}
}

// tally counts what the answers to questions are.
type tally struct {
	same  map[string]int // by policy and scope, those that mean the same
	asked map[string]int
	alone map[kind]int // differences of this kind only
	any   map[kind]int // of this kind and others
}

func newTally() tally {
	return tally{map[string]int{}, map[string]int{}, map[kind]int{}, map[kind]int{}}
}

// ask compares the answers to a question.
func (c tally) ask(t *testing.T, q question) {
	t.Helper()
	ours := q.ours(t)
	if errors.As(ours.refused, new(translate.NotStaticError)) {
		return // no CPUs of its own here and there
	}
	theirs := q.kubelet(t)
	key := fmt.Sprintf("%s, scope %s", q.policy, q.scope)
	c.asked[key]++
	found, err := q.differences(t, theirs, ours)
	switch {
	case err != nil:
		t.Errorf("%v: %skubelet:\n%sthis driver:\n%s", err, q, q.text(theirs), q.text(ours))
	case len(found) == 0:
		c.same[key]++
	case len(found) == 1:
		c.alone[found[0]]++
	}
	for _, one := range found {
		c.any[one]++
	}
}

// Pods that are translated mean the same as what the kubelet's static managers make of them,
// but for kinds of difference that the documentation names.
func TestTranslatedPodsMeanTheSame(t *testing.T) {
	if err := utilfeature.DefaultMutableFeatureGate.Set("CPUManagerPolicyAlphaOptions=true"); err != nil {
		t.Fatal(err)
	}
	t.Run("generated", func(t *testing.T) {
		nodes := []*node{newNode(t, "single-threaded", singleThreaded().FS())}
		for _, name := range []string{"rig", "intel-2s", "intel-2s-snc2", "epyc-2s-nps4", "dgx-h100"} {
			nodes = append(nodes, newNode(t, name, sample.Preset(t, name).FS()))
		}
		r, counted := rand.New(rand.NewPCG(8, 50)), newTally()
		for i := range pods {
			counted.ask(t, random(r, nodes[i%len(nodes)]))
		}
		counted.check(t)
	})
	t.Run("recorded", func(t *testing.T) {
		if os.Getenv("NUMA_SNAPSHOTS") == "" {
			t.Setenv("NUMA_SNAPSHOTS", "../../../../shared/testdata/hwloc") // this module is not the repository
		}
		var used []string
		r, counted := rand.New(rand.NewPCG(8, 51)), newTally()
		for _, machine := range files.RecordedMachines(t) {
			if n := newNode(t, machine.Name, os.DirFS(machine.Unpack(t))); n != nil {
				used = append(used, n.name)
				for range recorded {
					counted.ask(t, random(r, n))
				}
			}
		}
		t.Logf("on %s: of %v pods, %v mean the same", strings.Join(used, ", "), counted.asked, counted.same)
		if len(used) < 3 {
			t.Errorf("machines are not usable: only %v are", used)
		}
	})
}

// check fails if a policy was not compared, or if a kind of difference did not occur.
func (c tally) check(t *testing.T) {
	t.Helper()
	for key, count := range c.asked {
		t.Logf("%s: %d of %d pods mean the same", key, c.same[key], count)
		if c.same[key] == 0 || c.same[key] == count {
			t.Errorf("%s: %d of %d pods mean the same", key, c.same[key], count)
		}
	}
	if len(c.asked) != 7 {
		t.Errorf("%d policies and scopes, want 7", len(c.asked))
	}
	for _, one := range kinds {
		t.Logf("%d pods differ in this only, and %d in other ways, too: %s", c.alone[one], c.any[one]-c.alone[one], one)
		if c.alone[one] == 0 {
			t.Errorf("no pod differs in this only: %s", one)
		}
	}
}

// The page has each kind as a row, and no other.
func TestKindsAreDocumented(t *testing.T) {
	page := files.Read(t, "../../../docs/static-managers.md")
	for _, one := range kinds {
		if !strings.Contains(string(page), "| "+string(one)+" |") {
			t.Errorf("the page lacks the row\n| %s |", one)
		}
	}
}
