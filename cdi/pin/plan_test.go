package pin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// drawTree reads one cgroup per line: path, exclusive, state, cpus, mems; "-" is
// the empty set, "member" and "-" may be left out.
func drawTree(t *testing.T, text string) (tr tree) {
	t.Helper()
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		fields = append(fields, []string{"", "-", "member", "-", "-"}[len(fields):]...)
		set := func(i int) cpuset.Set { return parse(strings.TrimPrefix(fields[i], "-")) }
		tr = append(tr, group{
			path: fields[0], exclusive: set(1),
			state: strings.ReplaceAll(fields[2], "_", " "), cpus: set(3), mems: set(4),
		})
	}
	return tr
}

func TestPlan(t *testing.T) {
	const fresh = "k\nk/be\nk/be/p\nk/be/p/c"
	const pinned = `k/be/p/c/cpuset.cpus.exclusive <- 4
k/be/p/c/cpuset.cpus <- 4
k/be/p/c/cpuset.cpus.partition <- root
`
	for _, test := range []struct {
		name, tree, want string
		pinning          Pinning
	}{
		{"fresh container", fresh, `
k/be/p/c/cpuset.mems <- 1
k/cpuset.cpus.exclusive <- 4-5
k/be/cpuset.cpus.exclusive <- 4-5
k/be/p/cpuset.cpus.exclusive <- 4-5
k/be/p/c/cpuset.cpus.exclusive <- 4-5
k/be/p/c/cpuset.cpus <- 4-5
k/be/p/c/cpuset.cpus.partition <- root
`, exclusive("4-5", "1")},
		{"again", "k 4-5\nk/be 4-5\nk/be/p 4-5\nk/be/p/c 4-5 root 4-5 1", "\n", exclusive("4-5", "1")},
		{"no partition", fresh, `
k/be/p/c/cpuset.mems <- 1
k/be/p/c/cpuset.cpus <- 4-5
`, Pinning{CPUs: parse("4-5"), Mems: parse("1")}},
		{"the runtime's cpus and mems are overwritten", "k\nk/be\nk/be/p\nk/be/p/c - member 0-15 0-1", `
k/be/p/c/cpuset.mems <- 1
k/be/p/c/cpuset.cpus <- 4-5
`, Pinning{CPUs: parse("4-5"), Mems: parse("1")}},
		{"memory only", fresh, "\nk/be/p/c/cpuset.mems <- 1\n", Pinning{Mems: parse("1"), Partition: PartitionRoot}},
		{"more cpus", "k 2,8\nk/be 2\nk/be/p 2\nk/be/p/c 2 root 2 0\nk/bu 8\nk/bu/c 8 root 8", `
k/cpuset.cpus.exclusive <- 2,4-5,8
k/be/cpuset.cpus.exclusive <- 2,4-5
k/be/p/cpuset.cpus.exclusive <- 2,4-5
k/be/p/c/cpuset.cpus.exclusive <- 2,4-5
k/be/p/c/cpuset.cpus <- 2,4-5
`, exclusive("2,4-5", "")},
		{"fewer cpus", "k 2,4-5,8\nk/be 2,4-5\nk/be/p 2,4-5\nk/be/p/c 2,4-5 root 2,4-5 0\nk/bu 8\nk/bu/c 8 root 8", `
k/be/p/c/cpuset.cpus.exclusive <- 2
k/be/p/c/cpuset.cpus <- 2
k/be/p/cpuset.cpus.exclusive <- 2
k/be/cpuset.cpus.exclusive <- 2
k/cpuset.cpus.exclusive <- 2,8
`, exclusive("2", "")},
		{"downgrade", "k 2,8\nk/be 2\nk/be/p 2\nk/be/p/c 2 root 2 0\nk/bu 8\nk/bu/c 8 root 8", `
k/be/p/c/cpuset.cpus.partition <- member
k/be/p/c/cpuset.cpus.exclusive <- 
k/be/p/cpuset.cpus.exclusive <- 
k/be/cpuset.cpus.exclusive <- 
k/cpuset.cpus.exclusive <- 8
`, Pinning{CPUs: parse("2")}},
		{"downgrade is complete", "k 8\nk/be\nk/be/p\nk/be/p/c - member 2\nk/bu 8\nk/bu/c 8 root 8", "\n", Pinning{CPUs: parse("2")}},
		{"other kind", "k 2\nk/be 2\nk/be/p 2\nk/be/p/c 2 root 2 0", `
k/be/p/c/cpuset.cpus.partition <- isolated
`, Pinning{CPUs: parse("2"), Partition: PartitionIsolated}},
		{"dead partition in the sibling class", "k 4-7\nk/be\nk/be/p\nk/be/p/c\nk/bu 4-7\nk/bu/q 4-7", `
k/bu/q/cpuset.cpus.exclusive <- 
k/bu/cpuset.cpus.exclusive <- 
k/cpuset.cpus.exclusive <- 4
k/be/cpuset.cpus.exclusive <- 4
k/be/p/cpuset.cpus.exclusive <- 4
` + pinned, exclusive("4", "")},
		{"bare exclusive set outside", "k 4\nk/be 4\nk/be/p 4\nk/be/p/c\nsys 4-7", `
sys/cpuset.cpus.exclusive <- 5-7
` + pinned, exclusive("4", "")},
		{"invalid partition", "k 4\nk/be 4\nk/be/p 4\nk/be/p/c 4 root_invalid_(why) 4", `
k/be/p/c/cpuset.cpus.partition <- member
k/be/p/c/cpuset.cpus.partition <- root
`, exclusive("4", "")},
		{"partition above", "k 0-7 root 0-7\nk/be\nk/be/p\nk/be/p/c", `
k/be/cpuset.cpus.exclusive <- 4
k/be/p/cpuset.cpus.exclusive <- 4
` + pinned, exclusive("4", "")},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := planPin(drawTree(t, test.tree), "k/be/p/c", test.pinning)
			if got := "\n" + p.String(); err != nil || got != test.want {
				t.Errorf("plan (%v):%swant:%s", err, got, test.want)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	const rest = "\nk/be\nk/be/p\nk/be/p/c"
	for _, test := range []struct{ name, tree, want string }{
		{"held in another pod", "k 4" + rest + "\nk/bu 4\nk/bu/d 4 root 4", "cgroup k/bu/d holds cpus 4 (partition root): in use"},
		{"held though invalid", "k 4" + rest + "\nk/bu 4\nk/bu/d 4 root_invalid_(x) 4", "cgroup k/bu/d holds cpus 4 (partition root invalid (x)): in use"},
		{"held without exclusive", "k" + rest + "\nvm - isolated 3-4", "cgroup vm holds cpus 4 (partition isolated): in use"},
		{"outside of the partition above", "k 0-4 root 0-4" + rest, "cpus 5 are outside of partition k, which has 0-4: in use"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := planPin(drawTree(t, test.tree), "k/be/p/c", exclusive("4-5", ""))
			if !errors.Is(err, ErrInUse) || err.Error() != test.want || len(p.Writes) > 0 {
				t.Errorf("plan with %d writes, error\n%v, want\n%s", len(p.Writes), err, test.want)
			}
		})
	}
}

// randomTree has partitions of several pods, leftovers of dead ones, and a partition of
// somebody else. Each CPU is on one chain of cgroups at most, as the kernel sees to.
func randomTree(random *rand.Rand) (tr tree, leaves []string) {
	exclusive := map[string]cpuset.Set{}
	states := map[string]string{}
	for _, class := range []string{"k", "k/be", "k/bu"} {
		exclusive[class] = cpuset.Set{}
		for pod := range 2 {
			exclusive[fmt.Sprintf("%s/p%d", class, pod)] = cpuset.Set{}
			for c := range 2 {
				leaf := fmt.Sprintf("%s/p%d/c%d", class, pod, c)
				leaves = append(leaves, leaf)
				exclusive[leaf] = cpuset.Set{}
				states[leaf] = []string{member, member, "root", "isolated"}[random.IntN(4)]
			}
		}
	}
	exclusive["sys"] = cpuset.Set{}
	exclusive["vm"], states["vm"] = cpuset.Set{}, "root"
	paths := sortedKeys(exclusive)
	for cpu := range 24 {
		end := paths[random.IntN(len(paths))]
		if random.IntN(3) == 0 {
			continue // free
		}
		for dir := end; dir != "."; dir = path.Dir(dir) {
			exclusive[dir] = exclusive[dir].Union(cpuset.New(cpu))
		}
	}
	for _, name := range paths {
		g := group{path: name, exclusive: exclusive[name], state: member}
		if states[name] != "" && states[name] != member && !g.exclusive.IsEmpty() {
			g.state, g.cpus = states[name], g.exclusive
		}
		tr = append(tr, g)
	}
	return tr, leaves
}

func sortedKeys(sets map[string]cpuset.Set) (keys []string) {
	for name := range sets {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

// broken returns which of the kernel's rules a tree breaks.
func (t tree) broken() error {
	for _, g := range t {
		if below := t.heldBelow(g.path); g.state == member && !below.IsSubsetOf(g.exclusive) {
			return fmt.Errorf("%s has exclusive %s, partitions below have %s", g.path, g.exclusive, below)
		}
		for _, other := range t {
			if g.path < other.path && path.Dir(g.path) == path.Dir(other.path) && g.exclusive.Overlaps(other.exclusive) {
				return fmt.Errorf("siblings %s (%s) and %s (%s) overlap", g.path, g.exclusive, other.path, other.exclusive)
			}
		}
	}
	return nil
}

// replay makes one write on the tree and returns the group it went to.
func (t tree) replay(w Write) *group {
	i := slices.IndexFunc(t, func(g group) bool { return g.path == path.Dir(w.File) })
	switch path.Base(w.File) {
	case exclusiveFile:
		t[i].exclusive = parse(w.Value)
	case cpusFile:
		t[i].cpus = parse(w.Value)
	case partitionFile:
		t[i].state = w.Value
	}
	return &t[i]
}

func TestPlanKeepsInvariantsAtEveryWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	planned, refused := 0, 0
	for seed := range uint64(800) {
		random := rand.New(rand.NewPCG(seed, 1))
		tr, leaves := randomTree(random)
		ctr := leaves[random.IntN(len(leaves))]
		want := Pinning{Partition: PartitionRoot, CPUs: cpuset.New(random.IntN(24), random.IntN(24), random.IntN(24))}
		before := slices.Clone(tr)
		p, err := planPin(tr, ctr, want)
		var others cpuset.Set // the dumb oracle of what is taken
		for _, g := range before {
			if g.path != ctr && g.state != member {
				others = others.Union(g.exclusive)
			}
		}
		if inUse := others.Overlaps(want.CPUs); inUse != errors.Is(err, ErrInUse) {
			t.Fatalf("seed %d: want %s, others have %s: %v", seed, want, others, err)
		}
		if err != nil {
			refused++
			continue
		}
		planned++
		complete := slices.Clone(tr)
		for _, w := range p.Writes {
			complete.replay(w)
		}
		killed := random.IntN(len(p.Writes) + 1)
		for i, w := range p.Writes {
			if i == killed { // a hook killed here and run again ends the same
				retry, err := planPin(tr, ctr, want)
				ends := slices.Clone(tr)
				for _, w := range retry.Writes {
					ends.replay(w)
				}
				if err != nil || !slices.Equal(ends, complete) {
					t.Fatalf("seed %d: killed after %d writes, the retry (%v) is\n%s, first was\n%s", seed, i, err, retry, p)
				}
			}
			g := tr.replay(w)
			if g.path != ctr && (g.state != member || path.Base(w.File) != exclusiveFile) {
				t.Fatalf("seed %d: %v touches what is not ours", seed, w)
			}
			if err := tr.broken(); err != nil {
				t.Fatalf("seed %d: after %v: %v; plan:\n%s", seed, w, err, p)
			}
		}
		checkEnd(t, seed, before, tr, p)
		again, err := planPin(tr, ctr, want)
		if err != nil || len(again.Writes) > 0 {
			t.Fatalf("seed %d: the same again (%v) writes\n%s", seed, err, again)
		}
	}
	if planned < 100 || refused < 100 {
		t.Errorf("%d planned, %d refused: the random trees are too easy or too hard", planned, refused)
	}
}

// checkEnd compares the tree after a plan with what was promised.
func checkEnd(t *testing.T, seed uint64, before, after tree, p Plan) {
	t.Helper()
	for i, g := range after {
		want := before[i].exclusive.Difference(p.Want.CPUs) // elsewhere
		switch {
		case g.path == p.Target:
			want = p.Want.CPUs
			if g.state == member || g.cpus != want {
				t.Fatalf("seed %d: container is %s with cpus %s", seed, g.state, g.cpus)
			}
		case g.state != member:
			want = before[i].exclusive
		case isWithin(g.path, "k"):
			want = after.heldBelow(g.path)
		}
		if g.exclusive != want {
			t.Fatalf("seed %d: %s ends with exclusive %s, want %s; plan:\n%s", seed, g.path, g.exclusive, want, p)
		}
	}
}
