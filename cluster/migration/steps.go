package migration

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// addSteps adds the order for a node, and what comes before the first one and after the last.
func (p *plan) addSteps() {
	has := func(kind string) bool {
		return slices.ContainsFunc(p.sources, func(s Source) bool { return s.Kind == kind })
	}
	static := slices.ContainsFunc(p.kubelets, func(k kubelet) bool { return k.cpuStatic || k.memoryStatic || k.refuses() })
	if len(p.Files) == 0 && !static && !has(operatorKind) && !has(schedulerKind) && !has(topologyKind) && !has(rmdConfigKind) {
		return
	}
	step := func(do, breaks string) { p.Steps = append(p.Steps, Step{do, breaks}) }
	if has(rmdConfigKind) || has(rmdWorkloadKind) || has(rmdFileKind) {
		step("delete all RmdWorkloads and the RmdConfig, and stop each RDT daemon, before the driver is there with cache in its NodeConfig",
			"containers lose their ways until their pods have claims; with both, two programs divide the same caches")
	}
	step("install the driver on all nodes"+map[bool]string{true: ", with values.yaml"}[len(p.Files) > 0]+": helm install",
		"nothing: it publishes nothing for a node whose kubelet has a static manager, and an event of the Node says so")
	step("kubectl cordon NODE", "nothing that runs; new pods wait if the other nodes are full")
	step("kubectl drain NODE --ignore-daemonsets --delete-emptydir-data",
		"its pods end, lose what is in their emptyDir volumes, and start elsewhere only if they fit; PodDisruptionBudgets may stop the drain; pods of DaemonSets keep the CPUs that they have until they are created again")
	if static || p.translates {
		p.addSwitch(step)
	}
	step("delete the pods of DaemonSets that had CPUs of their own on NODE", "they start again, on shared CPUs unless they have claims")
	step("kubectl get resourceslices --field-selector spec.driver=dra.numa,spec.nodeName=NODE, and kubectl numa validate: the node has zones and no finding",
		"nothing; without zones, the events of the Node say why")
	step("kubectl uncordon NODE",
		"a pod without a claim has shared CPUs here, whatever its QoS class; a pod with a claim fits on switched nodes only")
	second := has(schedulerKind) || has(operatorKind) || has(topologyKind) || len(p.schedulers) > 0
	names := cmp.Or(strings.Join(slices.Compact(slices.Sorted(slices.Values(p.schedulers))), ", "), "the scheduler that knows NUMA nodes")
	if second {
		step("set schedulerName: "+corev1.DefaultSchedulerName+" in pods and templates of workloads that name "+names,
			"until they have claims, kubelets with static managers may refuse them, because kube-scheduler does not look at NUMA nodes; with claims, a scheduler that ignores these gives them nodes where they do not start")
	}
	if p.translates {
		step("kubectl label namespace NAMESPACE dra.numa/translate=true, as soon as the switched nodes have room for its pods; then restart its workloads",
			"new pods of the namespace have claims, so they no longer fit on nodes with static managers")
	}
	if second {
		step("after the last node, and when no pod names "+names+": delete the scheduler (NUMAResourcesScheduler), its operator (NUMAResourcesOperator), the exporter and the NodeResourceTopologies",
			"pods that name the scheduler stay Pending for ever")
	}
}

// addSwitch adds what changes in the kubelet.
func (p *plan) addSwitch(step func(do, breaks string)) {
	var changes, files []string
	kubelets := p.kubelets
	if len(kubelets) == 0 { // only an exporter or an operator said that there is a policy
		kubelets = []kubelet{{cpuStatic: true, options: true, memoryStatic: true, topologyPolicy: "restricted"}}
	}
	for _, k := range kubelets {
		if k.cpuStatic {
			changes = append(changes, "cpuManagerPolicy: none")
			files = append(files, "/var/lib/kubelet/cpu_manager_state")
		}
		if k.options {
			changes = append(changes, "no cpuManagerPolicyOptions")
		}
		if k.memoryStatic {
			changes = append(changes, "memoryManagerPolicy: None")
			files = append(files, "/var/lib/kubelet/memory_manager_state")
		}
		if k.refuses() {
			changes = append(changes, "topologyManagerPolicy: none")
		}
	}
	if len(changes) == 0 {
		return // an operator has switched the managers off
	}
	unique := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	do, breaks := "stop the kubelet; set "+strings.Join(unique(changes), ", "), "devices of device plugins may be on several NUMA nodes"
	if len(files) > 0 {
		do += "; delete " + strings.Join(unique(files), " and ")
		breaks = "the kubelet does not start with a state file of another policy, or with the policy none and an option of the CPU manager; running containers keep the cpusets that they have"
	}
	do += "; start the kubelet"
	if slices.ContainsFunc(p.sources, func(s Source) bool { return slices.Contains([]string{operatorGroup, poolGroup, profileGroup}, s.Group) }) {
		do += "; on OpenShift, change the object of the pool instead, which drains and restarts all of its nodes: " +
			"the KubeletConfig, or the PerformanceProfile, with the annotation " + withoutManagers + ": \"true\" if its operator knows it, else without the profile"
	}
	step(do, breaks)
}
