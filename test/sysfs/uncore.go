package sysfs

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/memfs"
)

// The range of the uncore of each die, in kHz.
const (
	LowestUncoreKHz  = 800_000
	HighestUncoreKHz = 2_400_000
)

// Uncore declares the dies whose uncore frequency can be set. The zero value is a machine
// without the kernel's driver.
type Uncore struct {
	Packages int
	Dies     int // of each package
	LimitKHz int // the processor takes no higher lowest frequency; 0 means no limit
}

// Files of a die that can be written.
const (
	uncoreMinFile = "min_freq_khz"
	uncoreMaxFile = "max_freq_khz"
)

func uncoreDieFolder(socket, die int) string {
	return fmt.Sprintf("sys/devices/system/cpu/intel_uncore_frequency/package_%02d_die_%02d/", socket, die)
}

func (h *PowerHost) addUncore() {
	for socket := range h.power.Uncore.Packages {
		for die := range h.power.Uncore.Dies {
			h.addDie(socket, die, LowestUncoreKHz, HighestUncoreKHz)
		}
	}
}

// addDie follows uncore_freq_add_entry in
// drivers/platform/x86/intel/uncore-frequency/uncore-frequency-common.c: what is set when the
// kernel finds a die is its range.
func (h *PowerHost) addDie(socket, die, lowestKHz, highestKHz int) {
	folder := uncoreDieFolder(socket, die)
	for file, kHz := range map[string]int{
		"initial_min_freq_khz": lowestKHz, uncoreMinFile: lowestKHz, "initial_max_freq_khz": highestKHz, uncoreMaxFile: highestKHz,
	} {
		h.set(folder+file, strconv.Itoa(kHz))
	}
}

// SetDieOnline brings all CPUs of a die online, or takes them offline: then its folder is
// gone. The die keeps its frequencies.
func (h *PowerHost) SetDieOnline(socket, die int, online bool) {
	folder := uncoreDieFolder(socket, die)
	if online {
		h.addDie(socket, die, h.away[folder+uncoreMinFile], h.away[folder+uncoreMaxFile])
	}
	for name, text := range maps.Clone(h.values) {
		if strings.HasPrefix(name, folder) && !online {
			h.away[name], _ = strconv.Atoi(strings.TrimSpace(text))
			delete(h.values, name)
		}
	}
	h.structure = memfs.New(maps.Clone(h.values), h.links(), nil)
}

// setUncore follows uncore_write_control_freq in
// drivers/platform/x86/intel/uncore-frequency/uncore-frequency.c: the register has a multiple
// of 100 MHz in 7 bits, and its two frequencies are not compared.
func (h *PowerHost) setUncore(folder, file, text string) error {
	const step, most = 100_000, 1<<7 - 1
	kHz, err := strconv.ParseUint(text, 10, 32)
	ratio := kHz / step
	if err != nil || ratio == 0 || ratio > most {
		return syscall.EINVAL
	}
	set := int(ratio) * step
	if limit := h.power.Uncore.LimitKHz; limit > 0 && file == uncoreMinFile {
		set = min(set, limit)
	}
	h.set(folder+file, strconv.Itoa(set))
	return nil
}
