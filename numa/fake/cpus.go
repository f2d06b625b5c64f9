package fake

import "fmt"

const (
	cpuFolder  = "sys/devices/system/cpu"
	nodeFolder = "sys/devices/system/node"
)

// addCPUs adds sys/devices/system/cpu and the files that tell kinds of cores apart;
// Documentation/ABI/{stable,testing}/sysfs-devices-system-cpu.
func (t tree) addCPUs(l layout) {
	t.line(cpuFolder+"/online", "%s", l.online)
	t.line(cpuFolder+"/possible", "%s", l.possible)
	t.line(cpuFolder+"/present", "%s", l.present)
	t.line(cpuFolder+"/offline", "%s", l.possible.Difference(l.online))
	t.line(cpuFolder+"/isolated", "%s", l.isolated)
	t.line(cpuFolder+"/kernel_max", "8191")
	if l.NoHZFull == "" { // the kernel prints a NULL mask, as wide as its number of CPUs
		t.line(cpuFolder+"/nohz_full", "%*s", len(l.cpus), "(null)")
	} else {
		t.line(cpuFolder+"/nohz_full", "%s", l.noTick)
	}
	for id := range l.present.All() {
		folder := fmt.Sprintf("%s/cpu%d", cpuFolder, id)
		switch {
		case !l.online.Contains(id): // no topology, no caches
			t.line(folder+"/online", "0")
		case id > 0 || l.Make == Arm: // x86 cannot take CPU 0 offline
			t.line(folder+"/online", "1")
		}
	}
	t.addTopology(l)
	t.addCaches(l)
	t.addFrequencies(l)
	t.addCoreKinds(l)
}

// addTopology adds cpu<N>/topology; Documentation/admin-guide/cputopology.rst.
func (t tree) addTopology(l layout) {
	dieBits := l.dieBits()
	cores := l.domains(func(c cpu) int { return l.apicID(c, dieBits) >> l.smtBits() })
	dies := l.domains(func(c cpu) int { return c.socket*l.DiesPerSocket + c.die })
	packages := l.domains(func(c cpu) int { return c.socket })
	clusters := cores
	switch l.Make {
	case Intel:
		clusters = l.domains(func(c cpu) int { return l.apicID(c, dieBits) >> l.l2Bits() })
	case Arm:
		clusters = packages
	}
	for id := range l.online.All() {
		c := l.cpus[id]
		folder := fmt.Sprintf("%s/cpu%d/topology/", cpuFolder, id)
		t.line(folder+"physical_package_id", "%d", c.socket)
		t.line(folder+"core_cpus_list", "%s", cores[id].list)
		t.line(folder+"thread_siblings_list", "%s", cores[id].list)
		t.line(folder+"package_cpus_list", "%s", packages[id].list)
		switch l.Make {
		case Arm:
			t.line(folder+"core_id", "%d", c.socket*l.CoresPerSocket+c.core)
			t.line(folder+"cluster_id", "%d", c.socket)
		case AMD:
			t.line(folder+"core_id", "%d", c.slot)
			t.line(folder+"cluster_id", "65535") // no cluster
		default:
			t.line(folder+"core_id", "%d", c.slot)
			t.line(folder+"cluster_id", "%d", l.apicID(c, dieBits)>>l.l2Bits()<<l.l2Bits())
		}
		if l.Make != Arm {
			t.line(folder+"die_id", "%d", l.apicID(c, dieBits)>>dieBits)
			t.line(folder+"die_cpus_list", "%s", dies[id].list)
		}
		if l.Full {
			t.masks(folder+"core_cpus", "", cores[id])
			t.masks(folder+"thread_siblings", "", cores[id])
			t.masks(folder+"core_siblings", "_list", packages[id])
			t.masks(folder+"package_cpus", "", packages[id])
			t.masks(folder+"cluster_cpus", "_list", clusters[id])
			if l.Make != Arm {
				t.masks(folder+"die_cpus", "", dies[id])
			}
		}
	}
}

// masks adds a set's mask and, if there is a suffix, its list.
func (t tree) masks(name, listSuffix string, d domain) {
	t.line(name, "%s", d.mask)
	if listSuffix != "" {
		t.line(name+listSuffix, "%s", d.list)
	}
}

// addFrequencies adds cpufreq/policy<N>;
// Documentation/admin-guide/pm/{cpufreq,intel_pstate}.rst.
func (t tree) addFrequencies(l layout) {
	if l.MaxMHz == 0 {
		return
	}
	for id := range l.online.All() {
		policy := fmt.Sprintf("%s/cpufreq/policy%d", cpuFolder, id)
		maxMHz := l.MaxMHz
		if kind := l.cpus[id].kind; kind == efficientCore || kind == lowPowerCore {
			maxMHz = l.Hybrid.EfficientMaxMHz
		}
		t.line(policy+"/cpuinfo_max_freq", "%d000", maxMHz)
		t.line(policy+"/related_cpus", "%d", id)
		if l.Make == Intel {
			t.line(policy+"/base_frequency", "%d000", min(l.BaseMHz, maxMHz))
		}
		t.link(fmt.Sprintf("%s/cpu%d/cpufreq", cpuFolder, id), policy)
	}
}

// addCoreKinds adds the performance monitoring units of a hybrid, and cpu_capacity on
// Arm.
func (t tree) addCoreKinds(l layout) {
	units := map[coreKind]string{performanceCore: "cpu_core", efficientCore: "cpu_atom", lowPowerCore: "cpu_lowpower"}
	members := map[coreKind][]int{}
	for id := range l.online.All() {
		members[l.cpus[id].kind] = append(members[l.cpus[id].kind], id)
		if l.Make == Arm {
			t.line(fmt.Sprintf("%s/cpu%d/cpu_capacity", cpuFolder, id), "1024")
		}
	}
	for kind, ids := range members {
		if unit, hybrid := units[kind]; hybrid {
			t.line("sys/devices/"+unit+"/cpus", "%s", setOf(ids))
			t.link("sys/bus/event_source/devices/"+unit, "sys/devices/"+unit)
		}
	}
}
