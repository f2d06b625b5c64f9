package migration

import "strings"

// Kinds and groups that are read.
const (
	kubeletKind  = "KubeletConfiguration"
	kubeletGroup = "kubelet.config.k8s.io"

	operatorKind  = "NUMAResourcesOperator"
	schedulerKind = "NUMAResourcesScheduler"
	operatorGroup = "nodetopology.openshift.io"

	poolKind  = "KubeletConfig" // a part of a kubelet's configuration, for pools of nodes
	poolGroup = "machineconfiguration.openshift.io"

	profileKind  = "PerformanceProfile"
	profileGroup = "performance.openshift.io"

	topologyKind  = "NodeResourceTopology"
	topologyGroup = "topology.node.k8s.io"

	rmdConfigKind   = "RmdConfig"
	rmdWorkloadKind = "RmdWorkload"
	rmdStateKind    = "RmdNodeState"
	rmdGroup        = "intel.com"
)

// Kinds whose rows count before those of the kind that they are of.
const (
	aloneKind     = kubeletKind + " without a static CPU manager"
	allCoresKind  = rmdWorkloadKind + " with allCores"
	policyKind    = rmdWorkloadKind + " with policy"
	bandwidthKind = rmdWorkloadKind + " with a bandwidth of shared ways"
)

// Resource is where a cluster has objects that are read.
type Resource struct{ Group, Version, Name string }

// Resources returns what to list in a cluster, besides Pods, Nodes and the configurations of
// kubelets.
func Resources() []Resource {
	return []Resource{
		{operatorGroup, "v1", "numaresourcesoperators"},
		{operatorGroup, "v1", "numaresourcesschedulers"},
		{poolGroup, "v1", "kubeletconfigs"},
		{profileGroup, "v2", "performanceprofiles"},
		{topologyGroup, "v1alpha2", "noderesourcetopologies"},
		{rmdGroup, "v1alpha1", "rmdconfigs"},
		{rmdGroup, "v1alpha1", "rmdnodestates"},
		{rmdGroup, "v1alpha1", "rmdworkloads"},
	}
}

// field is a field of a kind. In its path, [] is each element of a list, and * is any other
// key.
type field struct{ group, kind, path string }

// rule says what becomes of a field with a value; "" is any value.
type rule struct {
	value     string
	outcome   Outcome
	says      string
	unrelated bool
}

// row is a rule with its field, of one kind.
type row struct {
	path, value string
	outcome     Outcome
	says        string
}

// kinds are all kinds with their fields. Of several rows for a field, the first whose value
// fits counts.
var kinds = []struct {
	group, name string
	rows        []row
}{
	{kubeletGroup, kubeletKind, kubeletRows},
	{kubeletGroup, aloneKind, []row{
		{"topologyManagerPolicy", "best-effort", Stays, ofDevices + "; it refuses no pod"},
		{"topologyManagerPolicy", "restricted", ByHand, ofDevices + ": set it to none or best-effort, because it refuses pods without considering claims"},
		{"topologyManagerPolicy", "single-numa-node", ByHand, ofDevices + ": set it to none or best-effort, because it refuses pods without considering claims"},
		{"topologyManagerScope", "", Stays, ofDevices},
	}},
	{operatorGroup, operatorKind, operatorRows},
	{operatorGroup, schedulerKind, schedulerRows},
	{poolGroup, poolKind, poolRows},
	{profileGroup, profileKind, profileRows},
	{topologyGroup, topologyKind, topologyRows},
	{rmdGroup, rmdConfigKind, rmdConfigRows},
	{rmdGroup, rmdWorkloadKind, rmdWorkloadRows},
	{rmdGroup, allCoresKind, []row{
		{"spec.coreIds", "", Gone, "allCores counts before it"},
		{"spec.policy", "", ByHand, noTemplate},
		{"spec.rdt", "", ByHand, noTemplate},
		{"spec.nodes", "", ByHand, "write a profile of the NodeConfig with cache for these nodes"},
		{"spec.nodeSelector", "", ByHand, "write a profile of the NodeConfig with cache for these nodes"},
	}},
	{rmdGroup, policyKind, []row{{"spec.rdt", "", Gone, ofPolicy}, {"spec.plugins", "", Gone, ofPolicy}}},
	{rmdGroup, bandwidthKind, []row{{"spec.rdt.mba", "", ByHand, "a bandwidth is only for ways of its own, and this workload shares its ways: the template has no bandwidth"}}},
	{rmdGroup, rmdStateKind, rmdStateRows},
	{"", rmdFileKind, rmdFileRows},
}

