package deviceclasses

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// This file is the driver's vocabulary: it has each name that appears in
// ResourceSlices, claims and node configurations, once. Package cdi/pin must not import
// this package; a test checks that both use the same words. The values of configuration
// fields are next to the fields. Of these, zones publish the values of Exclusivity.

// DriverName is the name of the driver in ResourceSlices, claims and sockets, and the
// domain of its own attributes and taints. ResourceSlices have its attributes without the
// domain.
const DriverName = "dra.numa"

// Attributes of zones and caches. PCI functions have AttributeKind, AttributeSocket and the
// attributes of the NUMA node, too. [Attributes] says what each one means.
const (
	AttributeKind           resourceapi.QualifiedName = "kind"
	AttributeSocket         resourceapi.QualifiedName = "socket"
	AttributeThreadsPerCore resourceapi.QualifiedName = "threadsPerCore"
	AttributeCoreType       resourceapi.QualifiedName = "coreType"
	AttributeExclusivity    resourceapi.QualifiedName = "exclusivity"
	AttributeMemoryTier     resourceapi.QualifiedName = "memoryTier"
	AttributeNearest        resourceapi.QualifiedName = "nearest"
	AttributeMadeUp         resourceapi.QualifiedName = "madeUp"
	AttributeL3             resourceapi.QualifiedName = "l3"
	AttributePool           resourceapi.QualifiedName = "pool"
	AttributeDefaultMaxWays resourceapi.QualifiedName = "defaultMaxWays"
	AttributeNUMANode                                 = deviceattribute.StandardDeviceAttributeNUMANode
	AttributeNUMANodeNet    resourceapi.QualifiedName = "dra.net/numaNode"
	AttributeNUMANodeAMD    resourceapi.QualifiedName = "gpu.amd.com/numaNode"
)

// Attributes of PCI functions.
const (
	AttributePCIBusID                                   = deviceattribute.StandardDeviceAttributePCIBusID
	AttributePCIeRoot                                   = deviceattribute.StandardDeviceAttributePCIeRoot
	AttributeIOMMUGroup       resourceapi.QualifiedName = "iommuGroup"
	AttributePCIeSpeed        resourceapi.QualifiedName = "pcieSpeedMTps"
	AttributePCIeWidth        resourceapi.QualifiedName = "pcieWidth"
	AttributeVendorID         resourceapi.QualifiedName = "vendorID"
	AttributeDeviceID         resourceapi.QualifiedName = "deviceID"
	AttributeClass            resourceapi.QualifiedName = "class"
	AttributeVendor           resourceapi.QualifiedName = "vendor"
	AttributeProduct          resourceapi.QualifiedName = "product"
	AttributeDriver           resourceapi.QualifiedName = "driver"
	AttributeVFIO             resourceapi.QualifiedName = "vfio"
	AttributeVirtualFunction  resourceapi.QualifiedName = "virtualFunction"
	AttributePhysicalFunction resourceapi.QualifiedName = "physicalFunction"
)

// Attributes of some kinds of PCI functions.
const (
	AttributeModel             resourceapi.QualifiedName = "model"
	AttributeUUID              resourceapi.QualifiedName = "uuid"
	AttributeGPUMemory         resourceapi.QualifiedName = "memoryMiB"
	AttributeArchitecture      resourceapi.QualifiedName = "architecture"
	AttributeComputeCapability resourceapi.QualifiedName = "computeCapability"
	AttributeMIG               resourceapi.QualifiedName = "mig"
	AttributeNVLink            resourceapi.QualifiedName = "nvlink"
	AttributeRenderNode        resourceapi.QualifiedName = "renderNode"
	AttributeInterface         resourceapi.QualifiedName = "interface"
	AttributeLinkSpeed         resourceapi.QualifiedName = "linkMbps"
	AttributeRDMA              resourceapi.QualifiedName = "rdma"
	AttributeRDMADevice        resourceapi.QualifiedName = "rdmaDevice"
	AttributeNamespaces        resourceapi.QualifiedName = "namespaces"
)

// FullName returns the name of an attribute with its domain, as selectors, constraints and
// the metadata in a container have it: dra.numa/socket. The constants are the names that
// this driver publishes.
func FullName(name resourceapi.QualifiedName) resourceapi.FullyQualifiedName {
	return spelling.FullName(DriverName, name)
}

