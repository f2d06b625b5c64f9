package deviceclasses

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// Fault is a row of the table of what can be wrong: where the driver says it, and how. What is
// empty is said nowhere. Health, Message and the notes are formats for what is known of it.
type Fault struct {
	Name   string // one of Fault…
	Taints bool   // its device has TaintFault with its name
	Metric string // without the namespace; those that taint have that of taints, too
	Health string // a clause of the health of its device in the status of a claim's pods

	Condition, Reason, Message string // of a device of a claim, false

	Event, Note         string // the warning on the Node or on a claim's pods; of those, %[1]s is the claim
	EventOver, NoteOver string // the normal event when it is over
	Logged              bool   // the daemon logs each event, too
}

// modeNote is the same in both directions.
const modeNote = "The exclusivity of claims on this node is %s, and was %s: %s"

var faults = []Fault{
	{Name: FaultNotReady, Metric: "not_ready", Event: "NUMADriverNotReady", EventOver: "NUMADriverReady", NoteOver: "Zones of this node are published"},
	{Name: FaultModeLost, Metric: "exclusivity_info", Event: "NUMAModeLost", Note: modeNote, EventOver: "NUMAModeRestored", NoteOver: modeNote},
	{
		Name: FaultPaused, Metric: "publishing_paused", Event: "NUMAPublishingPaused",
		Note:      "No ResourceSlices of this node are written, because %s: those that there are stay, and claims are prepared as before",
		EventOver: "NUMAPublishingResumed", NoteOver: "The node publishes its devices again", Logged: true,
	},
	{
		Name: FaultUnmet, Metric: "setting_unmet", Event: "NUMASettingUnmet", Note: "The node does not do what its NodeConfig says in %s: %s",
		EventOver: "NUMASettingsMet", NoteOver: "The node carries out all settings of its NodeConfig", Logged: true,
	},
	{
		Name: FaultUnexplained, Metric: "nri_unexplained_cpusets", Event: "NUMACpusetsUnexplained",
		Note: "Another program gives containers cpusets, and may give them the CPUs of claims: an NRI resource policy, such as balloons or topology-aware, or the kubelet. " +
			"The daemon's log names one of the containers, and kubectl numa validate the policies. Run only one of the programs on the node",
		EventOver: "NUMACpusetsExplained", NoteOver: "Claims and this driver explain the cpusets of all containers", Logged: true,
	},
	{
		Name: FaultSuspect, Event: "NUMACPUDriverSuspected",
		Note:      "driver %q publishes %s: if it gives containers CPUs of this node, claims of both drivers can get the same ones. Then name it in otherCPUDrivers, or reserve its CPUs",
		EventOver: "NUMACPUDriverGone", NoteOver: "No other driver is suspected of giving out CPUs of this node any longer", Logged: true,
	},
	{Name: FaultLeftOut, Event: "NUMADeviceLeftOut", EventOver: "NUMADevicesPublished", NoteOver: "No device is left out any longer", Logged: true},
	{
		Name: FaultHugepages, Taints: true, Health: "%s", Event: "NUMAHugepagesMissing", Note: "device %s: %s",
		EventOver: "NUMAHugepagesRestored", NoteOver: "Every zone has as many hugepages as claims hold", Logged: true,
	},
	{Name: FaultBlocked, Taints: true},
	{Name: FaultNodeOffline, Health: "NUMA node %d is offline"},
	{Name: FaultCPUsOffline, Health: "cpus %s are offline"},
	{
		Name: FaultPartitionInvalid, Taints: true, Metric: "claim_faulty", Health: "cpus %s are not exclusive: %s",
		Condition: ConditionExclusive, Reason: "PartitionInvalid", Message: "other tasks may run on the CPUs: %s",
		Event: "NUMAExclusivityLost", Note: "Other tasks may run on CPUs %[2]s of claim %[1]s: %[3]s",
		EventOver: "NUMAExclusivityRestored", NoteOver: "CPUs %[2]s of claim %[1]s are exclusive again. For at most %[4]s they were not: %[3]s",
	},
	{Name: FaultMisplaced, Metric: "claim_faulty", Health: "a container is not where it should be: %s"},
	{
		Name: FaultNotPinned, Metric: "claim_faulty", Condition: ConditionExclusive, Reason: "NotPinned", Message: "a container that uses the claim runs on any CPU: %s",
		Event: "NUMAContainerNotPinned", Note: "Container %[2]s runs on any CPU and any NUMA node, not on those of claim %[1]s: the container runtime has not run the driver's hook " +
			"(turn on CDI in the runtime, and use an OCI runtime that runs hooks), or pinning is stopped on the node",
	},
	{
		Name: FaultPolicyIgnored, Metric: "claim_faulty", Condition: ConditionMemoryPolicy, Reason: "Ignored", Message: "%s",
		Event: "NUMAMemoryPolicyIgnored", Note: "Of claim %[1]s, %[2]s",
	},
	{Name: FaultRefused, Metric: "container_refusals_total", Event: "NUMAContainerRefused", Note: "A container did not start: %[2]s"},
	{Name: FaultWays, Taints: true, Health: "%s"},
	{Name: FaultGone, Taints: true, Health: "PCI function %s is gone"},
	{Name: FaultDead, Taints: true, Health: "PCI function %s is dead: its NVMe driver has given it up"},
	{Name: FaultUnhealthy, Taints: true, Health: "PCI function %s: %s"},
	{Name: FaultFatalErrors, Taints: true, Health: "PCI function %s: the link had fatal PCIe errors, %s has counted %d since the kernel found it"},
	{Name: FaultInUse, Taints: true},
	{Name: FaultNotRestored, Taints: true},
	{Name: FaultNodesTaken, Health: "PCI function %s has other device nodes than before, which containers of another claim may have: no container of the claim can start"},
}

// Faults returns the table, which must not be changed.
func Faults() []Fault { return faults }

// FaultOf returns the row with a name; the zero value if there is none.
func FaultOf(name string) (row Fault) {
	all := Faults()
	if i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name }); i >= 0 {
		row = all[i]
	}
	return row
}

// FaultHealth returns what the health of a device says of a fault.
func FaultHealth(name string, known ...any) string {
	return fmt.Sprintf(FaultOf(name).Health, known...)
}

// FaultTaint returns the taint of a device with this fault.
func FaultTaint(name string) resourceapi.DeviceTaint {
	return resourceapi.DeviceTaint{Key: TaintFault, Value: name, Effect: resourceapi.DeviceTaintEffectNoSchedule}
}