// table is the rules by field. A field that only has others in it has none.
var table = func() map[field][]rule {
	rules := map[field][]rule{}
	for _, kind := range kinds {
		rules[field{kind.group, kind.name, ""}] = nil
		for _, r := range kind.rows {
			at := field{kind.group, kind.name, r.path}
			rules[at] = append(rules[at], rule{r.value, r.outcome, r.says, false})
			for i, c := range r.path {
				if c == '.' || c == '[' {
					parent := field{kind.group, kind.name, r.path[:i]}
					rules[parent] = append(rules[parent], []rule{}...)
				}
			}
		}
	}
	for path := range strings.FieldsSeq(unrelatedFields) {
		rules[field{kubeletGroup, kubeletKind, path}] = []rule{{"", Stays, "it has nothing to do with CPUs, memory or NUMA nodes of containers", true}}
	}
	return rules
}()

const (
	exporter    = "no exporter runs: the driver's ResourceSlices say what each NUMA node has"
	ofScheduler = "no second scheduler runs: kube-scheduler itself counts what claims hold of each NUMA node"
	status      = "the operator wrote it"

	ofDevices    = "without a static CPU manager, it is for devices of device plugins, and no file of the plan has it"
	noTemplate   = "there is no template: the pool cache.os is for all tasks of a node without ways of their own"
	ofPolicy     = "the policy counts before it"
	restOfPolicy = "; no file of the plan has a bandwidth (mba) or a pstate ratio of a policy"
	branchMisses = "its ratio is a threshold of branch misses, above which a core gets its highest frequency, and below it the lowest; nothing here scales frequencies by that: choose some in a PerformanceConfig"
)

