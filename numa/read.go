package numa

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Folders of the kernel that several readers use;
// Documentation/ABI/stable/sysfs-devices-{node,system-cpu}.
const (
	cpuFolder  = "sys/devices/system/cpu"
	nodeFolder = "sys/devices/system/node"
)

// BootIDFile has a UUID that the kernel makes at each boot. Read does not use it, but a daemon
// that runs on a recorded machine does.
const BootIDFile = "proc/sys/kernel/random/boot_id"

// Read reads the machine under root, which holds sys/ and proc/. What a missing or
// empty file would tell is absent from the result. A file whose content makes no sense
// is an error that names the file. A machine without an online CPU is an error, too.
// Root should read symbolic links ([fs.ReadLinkFS], as [os.DirFS] does), because they
// show where a PCI function is.
func Read(root fs.FS) (Machine, error) {
	t := newTree(root)
	var m Machine
	for _, read := range []func(*Machine) error{ // each reader may use the results of the readers before it
		t.readCPUs,
		t.readZones,
		t.readCores,
		t.readCoreTypes,
		t.readCaches,
		t.optional().readPCI,
		t.optional().readGPUReport,
		t.optional().readAccess,
		t.optional().readResctrl,
	} {
		if err := read(&m); err != nil {
			return Machine{}, err
		}
	}
	return m, nil
}

// readCPUs reads which CPUs are present, online, isolated and without a tick.
func (t tree) readCPUs(m *Machine) error {
	present, found, err := parseFile(t, cpuFolder+"/present", cpuset.Parse)
	if err == nil && !found { // only a present CPU has a folder
		present, err = t.numbered(cpuFolder, "cpu")
	}
	if err != nil {
		return err
	}
	if m.Online, err = t.onlineCPUs(); err != nil {
		return err
	}
	m.Present = present.Union(m.Online)
	if m.Isolated, err = t.bootSet("isolated"); err != nil {
		return err
	}
	m.NoHZFull, err = t.bootSet("nohz_full")
	return err
}

// bootSet reads a set of CPUs that the kernel command line sets. An empty file is the
// empty set. A kernel that was booted without the option may print "(null)".
func (t tree) bootSet(file string) (*cpuset.Set, error) {
	name := cpuFolder + "/" + file
	text, found, err := t.text(name)
	if err != nil || !found || text == "(null)" {
		return nil, err
	}
	set, err := cpuset.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &set, nil
}

// onlineCPUs reads cpu/online. Without that file it takes every cpu<N> folder whose own
// "online" file does not say 0: CPU 0 and machines without CPU hotplug have no such file.
func (t tree) onlineCPUs() (cpuset.Set, error) {
	online, found, err := parseFile(t, cpuFolder+"/online", cpuset.Parse)
	if err != nil {
		return cpuset.Set{}, err
	}
	if !found {
		if online, err = t.numbered(cpuFolder, "cpu"); err != nil {
			return cpuset.Set{}, err
		}
		for cpu := range online.All() {
			state, _, err := t.text(fmt.Sprintf("%s/cpu%d/online", cpuFolder, cpu))
			if err != nil {
				return cpuset.Set{}, err
			}
			if state == "0" {
				online = online.Difference(cpuset.New(cpu))
			}
		}
	}
	if online.IsEmpty() {
		return cpuset.Set{}, errors.New("no cpu is online in " + cpuFolder)
	}
	return online, nil
}
