package numa_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/memfs"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

func TestDiesAreReadInTheirOrder(t *testing.T) {
	host := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Uncore: sysfs.Uncore{Packages: 12, Dies: 2}})
	if err := host.Write(numa.UncoreMinFile(11, 1), "1250000"); err != nil {
		t.Fatal(err)
	}
	dies, err := numa.ReadUncoreDies(host)
	if err != nil || len(dies) != 24 {
		t.Fatalf("%d dies, %v, want 24", len(dies), err)
	}
	want := numa.UncoreDie{Package: 2, LowestKHz: sysfs.LowestUncoreKHz, HighestKHz: sysfs.HighestUncoreKHz, MinKHz: sysfs.LowestUncoreKHz, MaxKHz: sysfs.HighestUncoreKHz}
	if dies[4] != want || dies[23].Package != 11 || dies[23].Die != 1 || dies[23].MinKHz != 1_200_000 {
		t.Errorf("dies %+v", dies)
	}
}

func TestOnlyFoldersOfDiesAreRead(t *testing.T) {
	const folder = "sys/devices/system/cpu/intel_uncore_frequency/"
	files := map[string]string{folder + "uncore00/min_freq_khz": "900000\n", folder + "package_00_die_00/min_freq_khz": "many\n"}
	for _, name := range []string{"package_00_die_00", "package_00", "package_00_die_", "package_-1_die_00", "package_00_die_99999", "package_00_die_00_x"} {
		for _, file := range []string{"initial_min_freq_khz", "initial_max_freq_khz", "max_freq_khz"} {
			files[folder+name+"/"+file] = "900000\n"
		}
	}
	_, err := numa.ReadUncoreDies(memfs.New(files, nil, nil))
	if err == nil || !strings.Contains(err.Error(), "package_00_die_00/min_freq_khz") {
		t.Errorf("error %v", err)
	}
	files[folder+"package_00_die_00/min_freq_khz"] = "800000\n"
	dies, err := numa.ReadUncoreDies(memfs.New(files, nil, nil))
	if want := []numa.UncoreDie{{LowestKHz: 900_000, HighestKHz: 900_000, MinKHz: 800_000, MaxKHz: 900_000}}; err != nil || !slices.Equal(dies, want) {
		t.Errorf("dies %+v, %v, want %+v", dies, err, want)
	}
	files[folder+"package_00_die_00/min_freq_khz"] = "0\n" // the processor does not say it
	if dies, err := numa.ReadUncoreDies(memfs.New(files, nil, nil)); err != nil || len(dies) > 0 {
		t.Errorf("dies %+v, %v, want none", dies, err)
	}
	delete(files, folder+"package_00_die_00/min_freq_khz") // as when its last CPU goes offline
	if dies, err := numa.ReadUncoreDies(memfs.New(files, nil, nil)); err != nil || len(dies) > 0 {
		t.Errorf("dies %+v, %v, want none", dies, err)
	}
}

func TestAMachineWithoutTheDriverHasNoDies(t *testing.T) {
	if dies, err := numa.ReadUncoreDies(sysfs.NewPowerHost(sysfs.Power{CPUs: 8})); err != nil || len(dies) > 0 {
		t.Errorf("dies %+v, %v, want none", dies, err)
	}
}