var kubeletRows = []row{
	{"cpuManagerPolicy", "none", Stays, "the driver needs this policy"},
	{"cpuManagerPolicy", "static", Replaced, "claims hold the CPUs; set it to none, because the driver publishes nothing beside the policy static"},
	{"cpuManagerPolicyOptions.full-pcpus-only", "true", Replaced, "claims have whole cores; a pod with a part of a core gets the rest of it too (partOfCore), where the kubelet refuses it with SMTAlignmentError"},
	{"cpuManagerPolicyOptions.distribute-cpus-across-numa", "true", Replaced, "with the policies restricted, best-effort and none of webhook.translate, two NUMA nodes give equal parts if one has no room"},
	{"cpuManagerPolicyOptions.align-by-socket", "true", Replaced, "with the policies restricted and best-effort of webhook.translate, one socket is tried after one NUMA node"},
	{"cpuManagerPolicyOptions.distribute-cpus-across-cores", "true", ByHand, "a translated pod has whole cores; write a claim with cores: one-thread-per-core, which holds the other threads as well and keeps them idle"},
	{"cpuManagerPolicyOptions.strict-cpu-reservation", "true", Gone, "claims never get reserved CPUs; but pods without claims may run on them again"},
	{"cpuManagerPolicyOptions.prefer-align-cpus-by-uncorecache", "true", Replaced, "claims always have CPUs of as few level-3 caches as whole cores allow; l3: require in a claim asks for one"},
	{"cpuManagerPolicyOptions.*", "false", Gone, "the option is off"},
	{"cpuManagerReconcilePeriod", "", Stays, "nothing depends on it: with the policy none, the kubelet reconciles no cpusets"},
	{"cpuCFSQuota", "true", Stays, "CPU limits become quotas; the driver lifts those of containers with CPUs of their own (cpuQuota), as the kubelet does for its static manager"},
	{"cpuCFSQuota", "false", Stays, "no CPU limit throttles a container"},
	{"cpuCFSQuotaPeriod", "", Stays, "it is the period of CPU limits"},
	{"reservedSystemCPUs", "", Replaced, "reservedCPUs has them, and no claim gets them; keep it in the kubelet too, which subtracts them from the node's allocatable"},
	{"kubeReserved.cpu", "", Stays, "the kubelet subtracts it from the node's allocatable; it names no CPUs, so reservedCPUs has none of it"},
	{"systemReserved.cpu", "", Stays, "the kubelet subtracts it from the node's allocatable; it names no CPUs, so reservedCPUs has none of it"},
	{"kubeReserved.memory", "", Stays, "the kubelet subtracts it from the node's allocatable; reservedMemory says of which NUMA node"},
	{"systemReserved.memory", "", Stays, "the kubelet subtracts it from the node's allocatable; reservedMemory says of which NUMA node"},
	{"kubeReserved.*", "", Stays, "the kubelet subtracts it from the node's allocatable"},
	{"systemReserved.*", "", Stays, "the kubelet subtracts it from the node's allocatable"},
	{"kubeReservedCgroup", "", Stays, "the kubelet limits this cgroup"},
	{"systemReservedCgroup", "", Stays, "the kubelet limits this cgroup"},
	{"enforceNodeAllocatable", "", Stays, "the kubelet enforces the node's allocatable"},
	{"reservedMemory", "", Replaced, "reservedNodeMemory and reservedHugepages have it; a kubelet with the policy None accepts and ignores it"},
	{"memoryManagerPolicy", "None", Stays, "the driver needs this policy"},
	{"memoryManagerPolicy", "Static", Replaced, "claims hold memory and hugepages of their NUMA nodes; set it to None, because the driver publishes nothing beside the policy Static"},
	{"topologyManagerPolicy", "none", Stays, "the driver needs no topology manager"},
	{"topologyManagerPolicy", "best-effort", Replaced, "webhook.translate.policy has it, and the scheduler decides; it may stay for devices of device plugins, because it refuses no pod"},
	{"topologyManagerPolicy", "restricted", Replaced, "webhook.translate.policy has it, and the scheduler decides; set it to none or best-effort, because it refuses pods without considering claims"},
	{"topologyManagerPolicy", "single-numa-node", Replaced, "webhook.translate.policy has it, and the scheduler decides; set it to none or best-effort, because it refuses pods without considering claims"},
	{"topologyManagerScope", "container", Replaced, "webhook.translate.scope has it"},
	{"topologyManagerScope", "pod", Replaced, "webhook.translate.scope has it"},
	{"topologyManagerPolicyOptions.prefer-closest-numa-nodes", "true", ByHand, "alternatives of a claim are one NUMA node, one socket, any: they do not compare distances; select by zone attributes where distances matter"},
	{"topologyManagerPolicyOptions.max-allowable-numa-nodes", "", Gone, "it is a limit of the kubelet's topology manager, and the driver has none; it can stay while a topologyManagerPolicy does"},
	{"topologyManagerPolicyOptions.*", "false", Gone, "the option is off"},
	{"qosReserved", "", Stays, "it reserves memory for QoS classes, whatever claims hold"},
	{"cgroupsPerQOS", "true", Stays, "pods have cgroups by QoS class, with and without claims"},
	{"cgroupDriver", "", Stays, "the driver works with cgroupfs and systemd"},
	{"cgroupRoot", "", Stays, "it is where the kubelet's cgroups begin"},
	{"evictionHard", "", Stays, "the kubelet subtracts memory.available from the node's allocatable"},
	{"memorySwap", "", Stays, "claims do not change what may be swapped"},
	{"failSwapOn", "", Stays, "claims do not change what may be swapped"},
	{"featureGates.CPUManagerPolicyAlphaOptions", "", Gone, "it is about options of the static CPU manager"},
	{"featureGates.CPUManagerPolicyBetaOptions", "", Gone, "it is about options of the static CPU manager"},
	{"featureGates.CPUManagerPolicyOptions", "", Gone, "it is about options of the static CPU manager"},
	{"featureGates.PodLevelResourceManagers", "true", ByHand, "static managers give pods with spec.resources CPUs of their own, and webhook.translate leaves such pods as they are: write claims for them"},
	{"featureGates.PodLevelResourceManagers", "false", Gone, "the gate is off"},
	{"featureGates.TopologyManagerPolicyAlphaOptions", "", Gone, "it is about options of the topology manager"},
	{"featureGates.TopologyManagerPolicyBetaOptions", "", Gone, "it is about options of the topology manager"},
	{"featureGates.TopologyManagerPolicyOptions", "", Gone, "it is about options of the topology manager"},
	{"featureGates.*", "", Stays, "kubectl numa features says which gates the driver can use"},
}

