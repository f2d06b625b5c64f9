package driver

import (
	"reflect"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestConfigurationOfARequest(t *testing.T) {
	other := fromClaim(`"partition": "none"`)
	other.Opaque.Driver = "gpu.example.com"
	none := resourceapi.DeviceAllocationConfiguration{Source: resourceapi.AllocationConfigSourceClaim}
	list := func(configs ...resourceapi.DeviceAllocationConfiguration) []resourceapi.DeviceAllocationConfiguration {
		return configs
	}
	for name, row := range map[string]struct {
		request string
		configs []resourceapi.DeviceAllocationConfiguration
		want    deviceclasses.ZoneConfig
	}{
		"nothing":             {"r", nil, deviceclasses.ZoneConfig{}},
		"of others":           {"r", list(other, none), deviceclasses.ZoneConfig{}},
		"of the class":        {"r", list(fromClass(`"partition": "isolated"`)), deviceclasses.ZoneConfig{Partition: "isolated"}},
		"claim over class":    {"r", list(fromClaim(`"partition": "none"`), fromClass(`"partition": "isolated"`)), deviceclasses.ZoneConfig{Partition: "none"}},
		"field by field":      {"r", list(fromClass(`"partition": "isolated", "mixed": true`), fromClaim(`"memoryPolicy": "bind"`)), deviceclasses.ZoneConfig{Partition: "isolated", Mixed: true, MemoryPolicy: "bind"}},
		"false over true":     {"r", list(fromClass(`"mixed": true`), fromClaim(`"mixed": false`)), deviceclasses.ZoneConfig{}},
		"empty over a value":  {"r", list(fromClass(`"partition": "none"`), fromClaim(`"partition": ""`)), deviceclasses.ZoneConfig{}},
		"last one":            {"r", list(fromClaim(`"partition": "none"`), fromClaim(`"partition": "root"`)), deviceclasses.ZoneConfig{Partition: "root"}},
		"of this request":     {"r", list(fromClaim(`"mixed": true`, "q", "r")), deviceclasses.ZoneConfig{Mixed: true}},
		"of another":          {"r", list(fromClaim(`"mixed": true`, "q")), deviceclasses.ZoneConfig{}},
		"of a subrequest":     {"r/s", list(fromClaim(`"mixed": true`, "r/s")), deviceclasses.ZoneConfig{Mixed: true}},
		"of another sub":      {"r/s", list(fromClaim(`"mixed": true`, "r/t", "s")), deviceclasses.ZoneConfig{}},
		"of all subrequests":  {"r/s", list(fromClaim(`"mixed": true`, "r")), deviceclasses.ZoneConfig{Mixed: true}},
		"of what looks alike": {"rs", list(fromClaim(`"mixed": true`, "r")), deviceclasses.ZoneConfig{}},
	} {
		_, config, err := deviceclasses.ConfigOf(row.request, "c", row.configs)
		got := config.Zone
		got.TypeMeta = row.want.TypeMeta
		if err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, row.want)
		}
	}
}

func TestConfigurationThatNobodyKnowsIsRefused(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	want := disk.files()
	for parameters, problem := range map[string]string{
		`{"apiVersion": "dra.numa/v1alpha1", "kind": "ClassConfig"}`:                             `kind: "ClassConfig", allowed are ZoneConfig, DeviceConfig, CacheConfig, PerformanceConfig`,
		`{"apiVersion": "dra.numa/v2", "kind": "ZoneConfig"}`:                                    `apiVersion: "dra.numa/v2", allowed is dra.numa/v1alpha1`,
		`{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig", "partition": "member"}`:       `partition: "member", allowed are root, isolated, none`,
		`{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig", "cores": "whole", "mixed":1}`: `mixed: want a bool, not a number`,
		``: `unexpected end of JSON input`,
	} {
		// This holds for a request without a device of this driver, too.
		wanted := configured(claim("a", result("r", "numa-1", 2)), fromClass(`"mixed": true`), opaque(resourceapi.AllocationConfigSourceClaim, parameters, "q"))
		_, _, err := driver.Prepare(wanted, nil)
		if err == nil || err.Error() != "status.allocation.devices.config[1].opaque.parameters: "+problem {
			t.Errorf("%s: error %v, want %s", parameters, err, problem)
		}
		assertFiles(t, disk.files(), want)
	}
}

