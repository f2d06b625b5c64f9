package driver

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// claims is what the API server answers. preparedDisk prepares twoClaims.
type claims = map[types.UID]*resourceapi.ResourceClaim

func twoClaims() claims {
	return claims{
		"uid-a": claim("a", result("r", "numa-0", 2)), // gets 2-3
		"uid-b": claim("b", result("r", "numa-1", 2)), // gets 4-5
	}
}

func preparedDisk(t *testing.T) disk {
	t.Helper()
	disk := newDisk(t)
	driver := disk.open()
	for _, uid := range []types.UID{"uid-b", "uid-a"} { // b is older
		mustPrepare(t, driver, twoClaims()[uid])
	}
	return disk
}

// lines returns the findings as text.
func lines(report Report) string {
	var all []string
	for _, finding := range report {
		all = append(all, finding.String())
	}
	return strings.Join(all, "\n")
}

func TestOrphansAreReleased(t *testing.T) {
	for name, row := range map[string]struct {
		change func(claims)
		want   string // of claim a
	}{
		"needed":      {func(claims) {}, "kept claim default/a with cpus 2-3"},
		"not known":   {func(c claims) { delete(c, "uid-a") }, "kept claim default/a with cpus 2-3"},
		"unreadable":  {func(c claims) { c["uid-a"].Status.Allocation.Devices.Results[0].Device = "numa-9" }, "kept claim default/a with cpus 2-3"},
		"gone":        {func(c claims) { c["uid-a"] = nil }, "released claim default/a with cpus 2-3: the claim is gone"},
		"replaced":    {func(c claims) { c["uid-a"].UID = "uid-z" }, "released claim default/a with cpus 2-3: the claim was replaced by another with uid uid-z"},
		"deallocated": {func(c claims) { c["uid-a"].Status.Allocation = nil }, "released claim default/a with cpus 2-3: the claim is not allocated on this node any more"},
		"other node":  {func(c claims) { c["uid-a"].Status.Allocation.Devices.Results[0].Pool = "node-2" }, "released claim default/a with cpus 2-3: the claim is not allocated on this node any more"},
		"anew":        {func(c claims) { c["uid-a"] = claim("a", result("r", "numa-1", 2)) }, "released claim default/a with cpus 2-3: the claim was allocated again"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := preparedDisk(t)
			says := twoClaims()
			row.change(says)
			driver, report := disk.recover(says)
			if want := "kept claim default/b with cpus 4-5\n" + row.want; lines(report) != want {
				t.Errorf("report\n%s\nwant\n%s", lines(report), want)
			}
			assertConsistent(t, disk, driver)
			_, kept := driver.grants.Find("uid-a")
			free := driver.planner().free()
			if want := report[1].Outcome == Kept; kept != want || free.Contains(2) == want {
				t.Errorf("grant on record %t, want %t; free are %s", kept, want, free)
			}
		})
	}
}

func TestOrphanWaitsForItsPartition(t *testing.T) {
	disk := preparedDisk(t)
	gone := claims{"uid-a": nil}
	held := Held{Cgroup: "kubepods/pod1/c", CPUs: cpuset.New(3)}
	const waiting = "waiting claim default/a with cpus 2-3: the claim is gone, but cgroup kubepods/pod1/c holds cpus 3"
	for range 2 { // the second time after a restart
		driver, report := disk.recover(gone, held)
		if got := report[1].String(); got != waiting || len(report) != 2 {
			t.Errorf("report\n%s\nwant\n%s", lines(report), waiting)
		}
		assertConsistent(t, disk, driver)
	}
	driver, _ := disk.recover(gone, held)
	if report, err := driver.Observe([]Held{held}); err != nil || lines(report) != waiting {
		t.Errorf("report %s, %v, want %s", lines(report), err, waiting)
	}
	if report, err := driver.Observe(nil); err != nil || lines(report) != "released claim default/a with cpus 2-3: the claim is gone" {
		t.Errorf("report %s, %v", lines(report), err)
	}
	if report, err := driver.Observe(nil); err != nil || len(report) > 0 || !cpuset.New(2, 3).IsSubsetOf(driver.planner().free()) {
		t.Errorf("report %s, %v; free are %s", lines(report), err, driver.planner().free())
	}
	assertConsistent(t, disk, driver)
}

