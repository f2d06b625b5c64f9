package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-driver-numa/dra-driver-numa/internal/histogram"
)

// namespace is the beginning of each name.
const namespace = "dra_numa"

// kind is the type of a metric.
type kind string

const (
	gauge     kind = "gauge"
	counter   kind = "counter"
	durations kind = "histogram"
)

// family is all metrics with one name.
type family struct {
	name, help  string
	kind        kind
	labels      []string
	description *prometheus.Desc
}

// families are what the exporter may send, in the order of the documentation.
type families struct {
	list []*family

	build, ready, notReady, registered, exclusivity, paused, unmet                   *family
	zoneCPUs, zoneMemory, zoneHugepages, zoneImbalance                               *family
	allocatableCPUs, allocatableMemory, allocatableHugepages                         *family
	cacheWays, allocatableWays, functions, taints                                    *family
	claims, claimCPUs, claimMemory, claimHugepages, claimWays                        *family
	claimFunctions, faultyClaims, omittedClaims                                      *family
	claimOccupancy, claimTraffic, claimNearTraffic                                   *family
	claimFrequency, claimAskedFrequency                                              *family
	operations, busy, syncs, written, mismatches                                     *family
	cgroups, refusals, runtimeConnected, runtimeRefused, unexplained, serverRequests *family
	heartbeat, repairs, releases, unrepaired, hooks                                  *family
}

// add makes a family.
func (f *families) add(kind kind, name, help string, labels ...string) *family {
	name = prometheus.BuildFQName(namespace, "", name)
	added := &family{name, help, kind, labels, prometheus.NewDesc(name, help, labels, nil)}
	f.list = append(f.list, added)
	return added
}

