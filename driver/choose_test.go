package driver

import (
	"errors"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// fullNode returns a driver whose zone 0 has two L3s of 8 cores; core i has CPUs i and
// 128+i. CPUs 0 and 1 are reserved. Another claim left one core of the second L3, CPUs
// 15 and 143.
func fullNode(t *testing.T) *Driver {
	t.Helper()
	disk := newDisk(t)
	disk.machine = sample.Machine(t, "epyc-2s-nps4")
	driver := disk.open()
	mustPrepare(t, driver, claim("other", result("r", "numa-0", 14)))
	return driver
}

func TestConfigurationDecidesWhichCPUs(t *testing.T) {
	const twoCores, lastCore = "2 whole cores in L3 0, the tightest with 14 free", "1 whole core in L3 1, the tightest with 2 free"
	const oneL3 = "6 whole cores and 2 cpus on broken cores in L3 0, the tightest with 14 free"
	const all = "7 whole cores and 2 cpus on broken cores because no other whole core is free in 2 L3s because none has 16 free"
	for _, row := range []struct {
		fields          string
		cpus            int64
		want, idle, why string
	}{
		{``, 4, "2-3,130-131", "", twoCores},
		{`"cores": "whole"`, 4, "2-3,130-131", "", twoCores},
		{`"cores": "thread"`, 4, "2,128-130", "", "1 whole core and 2 cpus on broken cores in L3 0, the tightest with 14 free"},
		{`"cores": "one-thread-per-core"`, 4, "2-3,130-131", "130-131", twoCores + "; 2 of the 4 cpus kept idle"},
		{`"cores": "one-thread-per-core"`, 16, "2-7,15,128-135,143", "130-135,143", all + "; 7 of the 16 cpus kept idle"},
		{`"l3": "any"`, 14, "2-7,15,130-135,143", "", "7 whole cores in 2 L3s because none has 7 whole cores free"},
		{`"l3": "prefer"`, 14, "2-7,128-135", "", oneL3},
		{`"l3": "prefer"`, 16, "2-7,15,128-135,143", "", all},
		{`"l3": "require"`, 14, "2-7,128-135", "", oneL3},
		{`"placement": "pack"`, 2, "15,143", "", lastCore},
		{`"placement": "distribute"`, 2, "15,143", "", lastCore},
		{`"placement": "spread"`, 4, "2,15,130,143", "", "2 whole cores in 2 L3s, spread evenly"},
		{`"placement": "spread", "l3": "require"`, 4, "2-3,130-131", "", twoCores},
		{`"placement": "spread", "cores": "one-thread-per-core"`, 4, "2,15,130,143", "130,143", "2 whole cores in 2 L3s, spread evenly; 2 of the 4 cpus kept idle"},
	} {
		driver := fullNode(t)
		wanted := claim("a", result("r", "numa-0", row.cpus))
		if row.fields != "" {
			configured(wanted, fromClaim(row.fields))
		}
		mustPrepare(t, driver, wanted)
		share := grantOf(driver, "uid-a").Shares[0].Zone()
		if share.CPUs.String() != row.want || share.IdleCPUs.String() != row.idle || share.Why != row.why {
			t.Errorf("%s, %d CPUs: %s, idle %s, because %q, want %s, %s, %q", row.fields, row.cpus, share.CPUs, share.IdleCPUs, share.Why, row.want, row.idle, row.why)
		}
	}
}

// The scheduler does not know about L3s, so the pod waits on its node.
func TestRequiredL3ThatIsTakenIsRefusedUntilItIsFree(t *testing.T) {
	driver := fullNode(t)
	wanted := configured(claim("a", result("r", "numa-0", 16)), fromClaim(`"l3": "require"`))
	_, _, err := driver.Prepare(wanted, nil)
	const want = "request r: select 16 cpus of zone 0, which has 14 free in one L3: not enough free cpus"
	if !errors.Is(err, pick.ErrNotEnough) || err.Error() != want {
		t.Fatalf("error %v, want %s", err, want)
	}
	if err := driver.Unprepare("uid-other"); err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, driver, wanted)
	if got := grantOf(driver, "uid-a").CPUs().String(); got != "8-15,136-143" {
		t.Errorf("cpus %s, want the second L3", got)
	}
}

// Idle CPUs belong to the claim like its other CPUs. A partition keeps other tasks off
// them. Without a partition, the container's cpuset leaves them out.
func TestIdleCPUsAreHeldAndNotRunOn(t *testing.T) {
	for exclusivity, row := range map[Exclusivity]struct{ pinned, hook string }{
		ExclusivityKernel:      {"4-7", `"--cpus=4-7"`},
		ExclusivityCooperative: {"4,6", `"--cpus=4,6"`},
	} {
		disk := newDisk(t)
		config := testConfig()
		config.Exclusivity = exclusivity
		driver, err := disk.tryOpen(config)
		if err != nil {
			t.Fatal(err)
		}
		wanted := configured(claim("a", result("r", "numa-1", 4)), fromClass(`"cores": "one-thread-per-core"`))
		devices := mustPrepare(t, driver, wanted)
		if got := driver.planner().free().String(); got != "2-3" {
			t.Errorf("%s: cpus %s are free, want 2-3", exclusivity, got)
		}
		if pinned, _ := driver.Pinned(devices[0].CDIDeviceIDs); pinned.CPUs.String() != row.pinned {
			t.Errorf("%s: the container's cpuset is %s, want %s", exclusivity, pinned.CPUs, row.pinned)
		}
		attributes := devices[0].Attributes
		if run, idle := attributes[Name+"/cpus"].StringValue, attributes[Name+"/idleCPUs"].StringValue; *run != "4,6" || *idle != "5,7" {
			t.Errorf("%s: attributes cpus %s and idleCPUs %s, want 4,6 and 5,7", exclusivity, *run, *idle)
		}
		for _, part := range []string{`"DRA_NUMA_CPUS=4,6"`, `"DRA_NUMA_IDLE_CPUS=5,7"`, row.hook} {
			if spec := disk.files()[specName("uid-a")]; !strings.Contains(spec, part) {
				t.Errorf("%s: spec %s has no %s", exclusivity, spec, part)
			}
		}
		restarted, err := disk.tryOpen(config)
		if err != nil {
			t.Fatal(err)
		}
		if got := grantOf(restarted, "uid-a").Shares[0].Zone().IdleCPUs; got != cpuset.New(5, 7) {
			t.Errorf("%s: after a restart cpus %s are idle, want 5,7", exclusivity, got)
		}
	}
}