func TestOrphanThatIsPreparedIsNoneAnyMore(t *testing.T) {
	disk := preparedDisk(t)
	driver, _ := disk.recover(claims{"uid-a": nil}, Held{Cgroup: "c", CPUs: cpuset.New(2, 3)})
	mustPrepare(t, driver, twoClaims()["uid-a"])
	if report, err := driver.Observe(nil); err != nil || len(report) > 0 || grantOf(driver, "uid-a").CPUs() != cpuset.New(2, 3) {
		t.Errorf("report %s, %v; grants %v", lines(report), err, driver.grants)
	}
	assertConsistent(t, disk, driver)
}

func TestCPUsOfAForeignPartitionAreBlocked(t *testing.T) {
	disk := preparedDisk(t)
	// Claim b has CPUs 4-5, and no claim has 6-7. CPU 1 is reserved.
	driver, report := disk.recover(nil, Held{Cgroup: "kubepods/old", CPUs: cpuset.New(4, 5, 6)}, Held{Cgroup: "kubepods/older", CPUs: cpuset.New(1, 7)})
	want := "blocked cpus 6: cgroup kubepods/old holds them, and no claim has them\n" +
		"blocked cpus 1,7: cgroup kubepods/older holds them, and no claim has them"
	if len(report) != 4 || lines(report[2:]) != want {
		t.Errorf("report\n%s\nwant two kept and\n%s", lines(report), want)
	}
	assertConsistent(t, disk, driver)
	wanted := claim("c", result("r", "numa-1", 2))
	_, _, err := driver.Prepare(wanted, nil)
	for _, part := range []string{
		"request r: ", "not enough free cpus",
		"cpus 6 are held by cgroup kubepods/old, which belongs to no claim", "cpus 7 are held by cgroup kubepods/older, which belongs to no claim",
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one with %q", err, part)
		}
	}
	if _, err := driver.Observe([]Held{{Cgroup: "kubepods/old", CPUs: cpuset.New(4, 5)}}); err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, driver, wanted)
	if got := grantOf(driver, "uid-c").CPUs(); got != cpuset.New(6, 7) {
		t.Errorf("cpus %s, want 6-7", got)
	}
	assertConsistent(t, disk, driver)
}

// A partition that was made after the last Observe has CPUs that a claim would get.
func TestPrepareSeesPartitionsThatAreNew(t *testing.T) {
	disk := newDisk(t)
	var held []Held
	looked := 0
	config := testConfig()
	config.Held = func(cpuset.Set) ([]Held, error) { looked++; return held, nil }
	driver := disk.openWith(config)
	wanted := claim("a", result("r", "numa-1", 2))

	held = []Held{{Cgroup: "new.slice", CPUs: cpuset.New(1, 2, 4)}}
	mustPrepare(t, driver, wanted)
	if got := grantOf(driver, "uid-a").CPUs(); got != cpuset.New(6, 7) || driver.Blocked() != cpuset.New(1, 2, 4) {
		t.Errorf("cpus %s while 4 is in a partition, and %s are blocked", got, driver.Blocked())
	}
	mustPrepare(t, driver, wanted)
	if looked != 1 {
		t.Errorf("%d looks at partitions for one claim, want one, before its CPUs are on record", looked)
	}
	assertConsistent(t, disk, driver)

	if _, err := driver.Observe(nil); err != nil {
		t.Fatal(err)
	}
	held[0].CPUs = cpuset.New(4, 5)
	_, _, err := driver.Prepare(claim("b", result("r", "numa-1", 2)), nil)
	if want := "cpus 4-5 are held by cgroup new.slice, which belongs to no claim"; !errors.Is(err, ErrNotEnough) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, kept := driver.Grant("uid-b"); kept {
		t.Error("the claim that was refused has a grant")
	}

	// The claim's own partition is not in its way when it is allocated again.
	if _, err := driver.Observe(nil); err != nil {
		t.Fatal(err)
	}
	held[0].CPUs = cpuset.New(6, 7)
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 4)))
	if got := grantOf(driver, "uid-a").CPUs(); got != cpuset.New(4, 5, 6, 7) {
		t.Errorf("cpus %s, want all of the zone", got)
	}
}