// Reading returns the CEL expression that reads an attribute:
// device.attributes["dra.numa"].kind.
func Reading(name resourceapi.QualifiedName) string {
	domain, id, _ := strings.Cut(string(FullName(name)), "/")
	return fmt.Sprintf("device.attributes[%q].%s", domain, id)
}

// ReadingOr returns the CEL expression that reads an attribute which devices may lack:
// device.attributes["dra.numa"].?socket.orValue(-1). The fallback is CEL, too.
func ReadingOr(name resourceapi.QualifiedName, fallback string) string {
	domain, id, _ := strings.Cut(string(FullName(name)), "/")
	return fmt.Sprintf("device.attributes[%q].?%s.orValue(%s)", domain, id, fallback)
}

// Attribute returns an attribute of a device of this driver; the zero value if the device
// lacks it. It also knows devices whose attributes have the driver's domain in their names,
// as older builds published them: they are in support bundles, and in a cluster until the
// daemons of all nodes are new.
func Attribute(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, name resourceapi.QualifiedName) resourceapi.DeviceAttribute {
	value, _ := spelling.Attribute(DriverName, attributes, FullName(name))
	return value
}

// NUMANodeAttributes are the keys under which drivers publish the NUMA node of a device.
// Publishing all of them lets one claim align devices of drivers that share no key. A
// NodeConfig can replace all but the first.
func NUMANodeAttributes() []resourceapi.QualifiedName {
	return []resourceapi.QualifiedName{AttributeNUMANode, AttributeNUMANodeNet, AttributeNUMANodeAMD}
}

// The kinds of devices.
const (
	KindZone     = "zone"
	KindIsolated = "isolated" // CPUs of the boot parameter isolcpus=; only claims that name this kind get them
	KindCache    = "cache"    // a pool of a level-3 cache

	KindGPU  = string(numa.GPUFunction)   // display controllers and processing accelerators
	KindNIC  = string(numa.NICFunction)   // network controllers, including InfiniBand
	KindNVMe = string(numa.NVMeFunction)  // NVMe drives
	KindPCI  = string(numa.OtherFunction) // everything else except bridges
)

// ZoneKinds returns the kinds of devices that have CPUs or memory for claims.
func ZoneKinds() []string { return []string{KindZone, KindIsolated} }

// FunctionKinds returns the kinds of PCI functions, in the order in which they are published.
func FunctionKinds() []string { return []string{KindGPU, KindNIC, KindNVMe, KindPCI} }

// IsZoneKind reports whether devices of the kind have CPUs or memory for claims.
func IsZoneKind(kind string) bool { return slices.Contains(ZoneKinds(), kind) }

// Capacities of zones, as zones publish them. Up to Kubernetes 1.37, a claim has to spell
// a capacity exactly like this, without the driver's domain; package capacity knows the
// other spelling.
const (
	CapacityCPU    resourceapi.QualifiedName = "cpu"
	CapacityMemory resourceapi.QualifiedName = "memory"

	// CapacityHugepagesPrefix is followed by a size: hugepages2Mi, where a pod spec says
	// hugepages-2Mi, because the name of a capacity is a C identifier.
	CapacityHugepagesPrefix = "hugepages"

	// CapacityGroupPrefix is followed by the name of a group of the NodeConfig, with a capital:
	// of groupKafka, each zone has 1.
	CapacityGroupPrefix = "group"
)

// GroupCapacity returns the capacity of a group of the NodeConfig.
func GroupCapacity(group string) resourceapi.QualifiedName {
	return resourceapi.QualifiedName(CapacityGroupPrefix + strings.ToUpper(group[:1]) + group[1:])
}

// Values of AttributePool. Claims cannot ask for the other pools of a cache.
const (
	PoolGuaranteed = ways.Guaranteed
	PoolBestEffort = ways.BestEffort
	PoolShared     = ways.Shared
)

// ClaimPools returns the values of AttributePool.
func ClaimPools() []string { return []string{PoolGuaranteed, PoolBestEffort, PoolShared} }

// Capacities of caches, as devices publish them.
const (
	CapacityWays             resourceapi.QualifiedName = "ways"             // of a claim for itself; in the pool besteffort the minimum
	CapacityClasses          resourceapi.QualifiedName = "classes"          // classes of the kernel (CLOSIDs), one for each claim
	CapacityBandwidthPercent resourceapi.QualifiedName = "bandwidthPercent" // limit of each core of the claim
	CapacityBandwidthMBps    resourceapi.QualifiedName = "bandwidthMBps"    // limit of the claim, in megabytes per second
	CapacityMembers          resourceapi.QualifiedName = "members"          // claims that have the same ways, in the pool shared only
)