// unrelatedFields are the other fields of a KubeletConfiguration.
const unrelatedFields = `
	address allowedUnsafeSysctls authentication authorization clusterDNS clusterDomain
	configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize containerLogMaxWorkers
	containerLogMonitorInterval containerRuntimeEndpoint contentType crashLoopBackOff defaultPodSysctls enableContentionProfiling
	enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler enableServer
	enableSystemLogHandler enableSystemLogQuery eventBurst eventRecordQPS evictionMaxPodGracePeriod evictionMinimumReclaim
	evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod failCgroupV1 fileCheckFrequency hairpinMode
	healthzBindAddress healthzPort httpCheckFrequency imageGCHighThresholdPercent imageGCLowThresholdPercent imageMaximumGCAge
	imageMinimumGCAge imagePullCredentialsVerificationPolicy imageServiceEndpoint iptablesDropBit iptablesMasqueradeBit
	kernelMemcgNotification kubeAPIBurst kubeAPIQPS kubeletCgroups localStorageCapacityIsolation logging makeIPTablesUtilChains
	maxOpenFiles maxParallelImagePulls maxPods memoryReservationPolicy memoryThrottlingFactor mergeDefaultEvictionSettings
	nodeLeaseDurationSeconds nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR
	podLogsDir podPidsLimit podsPerCore port preloadedImagesVerificationAllowlist protectKernelDefaults providerID readOnlyPort
	registerNode registerWithTaints registryBurst registryPullQPS resolvConf rotateCertificates runOnce runtimeRequestTimeout
	seccompDefault serializeImagePulls serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod
	shutdownGracePeriodByPodPriority shutdownGracePeriodCriticalPods singleProcessOOMKill staticPodPath staticPodURL
	staticPodURLHeader streamingConnectionIdleTimeout syncFrequency systemCgroups tlsCertFile tlsCipherSuites
	tlsCurvePreferences tlsMinVersion tlsPrivateKeyFile tracing userNamespaces volumePluginDir volumeStatsAggPeriod
`

var operatorRows = []row{
	{"spec.nodeGroups[].machineConfigPoolSelector", "", ByHand, "it selects pools, not nodes: set the chart's nodeSelector to a label that the nodes of these pools have, or leave it, and the driver runs on all Linux nodes"},
	{"spec.nodeGroups[].poolName", "", ByHand, "set the chart's nodeSelector to a label that the nodes of this pool have, or leave it, and the driver runs on all Linux nodes"},
	{"spec.nodeGroups[].config.podsFingerprinting", "", Gone, exporter + ", and the scheduler knows its own allocations"},
	{"spec.nodeGroups[].config.infoRefreshMode", "", Gone, exporter},
	{"spec.nodeGroups[].config.infoRefreshPeriod", "", Gone, exporter + ", which change when the machine does"},
	{"spec.nodeGroups[].config.infoRefreshPause", "", Gone, exporter},
	{"spec.nodeGroups[].config.tolerations", "", Replaced, "the chart's tolerations tolerate every taint"},
	{"spec.nodeGroups[].annotations", "", Gone, "they are for the operator"},
	{"spec.imageSpec", "", Gone, exporter},
	{"spec.logLevel", "", Gone, exporter + "; the chart's verbosity is that of the driver"},
	{"spec.podExcludes", "", Gone, exporter + ", and no pod is counted twice"},
	{"status", "", Gone, status},
}

