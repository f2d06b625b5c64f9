package numa

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// readCores groups the CPUs of each zone by their thread siblings. Core ids cannot
// group them: they repeat across sockets, dies and even nodes of one socket. A CPU
// whose sibling files are absent is a core of its own.
func (t tree) readCores(m *Machine) error {
	sockets := &idReader{tree: t, file: "physical_package_id", shared: "package_cpus_list", known: map[int]*int{}}
	dies := &idReader{tree: t, file: "die_id", shared: "die_cpus_list", known: map[int]*int{}}
	for i := range m.Zones {
		zone := &m.Zones[i]
		left := zone.CPUs // CPUs of the zone that are in no core yet
		for cpu := range zone.CPUs.All() {
			if !left.Contains(cpu) {
				continue
			}
			core, err := t.core(cpu, sockets, dies)
			if err != nil {
				return err
			}
			core.Zone = zone.ID
			core.CPUs = core.CPUs.Union(cpuset.New(cpu)).Intersection(left)
			left = left.Difference(core.CPUs)
			m.Cores = append(m.Cores, core)
		}
	}
	if sockets.repeats() {
		numbers := sockets.numbers()
		for i := range m.Cores {
			first, _ := m.Cores[i].CPUs.First()
			if number, listed := numbers[first]; listed {
				m.Cores[i].Socket = &number
			}
		}
	}
	m.setSockets()
	slices.SortStableFunc(m.Cores, func(a, b Core) int { // stable: equal cores stay in order of their lowest CPU
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), compareIDs(a.Socket, b.Socket),
			compareIDs(a.Die, b.Die), compareIDs(a.ID, b.ID))
	})
	return nil
}

// setSockets sets the sockets of each zone to those of its cores.
func (m *Machine) setSockets() {
	for i := range m.Zones {
		zone := &m.Zones[i]
		for _, core := range m.Cores {
			if core.Zone == zone.ID && core.Socket != nil && !slices.Contains(zone.Sockets, *core.Socket) {
				zone.Sockets = append(zone.Sockets, *core.Socket)
			}
		}
		slices.Sort(zone.Sockets)
	}
}

// compareIDs sorts an unknown id before every known one.
func compareIDs(a, b *int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}

// core reads the ids of a CPU's core, and all thread siblings that the kernel lists.
func (t tree) core(cpu int, sockets, dies *idReader) (core Core, err error) {
	folder := topologyFolder(cpu)
	core.CPUs, err = t.set(folder+"/core_cpus_list", folder+"/core_cpus", // since Linux 5.3; thread_* is the old name
		folder+"/thread_siblings_list", folder+"/thread_siblings")
	if err != nil {
		return Core{}, err
	}
	if core.Socket, err = sockets.read(cpu); err != nil {
		return Core{}, err
	}
	if core.Die, err = dies.read(cpu); err != nil {
		return Core{}, err
	}
	if core.Cluster, err = t.topologyID(folder + "/cluster_id"); err != nil {
		return Core{}, err
	}
	const noCluster = 0xffff // what x86 kernels print if there is no cluster
	if core.Cluster != nil && *core.Cluster == noCluster {
		core.Cluster = nil
	}
	core.ID, err = t.topologyID(folder + "/core_id")
	return core, err
}

func topologyFolder(cpu int) string { return fmt.Sprintf("%s/cpu%d/topology", cpuFolder, cpu) }

// topologyID reads an id that the kernel prints from a C int. It is nil if the file is
// absent, or if the id is negative because the firmware gives none. On Arm and ia64 the
// ids are large firmware numbers.
func (t tree) topologyID(name string) (*int, error) {
	id, err := pointer(t, name, parseInt)
	if id != nil && *id < 0 {
		id = nil
	}
	return id, err
}

// idReader reads one id from the topology folders of the CPUs. All CPUs in the kernel's
// list share the id by definition (Documentation/ABI/stable/sysfs-devices-system-cpu),
// so idReader reads it once for all of them. Without a list (before Linux 5.3) it reads
// the id of each CPU.
type idReader struct {
	tree   tree
	file   string
	shared string
	noList bool
	known  map[int]*int // by CPU
	groups []idGroup
}

// idGroup is the CPUs of a list, and the id that they share.
type idGroup struct {
	cpus cpuset.Set
	id   *int
}

// repeats reports whether CPUs of different lists have the same id. On s390x, sockets are
// numbered within a book.
func (r *idReader) repeats() bool {
	for i, a := range r.groups {
		for _, b := range r.groups[:i] {
			if a.id != nil && b.id != nil && *a.id == *b.id && !a.cpus.Overlaps(b.cpus) {
				return true
			}
		}
	}
	return false
}

// numbers returns the place of each CPU's list among all lists, by their lowest CPUs.
func (r *idReader) numbers() map[int]int {
	slices.SortFunc(r.groups, func(a, b idGroup) int {
		first, _ := a.cpus.First()
		second, _ := b.cpus.First()
		return cmp.Compare(first, second)
	})
	numbers := make(map[int]int)
	for number, group := range r.groups {
		for cpu := range group.cpus.All() {
			numbers[cpu] = number
		}
	}
	return numbers
}

func (r *idReader) read(cpu int) (*int, error) {
	if id, ok := r.known[cpu]; ok {
		return id, nil
	}
	folder := topologyFolder(cpu)
	id, err := r.tree.topologyID(folder + "/" + r.file)
	if err != nil || r.noList {
		return id, err
	}
	cpus, err := r.tree.set(folder + "/" + r.shared)
	if err != nil {
		return nil, err
	}
	for other := range cpus.All() {
		r.known[other] = id
	}
	if r.noList = cpus.IsEmpty(); !r.noList {
		r.groups = append(r.groups, idGroup{cpus, id})
	}
	return id, nil
}