// The kernel does not honour an invalid partition, but makes it valid again as soon as
// it can. So the CPUs are not free.
func TestInvalidPartitionHoldsItsCPUs(t *testing.T) {
	disk := preparedDisk(t)
	held := []Held{
		{Cgroup: "kubepods/a", CPUs: cpuset.New(2, 3), Invalid: "Cpu list in cpuset.cpus not exclusive"},
		{Cgroup: "kubepods/old", CPUs: cpuset.New(6, 7), Invalid: "No cpu available"},
	}
	driver, report := disk.recover(claims{"uid-a": nil}, held...)
	want := "kept claim default/b with cpus 4-5\n" +
		"waiting claim default/a with cpus 2-3: the claim is gone, but cgroup kubepods/a holds cpus 2-3, invalid: Cpu list in cpuset.cpus not exclusive\n" +
		"blocked cpus 6-7: cgroup kubepods/old holds them, and no claim has them"
	if lines(report) != want {
		t.Errorf("report\n%s\nwant\n%s", lines(report), want)
	}
	if _, _, err := driver.Prepare(claim("c", result("r", "numa-1", 2)), nil); err == nil {
		t.Error("CPUs of an invalid partition were given away")
	}
	assertConsistent(t, disk, driver)
	if report, err := driver.Observe(held); err != nil || len(report) != 2 {
		t.Errorf("report %s, %v, want two that wait", lines(report), err)
	}
	if _, err := driver.Observe(nil); err != nil || driver.planner().free() != driver.layout.grantable.Difference(cpuset.New(4, 5)) {
		t.Errorf("free are %s, %v", driver.planner().free(), err)
	}
}

