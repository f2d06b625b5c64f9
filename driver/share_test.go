package driver

import (
	"maps"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/runtime"
	metadata "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// KEP-5304: the attributes for a container have the same form as the published ones.
func TestAttributesOfAShareAreMetadata(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	wanted := configured(claim("a", counted(result("cpus", "numa-1", 2)), counted(result("memory", "numa-2", 0))),
		fromClaim(`"mixed": true, "memoryPolicy": "bind"`))
	prepared := mustPrepare(t, driver, wanted)
	for i, want := range []map[string]string{
		{"cpus": "4-5", "mems": "1", "partition": "none", "scope": "container", "memoryPolicy": "bind", "sharedCPUs": "0-3,6-7", "kind": "zone", "exclusivity": "kernel"},
		{"mems": "2", "memoryPolicy": "bind", "kind": "zone"},
	} {
		device := metadata.Device{Driver: Name, Pool: prepared[i].Pool, Name: prepared[i].Device, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
		for name, value := range prepared[i].Attributes {
			device.Attributes[resourceapi.QualifiedName(name)] = value
			if !strings.Contains(name, "/") {
				t.Errorf("%s has the attribute %s, want it with a domain", prepared[i].Device, name)
			}
		}
		if errs := metadata.Validate_Device(t.Context(), operation.Operation{Type: operation.Create}, nil, &device, nil); len(errs) > 0 {
			t.Error(errs)
		}
		for name, value := range want {
			got := prepared[i].Attributes[Name+"/"+name].StringValue
			if got == nil || *got != value {
				t.Errorf("%s %s is %v, want %s; there are %v", prepared[i].Device, name, got, value, slices.Sorted(maps.Keys(prepared[i].Attributes)))
			}
		}
	}
	if _, has := prepared[1].Attributes[Name+"/partition"]; has {
		t.Error("memory has a partition")
	}
	var odd cpuset.Set // every second CPU makes a long list
	for cpu := 0; cpu < 100; cpu += 2 {
		odd.Insert(cpu)
	}
	if _, has := (ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: odd, Partition: "root"}}).Attributes()[Name+"/cpus"]; has {
		t.Errorf("an attribute has %d characters", len(odd.String()))
	}
}

// configured returns the claim with these configurations, in this order.
func configured(claim *resourceapi.ResourceClaim, configs ...resourceapi.DeviceAllocationConfiguration) *resourceapi.ResourceClaim {
	claim.Status.Allocation.Devices.Config = configs
	return claim
}

// fromClaim returns a ZoneConfig with these fields for these requests.
func fromClaim(fields string, requests ...string) resourceapi.DeviceAllocationConfiguration {
	return opaque(resourceapi.AllocationConfigSourceClaim, `{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig", `+fields+`}`, requests...)
}

func fromClass(fields string, requests ...string) resourceapi.DeviceAllocationConfiguration {
	config := fromClaim(fields, requests...)
	config.Source = resourceapi.AllocationConfigSourceClass
	return config
}

func opaque(source resourceapi.AllocationConfigSource, parameters string, requests ...string) resourceapi.DeviceAllocationConfiguration {
	return resourceapi.DeviceAllocationConfiguration{
		Source: source, Requests: requests,
		DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver: Name, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
		}},
	}
}

// A kernel without partitions must not be asked for one: the container would not start.
func TestHookMakesPartitionsWhereTheKernelHasThem(t *testing.T) {
	grant := ledger.Grant{UID: "u", Shares: []ledger.Share{{Request: "r", Device: "numa-0", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(0), Partition: "isolated", Scope: ledger.ScopePod}}}}
	for by, want := range map[Exclusivity]string{
		ExclusivityKernel: "isolated pod", ExclusivityCooperative: "none container", ExclusivityNone: "none container",
	} {
		share := grant.CDIClaim(by == ExclusivityKernel).Shares[0].Kind.(*cdi.Zone)
		if got := share.Partition + " " + share.Scope; got != want {
			t.Errorf("exclusivity %s: the hook makes %s, want %s", by, got, want)
		}
	}
}
