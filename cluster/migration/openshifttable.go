package migration

const (
	forOperator   = "it is for the operator"
	kernelOfPool  = "the kernel and tuned have it as long as the profile is there"
	ofCRIO        = "take CRI-O's annotations (cpu-load-balancing.crio.io, cpu-quota.crio.io, irq-load-balancing.crio.io and others) out of pods with claims, because CRI-O changes the same cgroups, frequencies and interrupts"
	unlikeProfile = "; either the profile or the driver, because both write to the same files"
)

var poolRows = []row{
	{"spec.autoSizingReserved", "", Stays, "the kubelet subtracts what it computes from the node's allocatable; it names no CPUs, so reservedCPUs has none of it"},
	{"spec.logLevel", "", Stays, "it is the verbosity of the kubelet"},
	{"spec.machineConfigPoolSelector", "", Replaced, "a profile of the NodeConfig has the label of the pool's nodes, if it selects one pool by its name"},
	{"spec.systemGomaxprocsBehavior", "", Stays, "it is about the threads of the kubelet and CRI-O"},
	{"spec.tlsSecurityProfile", "", Stays, "it is for the kubelet; the driver has tls.minVersion and tls.cipherSuites in the chart"},
	{"spec.kubeletConfig", "", Replaced, "its fields are listed as those of a KubeletConfiguration"},
	{"status", "", Gone, status},
}

var profileRows = []row{
	{"spec.cpu.reserved", "", Replaced, "reservedCPUs has them, and no claim gets them; if the operator leaves reservedSystemCPUs out, let kubeReserved subtract as many from the node's allocatable"},
	{"spec.cpu.isolated", "", Stays, "arguments of the kernel have them (nohz_full=, rcu_nocbs=, isolcpus=); claims get each CPU that is not reserved"},
	{"spec.cpu.balanceIsolated", "true", Stays, "the CPUs are in the zones of the driver"},
	{"spec.cpu.balanceIsolated", "false", ByHand, "the kernel isolates the CPUs at boot, so they are in no zone, but in devices of the class isolated.dra.numa, and translated pods find none: set it to true, and let claims ask for partition: isolated"},
	{"spec.cpu.offlined", "", Stays, "CPUs that are offline are in no zone"},
	{"spec.cpu.shared", "", ByHand, "with mixedCpus, reservedCPUs has them too; a claim with mixed: true also runs on all CPUs that no claim has, not on these alone"},
	{"spec.cpu.ovsDpdk", "", ByHand, "reservedCPUs has them too, so that no claim gets them; cache.groups can give them ways of their own"},
	{"spec.hardwareTuning.isolatedCpuFreq", "", ByHand, "performance.default of the NodeConfig, or a PerformanceConfig in a class, has maxFrequency" + unlikeProfile},
	{"spec.hardwareTuning.reservedCpuFreq", "", Stays, kernelOfPool + "; the driver has no frequency for reserved CPUs alone"},
	{"spec.hugepages.defaultHugepagesSize", "", Stays, "it is an argument of the kernel; the driver publishes the hugepages that each NUMA node has"},
	{"spec.hugepages.pages", "", Stays, "the kernel allocates them at boot; the driver publishes the hugepages that each NUMA node has"},
	{"spec.realTimeKernel.enabled", "", Stays, "it decides which kernel the nodes boot; the driver was tried with no real-time kernel"},
	{"spec.kernelPageSize", "", Stays, "it decides which kernel the nodes boot, and which sizes hugepages have"},
	{"spec.additionalKernelArgs", "", Stays, "they are arguments of the kernel; CPUs that isolcpus= isolates are in no zone"},
	{"spec.numa.topologyPolicy", "none", Stays, "the driver needs no topology manager"},
	{"spec.numa.topologyPolicy", "best-effort", Replaced, "webhook.translate.policy has it, and the scheduler decides"},
	{"spec.numa.topologyPolicy", "restricted", Replaced, "webhook.translate.policy has it, and the scheduler decides; the memory manager Static and its reservedMemory come with it"},
	{"spec.numa.topologyPolicy", "single-numa-node", Replaced, "webhook.translate.policy has it, and the scheduler decides; the memory manager Static, its reservedMemory and full-pcpus-only come with it"},
	{"spec.net.userLevelNetworking", "", Stays, "it decides how many queues network cards have"},
	{"spec.net.devices", "", Stays, "it decides how many queues network cards have"},
	{"spec.globallyDisableIrqLoadBalancing", "true", Stays, kernelOfPool + "; without it, interrupts: away in a class or claim keeps interrupts off the claim's CPUs"},
	{"spec.globallyDisableIrqLoadBalancing", "false", Stays, "it is the default"},
	{"spec.workloadHints.highPowerConsumption", "", Stays, kernelOfPool + "; idleLatency and minFrequency of a PerformanceConfig do the same for the CPUs of one claim"},
	{"spec.workloadHints.realTime", "", Stays, kernelOfPool},
	{"spec.workloadHints.perPodPowerManagement", "true", ByHand, "cpu-c-states.crio.io and cpu-freq-governor.crio.io of pods become idleLatency and governor of a PerformanceConfig; " + ofCRIO},
	{"spec.workloadHints.perPodPowerManagement", "false", Stays, "it is the default"},
	{"spec.workloadHints.mixedCpus", "true", ByHand, "a claim with mixed: true also runs on the CPUs that no claim has; the operator takes this hint or " + withoutManagers + ", not both"},
	{"spec.workloadHints.mixedCpus", "false", Stays, "it is the default"},
	{"spec.machineConfigLabel", "", Stays, forOperator},
	{"spec.machineConfigPoolSelector", "", Stays, forOperator},
	{"spec.nodeSelector", "", Replaced, "a profile of the NodeConfig has it as nodeSelector"},
	{"status.runtimeClass", "", ByHand, "pods that name this RuntimeClass do not start when the profile is gone; " + ofCRIO},
	{"status.conditions", "", Gone, status},
	{"status.tuned", "", Gone, status},
}
