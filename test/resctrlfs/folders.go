package resctrlfs

import "fmt"

// groupFolder is the folder of a group, or the mount itself.
func (f *FS) groupFolder(g *group) node {
	n := node{name: g.name, kind: isGroup, group: g}
	n.list = func() []node {
		list := []node{
			{name: "cpus", read: func() string { return f.cpuMask(g.cpus) }, write: func(text string) error { return f.writeCPUs(g, text, f.parseMask) }},
			{name: "cpus_list", read: func() string { return g.cpus.String() + "\n" }, write: func(text string) error { return f.writeCPUs(g, text, f.parseList) }},
			{name: "tasks", read: func() string { return f.tasksText(g) }, write: func(text string) error { return f.writeTasks(g, text) }},
		}
		if g.parent == nil {
			list = append(
				list,
				node{name: "schemata", read: func() string { return f.schemataText(g) }, write: func(text string) error { return f.writeSchemata(g, text) }},
				node{name: "mode", read: g.modeText, write: func(text string) error { return f.writeMode(g, text) }},
				node{name: "size", read: func() string { return f.sizeText(g) }},
			)
		}
		if f.machine.RMIDs > 0 {
			list = append(list, f.monData(g))
			if g.parent == nil {
				list = append(list, f.monGroups(g))
			}
		}
		if g == f.root {
			list = append(list, f.info())
			for _, other := range f.groups {
				list = append(list, f.groupFolder(other))
			}
		}
		return list
	}
	return n
}

func (f *FS) monGroups(g *group) node {
	return node{name: "mon_groups", kind: monGroups, group: g, list: func() (list []node) {
		for _, child := range g.children {
			list = append(list, f.groupFolder(child))
		}
		return list
	}}
}

// monData has a folder for each cache that is online, with a file for each event.
func (f *FS) monData(g *group) node {
	return node{name: "mon_data", group: g, list: func() (list []node) {
		for _, id := range f.domains() {
			list = append(list, node{name: fmt.Sprintf("mon_L3_%02d", id), group: g, list: func() (files []node) {
				for _, event := range f.machine.Features {
					files = append(files, node{name: event, read: func() string { return f.counterText(g, id, event) }})
				}
				return files
			}})
		}
		return list
	}}
}

func folder(name string, list ...node) node {
	return node{name: name, list: func() []node { return list }}
}

func file(name string, read func() string) node {
	return node{name: name, read: read}
}

// line is a file with a value that does not change.
func line(name string, value any) node {
	return file(name, func() string { return fmt.Sprintln(value) })
}

func (f *FS) info() node {
	return node{name: "info", list: func() []node {
		m := f.machine
		list := []node{file("last_cmd_status", f.statusText)}
		for _, name := range m.cacheNames() {
			list = append(list, folder(
				name,
				line("num_closids", m.cacheClasses()),
				line("cbm_mask", fmt.Sprintf("%x", m.full())),
				line("min_cbm_bits", m.MinBits),
				line("shareable_bits", fmt.Sprintf("%x", m.Shareable)),
				line("sparse_masks", oneIf(m.Sparse)),
				file("bit_usage", func() string { return f.bitUsageText(name) }),
			))
		}
		if b := m.Bandwidth; b != nil {
			files := []node{
				line("num_closids", b.Classes),
				line("min_bandwidth", b.Min),
				line("bandwidth_gran", b.Step),
				line("delay_linear", oneIf(b.Percent)),
			}
			if b.Percent {
				files = append(files, line("thread_throttle_mode", "max"))
			}
			list = append(list, folder("MB", files...))
		}
		if m.RMIDs > 0 {
			files := []node{
				line("num_rmids", m.RMIDs),
				file("mon_features", func() (text string) {
					for _, event := range m.Features {
						text += event + "\n"
					}
					return text
				}),
				{name: "max_threshold_occupancy", read: func() string { return fmt.Sprintln(f.threshold) }, write: f.writeThreshold},
			}
			if m.Kernel >= Linux72 { // without counters that can be assigned; mbm_assign_mode in Documentation/filesystems/resctrl.rst
				files = append(files, line("mbm_assign_mode", "[default]"))
			}
			list = append(list, folder("L3_MON", files...))
		}
		return list
	}}
}

func (f *FS) statusText() string {
	if f.status == "" {
		return "ok\n"
	}
	return f.status
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}