func newFamilies() *families {
	f := &families{}
	f.build = f.add(gauge, "build_info", "Always 1. The version of the daemon.", "version")
	f.ready = f.add(gauge, "ready", "1 if the daemon serves its node as it should, else 0.")
	f.notReady = f.add(gauge, "not_ready", "1 for each reason why the daemon does not serve its node as it should. /readyz has the whole text.", "reason")
	f.registered = f.add(gauge, "kubelet_registered", "1 if the kubelet has registered the driver, else 0.")
	f.exclusivity = f.add(gauge, "exclusivity_info", "Always 1. What keeps other tasks off the CPUs of claims on this node: kernel, cooperative or none.", "mode")
	f.paused = f.add(gauge, "publishing_paused", "1 while an administrator has paused publishing, so that the ResourceSlices of the node stay as they are, else 0.")
	f.unmet = f.add(gauge, "setting_unmet", "1 for each setting of the NodeConfig that the node does not carry out: cache or performance. The event NUMASettingUnmet of the Node says why.", "setting")

	f.zoneCPUs = f.add(gauge, "zone_cpus", "Online CPUs of a zone: claimed by claims, shared by containers without claims and free for claims, reserved, or blocked by partitions of no claim. The states add up to all CPUs.", "device", "state")
	f.zoneMemory = f.add(gauge, "zone_memory_bytes", "Memory of a zone without hugepages: claimed, shared, or reserved. What the kernel keeps free is reserved.", "device", "state")
	f.zoneHugepages = f.add(gauge, "zone_hugepages_bytes", "Hugepages of a zone: claimed, shared, or reserved.", "device", "size", "state")
	f.zoneImbalance = f.add(gauge, "zone_imbalance", "Difference between the largest and the smallest part of the CPUs for claims of a zone that claims hold, 0 to 1, and the node's zoneOrder. It is not there on nodes with fewer than two such zones.", "order")
	f.allocatableCPUs = f.add(gauge, "zone_allocatable_cpus", "CPUs of a zone that the node publishes for claims, whether or not claims hold them.", "device")
	f.allocatableMemory = f.add(gauge, "zone_allocatable_memory_bytes", "Memory of a zone that the node publishes for claims.", "device")
	f.allocatableHugepages = f.add(gauge, "zone_allocatable_hugepages_bytes", "Hugepages of a zone that the node publishes for claims.", "device", "size")
	f.cacheWays = f.add(gauge, "cache_claimed_ways", "Ways of a pool of a level-3 cache that claims hold for themselves.", "device")
	f.allocatableWays = f.add(gauge, "cache_allocatable_ways", "Ways of a pool of a level-3 cache that the node publishes for claims.", "device")
	f.functions = f.add(gauge, "pci_functions", "Published PCI functions: claimed or free.", "kind", "state")
	f.taints = f.add(gauge, "device_taint", "1 for each taint that the driver has put on a device.", "device", "key", "value", "effect")

	f.claims = f.add(gauge, "claims", "Claims on record: prepared; faulty, which is prepared but a container does not have what it should; or waiting, which no pod needs any more but which cannot be released yet.", "state")
	f.claimCPUs = f.add(gauge, "claim_cpus", "CPUs that a claim has to itself.", "namespace", "resourceclaim", "device")
	f.claimMemory = f.add(gauge, "claim_memory_bytes", "Memory that a claim holds of a zone, without hugepages.", "namespace", "resourceclaim", "device")
	f.claimHugepages = f.add(gauge, "claim_hugepages_bytes", "Hugepages that a claim holds of a zone.", "namespace", "resourceclaim", "device", "size")
	f.claimWays = f.add(gauge, "claim_cache_ways", "Ways of a level-3 cache that a claim has to itself.", "namespace", "resourceclaim", "device")
	f.claimFunctions = f.add(gauge, "claim_pci_function", "1 for each PCI function that a claim holds.", "namespace", "resourceclaim", "device")
	const counted = " It is there only with --metrics-cache-use."
	f.claimOccupancy = f.add(gauge, "claim_cache_occupancy_bytes", "What the CPUs of a claim have in a level-3 cache now."+counted, "namespace", "resourceclaim", "l3", "numa_node")
	f.claimTraffic = f.add(counter, "claim_memory_traffic_bytes_total", "Bytes from and to any memory, past a level-3 cache, since the claim was prepared."+counted, "namespace", "resourceclaim", "l3", "numa_node")
	f.claimNearTraffic = f.add(counter, "claim_near_memory_traffic_bytes_total", "The part of dra_numa_claim_memory_traffic_bytes_total from and to the NUMA node of the CPUs."+counted, "namespace", "resourceclaim", "l3", "numa_node")
	const tuned = " It is there for claims that change frequencies, on nodes with performance.allow."
	f.claimFrequency = f.add(gauge, "claim_frequency_hertz", "Frequency now of the slowest and of the fastest CPU of a claim, as the kernel says it."+tuned, "namespace", "resourceclaim", "device", "cpu")
	f.claimAskedFrequency = f.add(gauge, "claim_asked_frequency_hertz", "The lowest and the highest frequency that a claim asks for: min and max."+tuned, "namespace", "resourceclaim", "device", "limit")
	f.faultyClaims = f.add(gauge, "claim_faulty", "1 for each claim with a container that does not have what it should, or that no hook has pinned.", "namespace", "resourceclaim")
	f.omittedClaims = f.add(gauge, "claims_omitted", "Claims that have no metrics of their own, because the node has too many claims.")

	f.operations = f.add(durations, "claim_operation_duration_seconds", "How long the kubelet's calls took for each claim: prepare or unprepare, with the result ok or error.", "operation", "result")
	f.busy = f.add(gauge, "operation_busy_seconds", "For how long the operation that is under way has been at work; 0 without one. All other operations wait for it.")
	f.syncs = f.add(durations, "fsync_duration_seconds", "How long each fsync took, of the checkpoint or of CDI specs.", "file")
	f.written = f.add(counter, "written_bytes_total", "Bytes written to the checkpoint or to CDI specs.", "file")
	f.mismatches = f.add(gauge, "record_mismatches", "Differences between what claims hold and the files of the node: checkpoint, missing_spec or stray_spec. It is not there while an operation is under way.", "record")

	f.cgroups = f.add(gauge, "cgroups", "Cgroups of running containers and pods of claims: exclusive, pinned without a partition of their own, downgraded because several pods use the claim, or faulty.", "state")
	f.hooks = f.add(durations, "hook_duration_seconds", "How long hooks took on this host, with the result pinned, or refused if they did not let the container start. The figures are kept on the host, so they outlive the daemon.", "result")
	f.refusals = f.add(counter, "container_refusals_total", "Containers of claims that the hook did not let start, as the daemon has seen them.")
	f.runtimeConnected = f.add(gauge, "nri_connected", "1 if the container runtime is connected over NRI, else 0. It is not there if the daemon does not use NRI.")
	f.runtimeRefused = f.add(gauge, "nri_refused", "1 if the container runtime did not carry out the last update of containers, else 0. It is not there if the daemon does not use NRI.")
	f.unexplained = f.add(gauge, "nri_unexplained_cpusets", "Containers with a cpuset that neither a claim nor the driver gave them: another program places them, and may give them CPUs of claims. It is not there if the daemon does not use NRI.")
	f.heartbeat = f.add(gauge, "keeper_heartbeat_timestamp_seconds", "When the keeper last said that it works, as Unix time. It says so every 10 seconds. It is not there before the first time.")
	f.repairs = f.add(counter, "keeper_repairs_total", "Cgroups of claims that the keeper has repaired, by what was wrong: partition, exclusive, cpus, mems or other.", "cause")
	f.releases = f.add(counter, "keeper_releases_total", "Cgroups of claims that the keeper has released after their processes had ended.")
	f.unrepaired = f.add(gauge, "keeper_unrepaired_cgroups", "Cgroups of claims that the keeper found wrong in its last round and could not repair.")
	f.serverRequests = f.add(counter, "apiserver_requests_total", "Requests to the API server, with the code of the answer; 0 for no answer.", "verb", "resource", "code")
	return f
}

// sink takes the metrics of one scrape.
type sink chan<- prometheus.Metric

// add sends one metric that is no histogram.
func (s sink) add(f *family, value float64, labels ...string) {
	kind := prometheus.GaugeValue
	if f.kind == counter {
		kind = prometheus.CounterValue
	}
	metric, err := prometheus.NewConstMetric(f.description, kind, value, labels...)
	if err != nil {
		metric = prometheus.NewInvalidMetric(f.description, err)
	}
	s <- metric
}

// addDurations sends a histogram.
func (s sink) addDurations(f *family, d histogram.Distribution, labels ...string) {
	buckets := make(map[float64]uint64, len(d.Within))
	for _, within := range d.Within {
		buckets[within.Bound.Seconds()] = within.Count
	}
	metric, err := prometheus.NewConstHistogram(f.description, d.Count, d.Sum.Seconds(), buckets, labels...)
	if err != nil {
		metric = prometheus.NewInvalidMetric(f.description, err)
	}
	s <- metric
}
