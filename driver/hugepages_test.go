package driver

import (
	"reflect"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// withHugepages is a claim for 2 MiB hugepages of numa-1.
func withHugepages(name, amount string) *resourceapi.ResourceClaim {
	return claim(name, consuming(result("r", "numa-1", 0), "hugepages2Mi="+amount))
}

// podWith is a pod of claims that has hugepages, by NUMA node and size.
func podWith(amounts map[int]map[string]uint64, claims ...types.UID) PodHugepages {
	pod := PodHugepages{Claims: claims, Sizes: map[string]HugepagesUse{"2Mi": {OnNode: map[int]uint64{}}, "1Gi": {OnNode: map[int]uint64{}}}}
	for node, sizes := range amounts {
		for size, bytes := range sizes {
			use := pod.Sizes[size]
			use.Bytes += bytes
			use.OnNode[node] += bytes
			pod.Sizes[size] = use
		}
	}
	return pod
}

func TestClaimsGetOnlyHugepagesThatAreFree(t *testing.T) {
	disk := newDisk(t)
	config := testConfig()
	var now Hugepages
	var asked map[string][]string
	config.Hugepages = func(nodes cpuset.Set, pods map[string][]string) (Hugepages, error) {
		if nodes != cpuset.New(1) {
			t.Errorf("asked for NUMA nodes %s, want 1", nodes)
		}
		asked = pods
		return now, nil
	}
	driver, err := disk.tryOpen(config)
	if err != nil {
		t.Fatal(err)
	}
	free := func(bytes uint64) { now.Free = map[int]map[string]uint64{1: {"2Mi": bytes}} }
	used := func(name string, bytes uint64) {
		now.Pods = []PodHugepages{podWith(map[int]map[string]uint64{1: {"2Mi": bytes}}, types.UID("uid-"+name))}
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
	expect(reserved(withHugepages("c", "4Mi"), "pod-1", "pod-2"), "")
	expect(withHugepages("d", "16Mi"), "has 4Mi of hugepages 2Mi free")
	if want := map[string][]string{"pod-1": {"uid-c"}, "pod-2": {"uid-c"}}; !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for pods %v, want %v", asked, want)
	}
	expect(claim("cpus", result("r", "numa-1", 2)), "") // asks for none
}

// Reserved pages are kept until programs without a claim have used as many.
func TestClaimsDoNotGetReservedHugepages(t *testing.T) {
	config := testConfig()
	config.ReservedMemory = zones.Reservations{{Size: "2Mi", Bytes: 4 << 20}}
	var now Hugepages
	config.Hugepages = func(cpuset.Set, map[string][]string) (Hugepages, error) { return now, nil }
	driver, err := newDisk(t).tryOpen(config)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(free, used uint64, claim *resourceapi.ResourceClaim, want string) {
		t.Helper()
		now.Total, now.Free = map[int]map[string]uint64{1: {"2Mi": 16 << 20}}, map[int]map[string]uint64{1: {"2Mi": free}}
		now.Pods = []PodHugepages{podWith(map[int]map[string]uint64{1: {"2Mi": used}}, "uid-a")}
		_, _, err := driver.Prepare(claim, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("claim %s with %d bytes free: %v, want %q", claim.Name, free, err, want)
		}
	}
	const why = ": pods without a claim, or programs of the host, use others; reserved and not used yet: "
	expect(16<<20, 0, withHugepages("a", "14Mi"), "has 16Mi of hugepages 2Mi free, the claim needs 14Mi"+why+"4Mi")
	expect(14<<20, 0, withHugepages("a", "12Mi"), "")
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	expect(12<<20, 0, withHugepages("a", "8Mi"), "")    // all reserved pages are used
	expect(8<<20, 4<<20, withHugepages("b", "4Mi"), "") // 4 MiB of the used ones are those of a
	expect(10<<20, 4<<20, withHugepages("c", "2Mi"), "has 10Mi of hugepages 2Mi free, the claim needs 2Mi"+why+"2Mi; claims that have not used theirs yet: default/a 4Mi, default/b 4Mi")
	expect(10<<20, 6<<20, withHugepages("c", "2Mi"), why+"4Mi; claims")
}

func TestAPoolThatShrinksIsAFault(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, withHugepages("a", "8Mi"))
	look := func() (taint, problem, missing string) {
		publication := driver.Publish(sound, cpuset.Set{})
		for _, device := range publication.Devices {
			if device.Name == "numa-1" && len(device.Taints) > 0 {
				taint = device.Taints[0].Value
			}
		}
		return taint, strings.Join(publication.Problems["numa-1"], ""), publication.MissingHugepages["numa-1"]
	}
	if taint, problem, missing := look(); taint+problem+missing != "" {
		t.Errorf("taint %q, problem %q, missing %q, want none", taint, problem, missing)
	}
	machine := testMachine()
	machine.Zones[1].Hugepages[0].TotalPages = 3
	driver.SetMachine(machine)
	want := "NUMA node 1 has 6Mi of hugepages 2Mi, but claims hold 8Mi"
	if taint, problem, missing := look(); taint != deviceclasses.FaultHugepages || problem != "claim default/a: "+want || missing != want {
		t.Errorf("taint %q, problem %q, missing %q, want %q", taint, problem, missing, want)
	}
	machine.Zones[1].Hugepages = []numa.Hugepages{{PageBytes: 1 << 30, TotalPages: 1}}
	driver.SetMachine(machine)
	mustPrepare(t, driver, claim("b", consuming(result("r", "numa-1", 0), "hugepages1Gi=2Gi")))
	want = "NUMA node 1 has 1Gi of hugepages 1Gi, but claims hold 2Gi; NUMA node 1 has 0 of hugepages 2Mi, but claims hold 8Mi"
	if _, _, missing := look(); missing != want {
		t.Errorf("missing %q, want %q", missing, want)
	}
}