// overlap gives the younger claim a CPUs of claim b in the checkpoint. The checksum is
// correct.
func overlap(t *testing.T, disk disk) {
	t.Helper()
	driver, err := disk.tryRead(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	younger := grantOf(driver, "uid-a")
	younger.Shares[0].Zone().CPUs = cpuset.New(5, 6)
	overlapping := ledger.NewCheckpoint("boot-1")
	overlapping.Grants = driver.grants.With(younger).Grants()
	disk.write(ledger.CheckpointName, string(overlapping.Encode()))
}

func TestYoungerOfTwoGrantsIsRefused(t *testing.T) {
	disk := preparedDisk(t)
	overlap(t, disk)
	read, err := ledger.DecodeCheckpoint([]byte(disk.files()[ledger.CheckpointName]))
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Validate(); err == nil || err.Error() != "cpus 5 are in two shares, one of claim default/b" {
		t.Errorf("the checkpoint is valid but for %v", err)
	}
	unrecovered, err := disk.tryRead(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := unrecovered.Prepare(twoClaims()["uid-a"], nil); !errors.Is(err, ErrNotRecovered) {
		t.Errorf("prepare before recovery: %v", err)
	}
	if err := unrecovered.Unprepare("uid-a"); !errors.Is(err, ErrNotRecovered) {
		t.Errorf("unprepare before recovery: %v", err)
	}
	if _, err := unrecovered.Observe(nil); !errors.Is(err, ErrNotRecovered) {
		t.Errorf("observe before recovery: %v", err)
	}
	driver, report := disk.recover(twoClaims())
	want := "kept claim default/b with cpus 4-5\nrefused claim default/a with cpus 5-6: cpus 5 are of claim default/b"
	if lines(report) != want {
		t.Errorf("report\n%s\nwant\n%s", lines(report), want)
	}
	assertConsistent(t, disk, driver)
	mustPrepare(t, driver, twoClaims()["uid-a"])
	assertConsistent(t, disk, driver)
}

// Age counts only among claims that are needed.
func TestOrphanGivesWayToAYoungerGrant(t *testing.T) {
	disk := preparedDisk(t)
	overlap(t, disk)
	driver, report := disk.recover(claims{"uid-b": nil}, Held{Cgroup: "c", CPUs: cpuset.New(5, 6)})
	want := "released claim default/b with cpus 4-5: the claim is gone\nkept claim default/a with cpus 5-6"
	if lines(report) != want {
		t.Errorf("report\n%s\nwant\n%s", lines(report), want)
	}
	assertConsistent(t, disk, driver)
}

func TestLostCheckpointComesBackFromTheSpecs(t *testing.T) {
	disk := newDisk(t)
	wanted := claim("a", consuming(result("r", "numa-0", 2), "memory=64Mi", "hugepages2Mi=4Mi"))
	before := disk.open()
	mustPrepare(t, before, claim("b", result("r", "numa-1", 2)))
	mustPrepare(t, before, wanted)
	files := disk.files()
	disk.remove(ledger.CheckpointName)
	driver, report := disk.recover(nil)
	const why = ": its CDI spec has it, the checkpoint does not"
	want := "restored claim default/b with cpus 4-5" + why + "\nrestored claim default/a with cpus 2-3" + why
	if lines(report) != want {
		t.Errorf("report\n%s\nwant\n%s", lines(report), want)
	}
	assertFiles(t, disk.files(), files)
	share := grantOf(driver, "uid-a").Shares[0].Zone()
	if share.MemoryBytes != 64<<20 || !maps.Equal(share.HugepageBytes, map[string]uint64{"2Mi": 4 << 20}) {
		t.Errorf("share %+v, want 64 MiB of memory and 4 MiB of hugepages", share)
	}
}

// While the API server is asked about a claim without containers, the kubelet may prepare it
// again. What the API server says is then older than the grant.
func TestClaimThatIsPreparedWhileItIsAskedAboutStays(t *testing.T) {
	for name, row := range map[string]struct {
		meanwhile bool
		want      int
	}{"prepared meanwhile": {true, 1}, "left alone": {false, 0}} {
		disk := newDisk(t)
		driver := disk.open()
		wanted := claim("a", result("r", "numa-0", 2))
		mustPrepare(t, driver, wanted)
		since := driver.Prepares()
		if row.meanwhile {
			mustPrepare(t, driver, wanted)
		}
		driver.Reconsider(claims{"uid-a": nil}, since)
		if _, err := driver.Observe(nil); err != nil || len(driver.Grants()) != row.want {
			t.Errorf("%s: grants %v, %v, want %d", name, driver.Grants(), err, row.want)
		}
		assertConsistent(t, disk, driver)
	}
}

func TestSpecsOfAnEarlierBootSayNothing(t *testing.T) {
	disk := preparedDisk(t)
	disk.remove(ledger.CheckpointName)
	driver := disk.openAfterBoot()
	if len(driver.grants) > 0 {
		t.Fatalf("grants %v, want a first start", driver.grants)
	}
	assertConsistent(t, disk, driver)
}

func TestLostCheckpointWithUnreadableSpecIsDamage(t *testing.T) {
	for name, row := range map[string]struct {
		change func(spec string) string
		want   string
	}{
		"no spec at all":   {func(string) string { return "" }, "the CDI spec has no grant"},
		"no note":          {func(s string) string { return strings.Replace(s, "dra.numa/grant", "other/key", 1) }, "the CDI spec has no grant"},
		"other CPUs":       {func(s string) string { return strings.Replace(s, `cpus\":\"2-3`, `cpus\":\"2-4`, 1) }, "checksum"},
		"of a newer one":   {func(s string) string { return strings.Replace(s, `version\":1`, `version\":9`, 1) }, "written by another build"},
		"of another claim": {nil, "the CDI spec has the grant of another claim"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := preparedDisk(t)
			spec := disk.files()[specName("uid-a")]
			changed := disk.files()[specName("uid-b")]
			if row.change != nil {
				changed = row.change(spec)
			}
			if changed == spec {
				t.Fatalf("nothing to change in %s", spec)
			}
			disk.write(specName("uid-a"), changed)
			checkpoint := disk.files()[ledger.CheckpointName]
			disk.remove(ledger.CheckpointName)
			files := disk.files()
			_, err := disk.tryOpen(testConfig())
			for _, part := range []string{row.want, specName("uid-a"), "the checkpoint is missing", "drain the node"} {
				if !ledger.GrantsUnknown(err) || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want one of a record that cannot be used, with %q", err, part)
				}
			}
			assertFiles(t, disk.files(), files)
			// With a checkpoint, the spec is simply written again.
			disk.write(ledger.CheckpointName, checkpoint)
			assertConsistent(t, disk, disk.open())
		})
	}
}

