package resctrlfs

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// machines are those whose kernels were asked: their names, and how many caches they have.
var machines = []struct {
	name   string
	caches int
}{
	{"cache-is-node", 2},      // each NUMA node has its cache
	{"cache-of-two-nodes", 1}, // one cache over two NUMA nodes
	{"node-of-two-caches", 2}, // one NUMA node with two caches
}

var kernels = map[string]Kernel{"6.12": Linux612, "7.2": Linux72}

// mounted is the fake as a system of scripts.
type mounted struct {
	*FS
	lastPID *int
}

func (m mounted) setOnline(cpu int, online bool) error { m.SetOnline(cpu, online); return nil }
func (m mounted) end(pid int)                          { m.End(pid) }
func (m mounted) groups(pid int) string                { return m.TaskGroups(pid) }
func (m mounted) settle()                              { m.Settle() }

func (m mounted) start() int {
	*m.lastPID++
	m.Start(*m.lastPID)
	return *m.lastPID
}

// A script that a recording lacks was changed or added since that kernel was asked.
func TestFakeAnswersAsTheKernelDid(t *testing.T) {
	for name, kernel := range kernels {
		for _, machine := range machines {
			t.Run(name+" "+machine.name, func(t *testing.T) {
				if _, err := os.Stat(recording(name, machine.name)); err != nil {
					t.Skip("this kernel was not asked on this machine")
				}
				want := sections(files.Read(t, recording(name, machine.name)))
				lastPID := 100
				got := sections(answers(t, machine.caches, func() system { return mounted{New(Rig(kernel, machine.caches)), &lastPID} }))
				for script, recorded := range want {
					if diff := cmp.Diff(recorded, got[script]); diff != "" { // -update is for the kernel's answers only
						t.Errorf("%s: %s (-kernel +fake):\n%s", recording(name, machine.name), script, diff)
					}
				}
				for script := range got {
					if want[script] == "" {
						t.Logf("%s has no %s", recording(name, machine.name), script)
					}
				}
			})
		}
	}
}

// sections returns the answers to each script.
func sections(text string) map[string]string {
	list := map[string]string{}
	for section := range strings.SplitSeq(text, "== ") {
		if name, answers, found := strings.Cut(section, "\n"); found {
			list[name] = answers
		}
	}
	return list
}
