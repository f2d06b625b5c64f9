package sysfs

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Files that can be written.
const (
	minFile      = "scaling_min_freq"
	maxFile      = "scaling_max_freq"
	governorFile = "scaling_governor"
	energyFile   = "energy_performance_preference"
	idleFile     = "pm_qos_resume_latency_us"
	affinityFile = "smp_affinity_list"
	defaultFile  = "default_smp_affinity"
)

func isWritable(name string) bool {
	return slices.Contains([]string{minFile, maxFile, governorFile, energyFile, idleFile, affinityFile, defaultFile, uncoreMinFile, uncoreMaxFile}, path.Base(name))
}

// Write behaves like write(2) to one of the files.
func (h *PowerHost) Write(name, text string) error {
	h.writes++
	if _, there := h.values[name]; !there {
		return &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	}
	text = strings.TrimSpace(text)
	folder, file := path.Split(name)
	var err error
	switch {
	case h.offline[folder]:
		return &fs.PathError{Op: "write", Path: name, Err: syscall.EBUSY}
	case h.isReadOnly(name) && !h.power.Override:
		return &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}
	switch file {
	case minFile, maxFile:
		err = h.setFrequency(folder, file, text)
	case governorFile:
		err = h.setGovernor(folder, text)
	case energyFile:
		err = h.setPreference(folder, text)
	case idleFile:
		err = h.setIdle(name, text)
	case uncoreMinFile, uncoreMaxFile:
		err = h.setUncore(folder, file, text)
	case affinityFile:
		err = h.setAffinity(folder, text)
	case defaultFile:
		err = h.setDefault(name, text)
	default:
		err = syscall.EACCES
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// setFrequency follows store_scaling_min_freq in drivers/cpufreq/cpufreq.c: any number is
// taken, and what the CPU does is limited later, or when the governor is written.
func (h *PowerHost) setFrequency(folder, file, text string) error {
	kHz, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return syscall.EINVAL
	}
	h.asked[folder+file] = int(kHz)
	h.crossed = h.crossed || h.asked[folder+minFile] > h.asked[folder+maxFile]
	h.requested[folder] = true
	return nil
}

// limit follows cpufreq_verify_within_limits in include/linux/cpufreq.h. The CPUs are idle,
// so they have the lowest frequency, unless the governor wants the highest one.
func (h *PowerHost) limit(folder string) {
	highest := HighestKHz
	if h.power.LimitKHz > 0 {
		highest = max(min(h.power.LimitKHz, highest), LowestKHz)
	}
	top := min(max(h.asked[folder+maxFile], LowestKHz), highest)
	bottom := min(max(h.asked[folder+minFile], LowestKHz), highest, top)
	h.set(folder+maxFile, fmt.Sprint(top))
	h.set(folder+minFile, fmt.Sprint(bottom))
	current := bottom
	if h.values[folder+governorFile] == "performance\n" {
		current = top
	}
	h.set(folder+"scaling_cur_freq", fmt.Sprint(current))
}

func (h *PowerHost) setGovernor(folder, text string) error {
	if !slices.Contains(strings.Fields(h.values[folder+"scaling_available_governors"]), text) {
		return syscall.EINVAL
	}
	was := strings.TrimSpace(h.values[folder+governorFile])
	h.set(folder+governorFile, text)
	h.limit(folder) // cpufreq_set_policy
	delete(h.requested, folder)
	if !h.power.Driver.active() || was == text {
		return nil
	}
	policy, _ := strconv.Atoi(strings.TrimPrefix(path.Base(folder), "policy"))
	if text == "performance" { // intel_pstate_hwp_set in drivers/cpufreq/intel_pstate.c
		h.saved[policy] = strings.TrimSpace(h.values[folder+energyFile])
		h.set(folder+energyFile, "performance")
	} else if saved := h.saved[policy]; saved != "" && h.power.Driver == IntelPstate { // amd-pstate leaves it
		h.set(folder+energyFile, saved)
	}
	return nil
}

// setPreference follows store_energy_performance_preference of the drivers. "default" is for
// what the firmware has set: 112 on this machine, which has no name.
func (h *PowerHost) setPreference(folder, text string) error {
	number, err := strconv.ParseUint(text, 10, 8)
	isNumber := err == nil && fmt.Sprint(number) == text && h.power.Driver != AMDPstateEPP
	switch {
	case !isNumber && !slices.Contains(strings.Fields(h.values[folder+"energy_performance_available_preferences"]), text):
		return syscall.EINVAL
	case h.power.Driver.active() && text != "performance" && strings.TrimSpace(h.values[folder+governorFile]) == "performance":
		return syscall.EBUSY
	case text == "default":
		text = "112"
	}
	h.set(folder+energyFile, text)
	return nil
}

// setIdle follows pm_qos_resume_latency_us_store in drivers/base/power/sysfs.c.
func (h *PowerHost) setIdle(name, text string) error {
	const noConstraint = 1<<31 - 1
	limit, err := strconv.ParseInt(text, 10, 32)
	if text != "n/a" && (err != nil || limit < 0 || limit == noConstraint) {
		return syscall.EINVAL
	}
	h.set(name, text)
	return nil
}

// isReadOnly reports whether nothing can write the file by its permissions: the kernel makes
// the files of managed interrupts like that, register_irq_proc in kernel/irq/proc.c.
func (h *PowerHost) isReadOnly(name string) bool {
	folder, file := path.Split(name)
	return file == affinityFile && h.line(folder).Managed
}

// line returns the interrupt with this folder.
func (h *PowerHost) line(folder string) Line {
	number, _ := strconv.Atoi(path.Base(folder))
	return h.power.Lines[slices.IndexFunc(h.power.Lines, func(l Line) bool { return l.Number == number })]
}

// setAffinity follows write_irq_affinity in kernel/irq/proc.c.
func (h *PowerHost) setAffinity(folder, text string) error {
	cpus, err := cpuset.Parse(text)
	online, _ := cpuset.Parse(strings.TrimSpace(h.values["sys/devices/system/cpu/online"]))
	switch {
	case h.line(folder).Managed:
		return syscall.EIO
	case err != nil || !cpus.Overlaps(online):
		return syscall.EINVAL
	case cpus.IsSubsetOf(h.full):
		return syscall.ENOSPC
	}
	h.set(folder+affinityFile, cpus.String())
	h.set(folder+"effective_affinity_list", firstOf(cpus.Intersection(online).Difference(h.full)))
	return nil
}

func (h *PowerHost) setDefault(name, text string) error {
	cpus, err := cpuset.ParseMask(text)
	online, _ := cpuset.Parse(strings.TrimSpace(h.values["sys/devices/system/cpu/online"]))
	if err != nil || !cpus.Overlaps(online) {
		return syscall.EINVAL
	}
	h.set(name, cpus.Mask())
	return nil
}

// Open implements [fs.FS].
func (h *PowerHost) Open(name string) (fs.File, error) {
	file, err := h.structure.Open(name)
	name = h.resolved(name)
	if text, isFile := h.values[name]; isFile && err == nil {
		switch {
		case h.offline[path.Dir(name)+"/"]:
			return failingFile{file, syscall.EBUSY}, nil
		case path.Base(name) == energyFile && h.power.Driver == AMDPstateEPP && !strings.ContainsFunc(text, unicode.IsLetter):
			return failingFile{file, syscall.EINVAL}, nil // amd-pstate shows only what has a name
		case h.isReadOnly(name):
			file = readOnlyFile{file}
		}
		return valueFile{file, strings.NewReader(text)}, nil
	}
	return file, err
}

// resolved follows the link from a CPU to its policy.
func (h *PowerHost) resolved(name string) string {
	folder, file, found := strings.Cut(name, "/cpufreq/")
	if cpu, err := strconv.Atoi(strings.TrimPrefix(path.Base(folder), "cpu")); found && err == nil {
		return policyFolder(cpu-cpu%h.power.PerPolicy) + file
	}
	return name
}

// ReadLink implements [fs.ReadLinkFS].
func (h *PowerHost) ReadLink(name string) (string, error) { return fs.ReadLink(h.structure, name) }

// Lstat implements [fs.ReadLinkFS].
func (h *PowerHost) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(h.structure, name) }

// valueFile is a file whose content has changed since the structure was made.
type valueFile struct {
	fs.File
	text *strings.Reader
}

func (f valueFile) Read(p []byte) (int, error) { return f.text.Read(p) }

// readOnlyFile is a file that its permissions do not let anyone write.
type readOnlyFile struct{ fs.File }

func (f readOnlyFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	return readOnlyInfo{info}, err
}

type readOnlyInfo struct{ fs.FileInfo }

func (i readOnlyInfo) Mode() fs.FileMode { return i.FileInfo.Mode() &^ 0o222 }

// failingFile is a file that the kernel does not show now.
type failingFile struct {
	fs.File
	err error
}

func (f failingFile) Read([]byte) (int, error) { return 0, f.err }