func TestOldCheckpointPutBackIsCompletedFromTheSpecs(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 2)))
	mustPrepare(t, driver, claim("old", result("r", "numa-1", 2)))
	old := disk.files()[ledger.CheckpointName]
	if err := driver.Unprepare("uid-old"); err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, driver, claim("b", result("r", "numa-1", 2)))
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2))) // allocated again
	disk.write(ledger.CheckpointName, old)
	recovered, report := disk.recover(nil)
	// Claim b has the same order as the claim whose CPUs it got. If two claims have the
	// same order, the same one is always kept.
	want := "restored claim default/b with cpus 6-7: its CDI spec has it, the checkpoint does not\n" +
		"refused claim default/old with cpus 6-7: cpus 6-7 are of claim default/b\n" +
		"restored claim default/a with cpus 2-3: its CDI spec has it, the checkpoint does not"
	if got := lines(report); got != want {
		t.Errorf("report\n%s\nwant\n%s", got, want)
	}
	assertConsistent(t, disk, recovered)
}

// Claims have ended since the checkpoint was saved, so the orders in it say nothing. What running
// containers have counts, also against claims that only the checkpoint has.
func TestOldCheckpointTakesNothingFromRunningContainers(t *testing.T) {
	for name, row := range map[string]struct {
		saved, running resourceapi.DeviceRequestAllocationResult
	}{
		"other cpus":       {result("r", "numa-1", 2), result("r", "numa-1", 2)},
		"allocated again":  {result("r", "numa-1", 2), result("r", "numa-0", 2)},
		"another function": {functionResult("r", driveB), functionResult("r", driveA)},
	} {
		t.Run(name, func(t *testing.T) {
			disk := pciDisk(t)
			running := &Containers{Pods: make(map[types.UID]bool), AllPods: true}
			driver := disk.openWith(watched(running))
			mustPrepare(t, driver, claim("a", row.running))
			mustPrepare(t, driver, claim("b", row.saved))
			saved := disk.files()[ledger.CheckpointName]
			if err := errors.Join(driver.Unprepare("uid-a"), driver.Unprepare("uid-b")); err != nil {
				t.Fatal(err)
			}
			running.Pods["pod-1"] = true
			mustPrepare(t, driver, reserved(claim("b", row.running), "pod-1"))
			want := grantOf(driver, "uid-b")
			disk.write(ledger.CheckpointName, saved)
			driver = disk.openWith(watched(running))
			if got := grantOf(driver, "uid-b"); !got.Equal(want) {
				t.Errorf("on record is %+v, want %+v", got, want)
			}
			if left, held := driver.Grant("uid-a"); held {
				t.Errorf("on record is also %s", left)
			}
			mustPrepare(t, driver, claim("c", result("r", "numa-1", 2)))
			assertConsistent(t, disk, driver)
		})
	}
}