var schedulerRows = []row{
	{"spec.schedulerName", "", ByHand, "pods that name this scheduler stay Pending when it is gone: set their schedulerName to default-scheduler, or remove it"},
	{"spec.imageSpec", "", Gone, ofScheduler},
	{"spec.logLevel", "", Gone, ofScheduler},
	{"spec.cacheResyncPeriod", "", Gone, ofScheduler + ", so no cache is behind"},
	{"spec.cacheResyncDebug", "", Gone, ofScheduler + ", so no cache is behind"},
	{"spec.cacheResyncDetection", "", Gone, ofScheduler + ", so no cache is behind"},
	{"spec.schedulerInformer", "", Gone, ofScheduler},
	{"spec.scoringStrategy.type", "", ByHand, "zoneOrder (pack, spread) orders the zones of a node; which node a pod gets is for the scoringStrategy of kube-scheduler's NodeResourcesFit"},
	{"spec.scoringStrategy.resources", "", ByHand, "weights are for the scoringStrategy of kube-scheduler's NodeResourcesFit"},
	{"spec.replicas", "", Gone, ofScheduler},
	{"status", "", Gone, status},
}

var topologyRows = []row{
	{"topologyPolicies", "", Replaced, "webhook.translate has the policy and the scope, unless a kubelet's configuration says another"},
	{"zones", "", Replaced, exporter},
	{"attributes", "", Gone, "the exporter wrote them; without a kubelet's configuration, policy and scope are read from them"},
}

var rmdConfigRows = []row{
	{"spec.rmdImage", "", Gone, "no RDT daemon runs: the driver itself writes to resctrl; the daemon's pools are in its rmd.toml, which migrate reads as a file"},
	{"spec.deployNodeAgent", "", Gone, "no agent runs: a claim has its ways before its container starts"},
	{"spec.rmdNodeSelector", "", Replaced, "a profile of the NodeConfig has it as nodeSelector"},
	{"status", "", Gone, status},
}

var rmdWorkloadRows = []row{
	{"spec.allCores", "true", ByHand, noTemplate},
	{"spec.allCores", "false", Gone, "it is the default"},
	{"spec.coreIds", "", ByHand, "the template has as many CPUs, which the driver chooses; for tasks on exactly these CPUs without a pod, write cache.groups"},
	{"spec.reservedCoreIds", "", ByHand, "CPUs that have none of the ways: leave them out of the cpus of cache.groups"},
	{"spec.policy", "gold", ByHand, "the template has the class gold.dra.numa and no number of ways: write that of policy.toml as defaultWays of cache.guaranteed" + restOfPolicy},
	{"spec.policy", "silver", ByHand, "the template has the class silver.dra.numa and no number of ways: write those of policy.toml as defaultMinWays and defaultMaxWays of cache.besteffort" + restOfPolicy},
	{"spec.policy", "bronze", Replaced, "the template has the class bronze.dra.numa" + restOfPolicy},
	{"spec.rdt.cache.max", "", Replaced, "with coreIds, the template asks for ways of a pool, and cache has pools with room for them"},
	{"spec.rdt.cache.min", "", Replaced, "with max, it decides the pool: equal is guaranteed, less is besteffort, max 0 is shared"},
	{"spec.rdt.mba.percentage", "0", Gone, "it is no limit"},
	{"spec.rdt.mba.percentage", "", Replaced, "the template has it as bandwidthPercent"},
	{"spec.rdt.mba.mbps", "0", Gone, "it is no limit"},
	{"spec.rdt.mba.mbps", "", Replaced, "the template has it as bandwidthMBps"},
	{"spec.plugins.pstate", "", ByHand, branchMisses},
	{"spec.nodes", "", ByHand, "pods name no nodes: a claim fits on each node with such ways; keep the pod's nodeSelector or affinity if it has to be one of these"},
	{"spec.nodeSelector", "", ByHand, "set it in the pod, which the scheduler places"},
	{"status", "", Gone, status},
}

var rmdStateRows = []row{
	{"spec", "", Gone, "the operator wrote it; kubectl numa status --cache says which claims have which ways"},
	{"status", "", Gone, "the operator wrote it; kubectl numa status --cache says which claims have which ways"},
}
