package deviceclasses

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
)

// What is below is the driver's vocabulary: each name that appears in ResourceSlices,
// claims and node configurations, once. Package cdi/pin may not import this one and
// has a test that its words are the same. The values of configuration fields are beside
// the fields; of them, zones publish those of Exclusivity.

// DriverName is the name of the driver in ResourceSlices, claims and sockets, and the
// domain of its own attributes and taints.
const DriverName = "dra.numa"

// Attributes of zones. Those of PCI functions are in package driver/attached, with
// what they mean; AttributeKind, AttributeSocket and AttributeNUMANode are of both.
const (
	AttributeKind           resourceapi.QualifiedName = DriverName + "/kind"
	AttributeSocket         resourceapi.QualifiedName = DriverName + "/socket"
	AttributeThreadsPerCore resourceapi.QualifiedName = DriverName + "/threadsPerCore"
	AttributeCoreType       resourceapi.QualifiedName = DriverName + "/coreType"
	AttributeExclusivity    resourceapi.QualifiedName = DriverName + "/exclusivity"
	AttributeMemoryTier     resourceapi.QualifiedName = DriverName + "/memoryTier"
	AttributeL3             resourceapi.QualifiedName = DriverName + "/l3"
	AttributeNUMANode                                 = deviceattribute.StandardDeviceAttributeNUMANode
	AttributeNUMANodeNet    resourceapi.QualifiedName = "dra.net/numaNode"
	AttributeNUMANodeAMD    resourceapi.QualifiedName = "gpu.amd.com/numaNode"
)

// NUMANodeAttributes are the keys under which drivers publish the NUMA node of a
// device. Publishing all of them lets one claim align devices of drivers that share no
// key.
func NUMANodeAttributes() []resourceapi.QualifiedName {
	return []resourceapi.QualifiedName{AttributeNUMANode, AttributeNUMANodeNet, AttributeNUMANodeAMD}
}

// KindZone is the kind of a zone. The other kinds are those of package driver/attached.
const KindZone = "zone"

// Capacities of zones. A claim has to spell a capacity exactly like this, without the
// driver's domain.
const (
	CapacityCPU    resourceapi.QualifiedName = "cpu"
	CapacityMemory resourceapi.QualifiedName = "memory"

	// CapacityHugepagesPrefix is followed by a size: hugepages2Mi, where a pod spec says
	// hugepages-2Mi, because the name of a capacity is a C identifier.
	CapacityHugepagesPrefix = "hugepages"
)

// Scopes of a share: which cgroup has its CPUs to itself.
const (
	ScopeContainer = "container" // the container's: one at a time uses them
	ScopePod       = "pod"       // the pod's: all of its containers use them
	ScopeShared    = "shared"    // none
)

// NoCoreType is the core type of a zone without CPUs. The others are those of
// [numa.CoreType], which is the library's word for them.
const NoCoreType = "none"

// TaintFault is the key of the taint of a device that no new claim is to get, with the
// effect NoSchedule. Its value is one of the words below.
const TaintFault = DriverName + "/fault"

// Values of TaintFault.
const (
	FaultPartitionInvalid = "partition-invalid" // of a zone: the kernel does not honour a claim's partition there
	FaultGone             = "gone"              // of a PCI function: it is not there any more, and a claim still has it
	FaultDead             = "dead"              // its NVMe driver has given it up
	FaultUnhealthy        = "unhealthy"         // the maker's library says so
	FaultFatalErrors      = "fatal-errors"      // its PCIe link has had fatal errors
)

// Conditions of a device in a claim's status.
const (
	ConditionReady     = "Ready"     // prepared: containers may start
	ConditionExclusive = "Exclusive" // nobody else runs on the claim's CPUs; its reason says who sees to that, or why nobody does
)
