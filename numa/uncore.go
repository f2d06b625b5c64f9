package numa

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// UncoreDie is a die, and the frequency of its uncore: of the mesh between its cores, of its
// level-3 caches and its memory controllers;
// Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst. On processors with TPMI,
// die 0 stands for the whole package: what is written there goes to every uncore<N> of it.
type UncoreDie struct {
	Package, Die int // as in physical_package_id and die_id of its CPUs

	LowestKHz, HighestKHz int // the range when the kernel's driver found the die
	MinKHz, MaxKHz        int // the range that is set
}

const uncoreFolder = "sys/devices/system/cpu/intel_uncore_frequency"

// UncoreMinFile is the file with the lowest frequency, in kHz, that is set for a die.
func UncoreMinFile(socket, die int) string { return uncoreDieFolder(socket, die) + "min_freq_khz" }

func uncoreDieFolder(socket, die int) string {
	return fmt.Sprintf("%s/package_%02d_die_%02d/", uncoreFolder, socket, die)
}

// ReadUncoreDies reads every die whose uncore frequency can be set, ascending; none if the
// kernel has no such driver. It has none on virtual machines, and on processors that are not
// of Intel. The die of offline CPUs may be missing. All frequencies are above 0.
func ReadUncoreDies(root fs.FS) (dies []UncoreDie, err error) {
	t := newTree(root)
	t.fleeting = true
	names, err := t.entries(uncoreFolder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		socket, die, ok := uncoreDieOf(name)
		if !ok {
			continue
		}
		read, found, err := t.uncoreDie(socket, die)
		if err != nil {
			return nil, err
		}
		if found {
			dies = append(dies, read)
		}
	}
	slices.SortFunc(dies, func(a, b UncoreDie) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Die, b.Die))
	})
	return dies, nil
}

// uncoreDieOf returns the ids in the name of a folder such as package_00_die_01; ok is false
// for other names.
func uncoreDieOf(name string) (socket, die int, ok bool) {
	numbers, ok := strings.CutPrefix(name, "package_")
	first, second, found := strings.Cut(numbers, "_die_")
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := strconv.ParseUint(second, 10, 16)
	return int(a), int(b), ok && found && errA == nil && errB == nil
}

// uncoreDie reads one die; found is false if its last CPU has gone offline meanwhile, and if
// the processor does not say one of the frequencies.
func (t tree) uncoreDie(socket, die int) (read UncoreDie, found bool, err error) {
	folder := uncoreDieFolder(socket, die)
	read = UncoreDie{Package: socket, Die: die}
	for _, field := range []struct {
		value *int
		file  string
	}{
		{&read.LowestKHz, "initial_min_freq_khz"},
		{&read.HighestKHz, "initial_max_freq_khz"},
		{&read.MinKHz, "min_freq_khz"},
		{&read.MaxKHz, "max_freq_khz"},
	} {
		frequency, err := t.positive(folder + field.file)
		if *field.value = kHz(frequency, 1); err != nil || *field.value == 0 {
			return UncoreDie{}, false, err
		}
	}
	return read, true, nil
}
