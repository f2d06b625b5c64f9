package driver

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func noHook([]string) error { return nil }

// A node must not stay unready because its machine is an unusual one.
func TestRehearsalSucceedsOnEveryMachine(t *testing.T) {
	for _, preset := range fake.Presets() {
		machine, err := numa.Read(preset.Machine.FS())
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range deviceclasses.ZoneBys() {
			for _, exclusivity := range []Exclusivity{ExclusivityKernel, ExclusivityCooperative, ExclusivityNone} {
				config := testConfig()
				config.ZoneBy, config.Exclusivity = by, exclusivity
				if err := Rehearse(machine, config, files.OpenTemp(t), files.OpenTemp(t), noHook); err != nil {
					t.Errorf("%s by %s, %s: %v", preset.Name, by, exclusivity, err)
				}
			}
		}
	}
}

// The rehearsal runs the hook once, and leaves only the checkpoint of a node without claims.
// It uses nothing of the host: what would is not there.
func TestRehearsalUsesScratchDirectoriesOnly(t *testing.T) {
	disk, config := newDisk(t), testConfig()
	config.Hugepages = func(cpuset.Set, map[string][]string) (Hugepages, error) {
		return Hugepages{}, errors.New("the host was asked")
	}
	var hook []string
	err := Rehearse(testMachine(), config, disk.state, disk.specs, func(args []string) error {
		hook = append(hook, strings.Join(args, " "))
		return nil
	})
	const want = "numa-pin pin --uid=rehearsal --claim=rehearsal/rehearsal --cpus=2 --mems= --partition=root --scope=container" +
		" --lock=/plugins/dra.numa/bin/numa-pin.lock --records=/plugins/dra.numa/bin/pins"
	if err != nil || len(hook) != 1 || hook[0] != want {
		t.Errorf("hook %q, %v, want %q", hook, err, want)
	}
	if names := slices.Sorted(maps.Keys(disk.files())); !slices.Equal(names, []string{ledger.CheckpointName, tuning.FirstName}) {
		t.Errorf("files %q, want the checkpoint and the first values", names)
	}
}

// Without a CPU for claims there is a checkpoint all the same.
func TestRehearsalWithoutCPUsForClaims(t *testing.T) {
	disk, config := newDisk(t), testConfig()
	config.Reserved = testMachine().Online
	refuse := func([]string) error { return errors.New("the hook was run") }
	if err := Rehearse(testMachine(), config, disk.state, disk.specs, refuse); err != nil {
		t.Error(err)
	}
	disk.state.Close()
	if err := Rehearse(testMachine(), config, disk.state, disk.specs, refuse); err == nil {
		t.Error("a directory that cannot be written to is fine")
	}
}

// inTheWay makes a directory with the name of a file, as in
// TestDiskThatCannotBeWrittenIsAnErrorAndHeals.
func inTheWay(d disk, name string) {
	if err := d.dirOf(name).MkdirAll(name+"/in-the-way", 0o755); err != nil {
		d.t.Fatal(err)
	}
}

// As in TestFullDiskIsAnErrorAndHeals, but nothing has to heal: scratch directories are made
// for each rehearsal.
func TestRehearsalFailsOnAFullDisk(t *testing.T) {
	if !inChild(t) {
		return
	}
	for size, want := range map[uint64]string{
		0: "rehearse the start of a node: ", 300: "rehearse to prepare a claim: record claim ", 700: "rehearse to prepare a claim: write CDI spec of claim ",
	} {
		disk := newDisk(t)
		var err error
		withFileSize(t, size, func() { err = Rehearse(testMachine(), testConfig(), disk.state, disk.specs, noHook) })
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, syscall.EFBIG) {
			t.Errorf("files of %d bytes: %v, want %s", size, err, want)
		}
	}
}

// Each step that fails is named.
func TestRehearsalNamesWhatFails(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(disk)
		hook    func([]string) error
		want    string
	}{
		"hook": {func(disk) {}, func([]string) error { return errors.New("exit status 2") }, "rehearse to run the pin hook: exit status 2"},
		"checkpoint": {
			func(d disk) { inTheWay(d, ledger.CheckpointName+".new") }, noHook,
			"rehearse the start of a node: record boot boot-1: ",
		},
		"CDI spec": {
			func(d disk) { inTheWay(d, specName(rehearsed)+".new") }, noHook,
			"rehearse the start of a node: remove CDI specs without a claim: ",
		},
		"damaged": {func(d disk) { d.write(ledger.CheckpointName, "{}") }, noHook, "rehearse the start of a node: "},
	} {
		t.Run(name, func(t *testing.T) {
			disk := newDisk(t)
			row.prepare(disk)
			err := Rehearse(testMachine(), testConfig(), disk.state, disk.specs, row.hook)
			if err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("error %v, want %s", err, row.want)
			}
		})
	}
}
