package driver

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func TestFiguresOfZones(t *testing.T) {
	const mib = 1 << 20
	disk := newDisk(t)
	config := testConfig()
	config.ReservedMemory = zones.Reservations{{Bytes: 10 * mib}, {Nodes: cpuset.New(0), Size: "2Mi", Bytes: 2 * mib}}
	driver := disk.openWith(config)
	mustPrepare(t, driver, claim("a", consuming(result("r", "numa-0", 2), "memory=100Mi", "hugepages2Mi=4Mi")))
	mustPrepare(t, driver, claim("b", consuming(result("r", "numa-2", 0), "memory=1Mi")))
	if _, err := driver.Observe([]Held{{Cgroup: "other", CPUs: cpuset.New(7)}}); err != nil {
		t.Fatal(err)
	}
	want := Figures{Zones: []ZoneFigures{
		{"numa-0", Amounts{Claimed: 2, Reserved: 2}, []MemoryFigures{
			{"", Amounts{Claimed: 100 * mib, Reserved: 15 * mib, Shared: (1024 - 16 - 115) * mib}},
			{"2Mi", Amounts{Claimed: 4 * mib, Reserved: 2 * mib, Shared: 10 * mib}},
			{"1Gi", Amounts{}},
		}},
		{"numa-1", Amounts{Shared: 3, Blocked: 1}, []MemoryFigures{
			{"", Amounts{Reserved: 15 * mib, Shared: (1024 - 16 - 15) * mib}},
			{"2Mi", Amounts{Shared: 16 * mib}},
			{"1Gi", Amounts{}},
		}},
		{"numa-2", Amounts{}, []MemoryFigures{{"", Amounts{Claimed: mib, Reserved: 10 * mib, Shared: (1024 - 11) * mib}}}},
	}}
	if diff := cmp.Diff(want, driver.Figures()); diff != "" {
		t.Errorf("figures differ (-want +got):\n%s", diff)
	}
}

// What a zone has online is divided without a rest, whatever the machine and the zones.
func TestFiguresAddUp(t *testing.T) {
	sample.Each(t, func(t *testing.T, machine numa.Machine) {
		for _, by := range deviceclasses.ZoneBys() {
			disk := newDisk(t)
			disk.machine = machine
			config := testConfig()
			config.ZoneBy = by
			var cpus, bytes uint64
			for _, zone := range disk.openWith(config).Figures().Zones {
				cpus += zone.CPUs.Claimed + zone.CPUs.Shared + zone.CPUs.Reserved + zone.CPUs.Blocked
				for _, memory := range zone.Memory {
					bytes += memory.Claimed + memory.Shared + memory.Reserved
				}
			}
			var wantCPUs, wantBytes uint64
			for _, zone := range machine.Zones {
				wantCPUs += uint64(zone.CPUs.Size())
				if zone.MemoryBytes != nil {
					wantBytes += *zone.MemoryBytes
				}
			}
			if cpus != wantCPUs || bytes != wantBytes {
				t.Errorf("zoneBy %s: %d CPUs and %d bytes, want %d and %d", by, cpus, bytes, wantCPUs, wantBytes)
			}
		}
	})
}

// A claim's memory counts where its zone was, when zones are something else now.
func TestFiguresOfAFormerZone(t *testing.T) {
	disk := newDisk(t)
	mustPrepare(t, disk.open(), claim("a", counted(result("r", "numa-1", 2))))
	config := testConfig()
	config.ZoneBy = deviceclasses.ZoneByMachine
	got := disk.openWith(config).Figures().Zones[0]
	if got.Device != "machine" || got.CPUs.Claimed != 2 || got.Memory[0].Claimed != 1<<30 {
		t.Errorf("figures %+v, want 2 CPUs and 1Gi of the machine claimed", got)
	}
}

func TestBooksThatDoNotMatch(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
	mustPrepare(t, driver, claim("b", result("r", "numa-1", 2)))
	compare := func(want Mismatches) {
		t.Helper()
		if got, err := driver.Mismatches(); got != want || err != nil {
			t.Errorf("mismatches %+v, %v, want %+v", got, err, want)
		}
	}
	compare(Mismatches{})
	spec := disk.files()[specName("uid-a")]
	disk.remove(specName("uid-a"))
	compare(Mismatches{MissingSpecs: 1})
	disk.write(specName("uid-z"), spec)
	disk.write("other-vendor.json", "{}")
	compare(Mismatches{MissingSpecs: 1, ExtraSpecs: 1})
	checkpoint := disk.files()[ledger.CheckpointName]
	disk.write(ledger.CheckpointName, checkpoint+"\n")
	compare(Mismatches{Checkpoint: true, MissingSpecs: 1, ExtraSpecs: 1})
	disk.remove(ledger.CheckpointName)
	compare(Mismatches{Checkpoint: true, MissingSpecs: 1, ExtraSpecs: 1})
	disk.write(ledger.CheckpointName, checkpoint)
	disk.remove(specName("uid-z"))
	disk.write(specName("uid-a"), spec)
	compare(Mismatches{})
}

func TestNobodyWaitsForAnOperationThatHangs(t *testing.T) {
	driver := newDisk(t).open()
	if driver.Busy() != 0 {
		t.Errorf("busy for %s without an operation", driver.Busy())
	}
	driver.mu.Lock()
	defer driver.mu.Unlock()
	if driver.Busy() <= 0 {
		t.Errorf("busy for %s during an operation", driver.Busy())
	}
	if _, err := driver.Mismatches(); err == nil {
		t.Error("files are compared during an operation")
	}
	if got := len(driver.Figures().Zones); got != 3 {
		t.Errorf("figures of %d zones during an operation, want 3", got)
	}
}

func TestWritesAreCounted(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	before := driver.CheckpointWrites()
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
	files := disk.files()
	if got := driver.CheckpointWrites(); got.Bytes-before.Bytes != uint64(len(files[ledger.CheckpointName])) || got.Syncs.Count <= before.Syncs.Count {
		t.Errorf("%d bytes and %d syncs, before %d and %d, for a checkpoint of %d bytes", got.Bytes, got.Syncs.Count, before.Bytes, before.Syncs.Count, len(files[ledger.CheckpointName]))
	}
	if got := driver.SpecWrites(); got.Bytes != uint64(len(files[specName("uid-a")])) || got.Syncs.Count == 0 {
		t.Errorf("%d bytes and %d syncs for a spec of %d bytes", got.Bytes, got.Syncs.Count, len(files[specName("uid-a")]))
	}
}