// CacheCapacities returns the names of all capacities of caches.
func CacheCapacities() []resourceapi.QualifiedName {
	return []resourceapi.QualifiedName{CapacityWays, CapacityClasses, CapacityBandwidthPercent, CapacityBandwidthMBps, CapacityMembers}
}

// Scopes of a share: which cgroup has its CPUs to itself.
const (
	ScopeContainer = "container" // that of the container: one container at a time uses them
	ScopePod       = "pod"       // that of the pod: all containers of the pod use them
	ScopeShared    = "shared"    // no cgroup
)

// NoCoreType is the core type of a zone without CPUs.
const NoCoreType = "none"

// CoreTypes returns the core types of zones with CPUs.
func CoreTypes() []string {
	return []string{string(numa.StandardCores), string(numa.PerformanceCores), string(numa.EfficientCores), string(numa.MixedCores)}
}

// TaintFault is the key of the taint of a device that no new claim should get. Its
// effect is NoSchedule. Its value is the name of a [Fault] that taints.
const TaintFault = DriverName + "/fault"

// Names of faults. [Faults] has where each is said.
const (
	FaultNotReady         = "not-ready"             // of a node: the daemon does not serve it, until an administrator acts
	FaultModeLost         = "mode-lost"             // of a node: less than before keeps other tasks off the CPUs of claims
	FaultPaused           = "publishing-paused"     // of a node: an administrator has paused its publishing
	FaultUnmet            = "setting-unmet"         // of a node: it does not carry out a setting of its NodeConfig
	FaultUnexplained      = "cpusets-unexplained"   // of a node: another program gives containers cpusets
	FaultSuspect          = "cpu-driver-suspected"  // of a node: another driver may give out CPUs of claims
	FaultLeftOut          = "device-left-out"       // of a node: another driver gives out a device, or memory of zones
	FaultHugepages        = "hugepages-missing"     // of a zone: its pools have fewer hugepages than claims hold
	FaultBlocked          = "blocked"               // of a zone: partitions of other programs hold all of its CPUs
	FaultNodeOffline      = "numa-node-offline"     // of a zone: a NUMA node of a claim is offline
	FaultCPUsOffline      = "cpus-offline"          // of a zone: CPUs of a claim are offline
	FaultPartitionInvalid = "partition-invalid"     // of a zone: the kernel does not honour a claim's partition there
	FaultMisplaced        = "container-misplaced"   // of a claim without a partition: a container does not have its CPUs or NUMA nodes
	FaultNotPinned        = "container-not-pinned"  // of a claim: a container runs, and no hook has pinned it
	FaultPolicyIgnored    = "memory-policy-ignored" // of a claim: a container runs without its memory policy
	FaultRefused          = "container-refused"     // of a claim: the hook did not let a container start
	FaultWays             = "ways-missing"          // of a cache: the kernel does not give claims the ways that they hold
	FaultGone             = "gone"                  // of a PCI function: it does not exist any more, and a claim still has it
	FaultDead             = "dead"                  // of a PCI function: its NVMe driver has given it up
	FaultUnhealthy        = "unhealthy"             // of a PCI function: the vendor's library reports a fault
	FaultFatalErrors      = "fatal-errors"          // of a PCI function: its PCIe link has had fatal errors
	FaultInUse            = "in-use"                // of a PCI function: its claim has ended, and containers of the claim may still run
	FaultNotRestored      = "not-restored"          // of a PCI function: it does not get the kernel driver back that it had before a claim
	FaultNodesTaken       = "device-nodes-taken"    // of a PCI function: it has other device nodes, which containers of another claim may have
)

// TaintDrain is the key of the taint of a device that an administrator drains. The driver
// never sets it.
const TaintDrain = DriverName + "/drain"

// TaintUninstall is the key of the taint of all devices while the driver is uninstalled.
const TaintUninstall = DriverName + "/uninstall"

// Conditions of a device in a claim's status.
const (
	ConditionReady        = "Ready"        // prepared: containers may start
	ConditionExclusive    = "Exclusive"    // no other task runs on the claim's CPUs; the reason says what ensures that, or why nothing does
	ConditionMemoryPolicy = "MemoryPolicy" // containers have the memory policy that the claim asks for; absent if it asks for none
)
