package diagnosis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// kubeletManager finds managers of the kubelet that assign CPUs and memory without
// considering claims.
func kubeletManager(f *Facts) (findings []Finding) {
	for _, node := range f.Nodes() {
		kubelet := f.Kubelets[node]
		check := func(setting, want, got string) {
			if got != "" && !strings.EqualFold(got, want) {
				findings = append(findings, Finding{Node: node, Component: "kubelet", Setting: setting, Expected: want, Detected: got})
			}
		}
		check("cpuManagerPolicy", "none", kubelet.CPUManagerPolicy)
		check("memoryManagerPolicy", "None", kubelet.MemoryManagerPolicy)
	}
	return findings
}

// topologyManager finds policies of the kubelet that refuse pods by the NUMA nodes of
// device plugins' devices, which the scheduler does not know.
func topologyManager(f *Facts) (findings []Finding) {
	for _, node := range f.Nodes() {
		if policy := f.Kubelets[node].TopologyManagerPolicy; policy == "restricted" || policy == "single-numa-node" {
			findings = append(findings, Finding{
				Node: node, Component: "kubelet", Setting: "topologyManagerPolicy",
				Expected: "none or best-effort, because the others refuse pods without considering claims", Detected: policy,
			})
		}
	}
	return findings
}

// reservedMemory finds memory that the kubelet reserves but that claims may get.
func reservedMemory(f *Facts) (findings []Finding) {
	if len(f.Installation.DaemonSets) == 0 {
		return nil // not known, or already a finding
	}
	daemon := f.Installation.daemon()
	for _, flag := range []string{"config", "kubelet-config", "reserved-memory"} {
		if _, given := Argument(daemon, flag); given {
			return nil // it may reserve as much, or more
		}
	}
	for _, node := range f.Nodes() {
		var reserved []string
		for _, entry := range f.Kubelets[node].ReservedMemory {
			for _, name := range slices.Sorted(maps.Keys(entry.Limits)) {
				reserved = append(reserved, fmt.Sprintf("%s of %s of NUMA node %d", text(entry.Limits, name), name, entry.NumaNode))
			}
		}
		if len(reserved) > 0 {
			findings = append(findings, Finding{
				Node: node, Component: DaemonName, Setting: "reservedMemory",
				Expected: "what the kubelet reserves: " + strings.Join(reserved, ", "),
				Detected: "nothing, because neither reservedMemory nor kubelet.configFile is set",
			})
		}
	}
	return findings
}

// reservedCPUs finds CPUs that the kubelet reserves but that claims may get.
func reservedCPUs(f *Facts) (findings []Finding) {
	if len(f.Installation.DaemonSets) == 0 {
		return nil // not known, or already a finding
	}
	for _, node := range f.Nodes() {
		reserved := f.Kubelets[node].ReservedSystemCPUs
		kubelet, err := cpuset.Parse(reserved)
		if reserved == "" || err != nil {
			continue // none, or a value that no kubelet accepts
		}
		ours, detected, known := f.reservedOn(node)
		if !known || kubelet.IsSubsetOf(ours) {
			continue
		}
		findings = append(findings, Finding{
			Node: node, Component: DaemonName, Setting: "reservedCPUs",
			Expected: fmt.Sprintf("at least %s, the kubelet's reservedSystemCPUs", kubelet), Detected: detected,
		})
	}
	return findings
}

// reservedOn returns the CPUs that the daemon reserves on a node, and the same as a finding says
// it. The arguments of the daemon do not say what is in its files.
func (f *Facts) reservedOn(node string) (cpus cpuset.Set, detected string, known bool) {
	if state := f.States[node]; state != nil && state.Layout != nil && state.Layout.Reserved != nil {
		return *state.Layout.Reserved, state.Layout.Reserved.String() + ", as the node says", true
	}
	daemon := f.Installation.daemon()
	_, config := Argument(daemon, "config")
	text, set := Argument(daemon, "reserved-cpus")
	_, follows := Argument(daemon, "kubelet-config")
	switch {
	case config || follows && !set:
		return cpuset.Set{}, "", false
	case set:
		cpus, _ = cpuset.Parse(text) // none if it is no list
		return cpus, text, true
	}
	return cpuset.Set{}, "the first core, because neither reservedCPUs nor kubelet.configFile is set", true
}
