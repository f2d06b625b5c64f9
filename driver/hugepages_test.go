package driver

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// withHugepages is a claim for 2 MiB hugepages of numa-1.
func withHugepages(name, amount string) *resourceapi.ResourceClaim {
	part := result("r", "numa-1", 0)
	part.ConsumedCapacity["hugepages2Mi"] = resource.MustParse(amount)
	return claim(name, part)
}

func TestClaimsGetOnlyHugepagesThatAreFree(t *testing.T) {
	disk := newDisk(t)
	config := testConfig()
	var now Hugepages
	config.Hugepages = func(nodes cpuset.Set) (Hugepages, error) {
		if nodes != cpuset.New(1) {
			t.Errorf("asked for NUMA nodes %s, want 1", nodes)
		}
		return now, nil
	}
	driver, err := disk.tryOpen(config)
	if err != nil {
		t.Fatal(err)
	}
	free := func(bytes uint64) { now.Free = map[int]map[string]uint64{1: {"2Mi": bytes}} }
	used := func(name string, bytes uint64) {
		now.Used = map[types.UID]map[int]map[string]uint64{types.UID("uid-" + name): {1: {"2Mi": bytes}}}
	}
	expect := func(claim *resourceapi.ResourceClaim, want string) {
		t.Helper()
		_, _, err := driver.Prepare(claim, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("claim %s: %v, want %q", claim.Name, err, want)
		}
	}
	free(16 << 20) // the whole pool
	expect(withHugepages("a", "8Mi"), "")
	expect(withHugepages("b", "4Mi"), "") // a has used none yet
	used("a", 8<<20)
	free(4 << 20) // a has its 8 MiB, and a pod without a claim has 4
	expect(withHugepages("c", "4Mi"), "request r: NUMA node 1 has 4Mi of hugepages 2Mi free, the claim needs 4Mi: pods without a claim, or programs of the host, use others; claims that have not used theirs yet: default/b 4Mi")
	expect(withHugepages("a", "8Mi"), "") // the kubelet asks again: its container may have them
	free(2 << 20)
	if err := driver.Unprepare("uid-b"); err != nil {
		t.Fatal(err)
	}
	expect(withHugepages("c", "4Mi"), "has 2Mi of hugepages 2Mi free, the claim needs 4Mi: pods without a claim, or programs of the host, use others")
	free(4 << 20)
	expect(withHugepages("c", "4Mi"), "")
	expect(claim("cpus", result("r", "numa-1", 2)), "") // asks for none
}

func TestAPoolThatShrinksIsAFault(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, withHugepages("a", "8Mi"))
	look := func() (taint, problem string) {
		publication := driver.Publish(sound, cpuset.Set{})
		for _, device := range publication.Devices {
			if device.Name == "numa-1" && len(device.Taints) > 0 {
				taint = device.Taints[0].Value
			}
		}
		return taint, strings.Join(publication.Problems["numa-1"], "")
	}
	if taint, problem := look(); taint+problem != "" {
		t.Errorf("taint %q, problem %q, want none", taint, problem)
	}
	machine := testMachine()
	machine.Zones[1].Hugepages[0].TotalPages = 3
	driver.SetMachine(machine)
	want := "claim default/a: NUMA node 1 has 6Mi of hugepages 2Mi, but claims hold 8Mi"
	if taint, problem := look(); taint != deviceclasses.FaultHugepages || problem != want {
		t.Errorf("taint %q, problem %q, want %q", taint, problem, want)
	}
}