// The scheduler copies the configuration of the class into the allocation, but not the
// name of the class.
func TestLockedFieldsAreRefusedByName(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	want := disk.files()
	locked := fromClass(`"partition": "isolated", "locked": ["partition"]`)
	of := func(requests []resourceapi.DeviceRequest, claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
		claim.Spec.Devices.Requests = requests
		return claim
	}
	exactly := []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "quiet"}}}
	alternatives := []resourceapi.DeviceRequest{
		{Name: "q", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "b", DeviceClassName: "other"}}},
		{Name: "r", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "a", DeviceClassName: "other"}, {Name: "b", DeviceClassName: "quiet"}}},
	}
	for request, requests := range map[string][]resourceapi.DeviceRequest{"r": exactly, "r/b": alternatives} {
		wanted := of(requests, configured(claim("a", result(request, "numa-1", 2)), fromClaim(`"partition": "none"`, "r"), locked))
		_, _, err := driver.Prepare(wanted, nil)
		if problem := `status.allocation.devices.results[0] (request "` + request + `", device "numa-1"): ` +
			`partition: "none", allowed is "isolated", because DeviceClass "quiet" locks this field`; err == nil || err.Error() != problem {
			t.Errorf("%s: error %v, want %s", request, err, problem)
		}
	}
	_, _, err := driver.Prepare(configured(claim("a", result("r", "numa-1", 2)), locked, fromClaim(`"locked": ["partition"]`)), nil)
	if problem := "status.allocation.devices.config[1].opaque.parameters: locked: only a DeviceClass can lock fields"; err == nil || err.Error() != problem {
		t.Errorf("error %v, want %s", err, problem)
	}
	assertFiles(t, disk.files(), want)
	mustPrepare(t, driver, of(exactly, configured(claim("a", result("r", "numa-1", 2)), locked, fromClaim(`"cores": "thread", "partition": "isolated"`))))
	if got := grantOf(driver, "uid-a").Shares[0].Zone().Partition; got != "isolated" {
		t.Errorf("partition %s", got)
	}
}

// Containers may already run with the first configuration.
func TestPreparedAgainAClaimKeepsItsConfiguration(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	config := fromClaim(`"partition": "isolated", "memoryPolicy": "interleave"`, "r")
	first := configured(claim("a", result("r", "numa-1", 2), counted(result("m", "numa-2", 0))), config, fromClaim(`"mixed": true, "memoryPolicy": "bind"`, "m"))
	mustPrepare(t, driver, first)
	before := disk.files()
	files.Contains(t, before[ledger.CheckpointName], `"partition":"isolated"`, `"memoryPolicy":"interleave"`, `"memoryPolicy":"bind"`)
	if strings.Contains(before[ledger.CheckpointName], "mixed") {
		t.Errorf("checkpoint %s: memory is mixed", before[ledger.CheckpointName])
	}
	driver = disk.open()
	mustPrepare(t, driver, first)
	assertFiles(t, disk.files(), before)
	first.Status.Allocation.Devices.Config = nil
	mustPrepare(t, driver, first)
	assertFiles(t, disk.files(), before)
	assertConsistent(t, disk, driver)
}

func TestMixedClaimIsToldTheSharedPool(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, claim("other", result("r", "numa-1", 2))) // 4-5
	wanted := configured(claim("a", counted(result("r", "numa-1", 1)), result("q", "numa-0", 2)), fromClaim(`"mixed": true`, "r"))
	mustPrepare(t, driver, wanted)
	shares := grantOf(driver, "uid-a").Shares
	if want := cpuset.New(0, 1, 7); shares[0].Zone().SharedCPUs != want || !shares[1].Zone().SharedCPUs.IsEmpty() {
		t.Errorf("shared with cpus %s and %s, want %s and none", shares[0].Zone().SharedCPUs, shares[1].Zone().SharedCPUs, want)
	}
	spec := disk.files()[specName("uid-a")]
	files.Contains(t, spec, `"DRA_NUMA_SHARED_CPUS_R=0-1,7"`, `"DRA_NUMA_CPUS_R=6"`, `"DRA_NUMA_CPUS_Q=2-3"`, `"--cpus=",`)
	if err := driver.Unprepare("uid-other"); err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, driver, wanted) // the shared pool is larger now
	if disk.files()[specName("uid-a")] != spec {
		t.Errorf("prepared again, the spec changed to %s", disk.files()[specName("uid-a")])
	}
	for _, uid := range []types.UID{"uid-a", "uid-nobody"} {
		if err := driver.Unprepare(uid); err != nil {
			t.Error(err)
		}
	}
}