// A spec of this boot has the pods whose containers may run.
func TestCheckpointOfAnotherBootIsOlderThanASpec(t *testing.T) {
	disk := newDisk(t)
	wanted := reserved(claim("a", result("r", "numa-1", 2)), "pod-1")
	mustPrepare(t, disk.open(), wanted)
	saved := disk.files()[ledger.CheckpointName]
	driver := disk.openAfterBoot()
	mustPrepare(t, driver, wanted)
	want := grantOf(driver, "uid-a")
	disk.write(ledger.CheckpointName, saved)
	if got := grantOf(disk.openAfterBoot(), "uid-a"); !got.Equal(want) {
		t.Errorf("on record is %+v, want %+v", got, want)
	}
}

// The checkpoint already has what recovery decides.
func TestOrphanThatOnlyItsSpecHasIsReleased(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, twoClaims()["uid-b"])
	old := disk.files()[ledger.CheckpointName]
	mustPrepare(t, driver, twoClaims()["uid-a"])
	disk.write(ledger.CheckpointName, old)
	driver, report := disk.recover(claims{"uid-a": nil})
	if want := "kept claim default/b with cpus 4-5\nreleased claim default/a with cpus 2-3: the claim is gone"; lines(report) != want {
		t.Errorf("report\n%s\nwant\n%s", lines(report), want)
	}
	assertConsistent(t, disk, driver)
}

func TestAmountsAreOnRecord(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	wanted := claim("a", consuming(result("r", "numa-0", 2), "memory=1Gi", "hugepages2Mi=4Mi", "hugepages1Gi=0", "groupKafka=1", "example.com/bandwidth=5"))
	mustPrepare(t, driver, wanted)
	want := []byte(`"memoryBytes":1073741824,"hugepageBytes":{"2Mi":4194304}}}]`)
	if text := []byte(disk.files()[ledger.CheckpointName]); !bytes.Contains(text, want) {
		t.Errorf("checkpoint %s, want %s", text, want)
	}
	for _, amount := range []string{"memory=-1", "hugepages2Mi=1e30", "bandwidth=5", "dra.numa/ways=1", "dra.numa/cpu=2", "groupKafka=2"} {
		wrong := claim("b", consuming(result("r", "numa-1", 2), amount))
		if _, _, err := driver.Prepare(wrong, nil); err == nil || !strings.Contains(err.Error(), "consumedCapacity ") {
			t.Errorf("%s: error %v", amount, err)
		}
	}
}

func TestGrantsAreListedByAge(t *testing.T) {
	disk := preparedDisk(t)
	driver, err := disk.tryRead(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	grants := driver.Grants()
	if len(grants) != 2 || grants[0].Name != "b" || grants[0].Order != 1 || grants[1].Order != 2 {
		t.Errorf("grants %+v, want b, then a", grants)
	}
}

func TestOpenRefusesUnusableCheckpoint(t *testing.T) {
	intact := preparedDisk(t).files()[ledger.CheckpointName]
	for name, row := range map[string]struct {
		data  string
		wraps error
		want  string
	}{
		"newer":   {strings.Replace(intact, `"version":1`, `"version":2`, 1), ledger.ErrOtherBuild, "version 2, this build reads"},
		"empty":   {"", ledger.ErrDamaged, "drain the node, delete the file"},
		"corrupt": {strings.Replace(intact, "4-5", "4-6", 1), ledger.ErrDamaged, "checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := newDisk(t)
			path := filepath.Join(disk.state.Name(), ledger.CheckpointName)
			disk.write(ledger.CheckpointName, row.data)
			_, err := disk.tryOpen(testConfig())
			if !errors.Is(err, row.wraps) || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %v with %q and the path", err, row.wraps, row.want)
			}
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("error %q is not one line", err)
			}
			if now := files.Read(t, path); now != row.data {
				t.Errorf("the file was touched: %q", now)
			}
		})
	}
}
