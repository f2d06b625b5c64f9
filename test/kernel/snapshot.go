package kernel

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Snapshot is what the kernel of a node said at one moment.
type Snapshot struct {
	// Online holds the CPUs of /sys/devices/system/cpu/online.
	Online cpuset.Set
	// Cores holds the thread siblings of every core, once.
	Cores []cpuset.Set
	// Zones holds the NUMA nodes, in the order of their folders' names.
	Zones []Zone
	// Processes holds every process in a pod's cgroup.
	Processes []Process
}

// Zone is a NUMA node of the machine.
type Zone struct {
	ID   int
	CPUs cpuset.Set
	// FreeHugepages counts the free hugepages of 2 MiB.
	FreeHugepages int
}

// Process is a process in a pod's cgroup, with what the kernel says of both.
type Process struct {
	PID int
	// Cgroup is the path in the cgroup v2 tree, with a leading slash.
	Cgroup string
	// CPUs and Mems are Cpus_allowed_list and Mems_allowed_list of the process.
	CPUs, Mems cpuset.Set
	// OwnCPUs is cpuset.cpus of the cgroup: what somebody wrote there, empty if
	// nobody did.
	OwnCPUs cpuset.Set
	// EffectiveCPUs and EffectiveMems are cpuset.cpus.effective and
	// cpuset.mems.effective of the cgroup.
	EffectiveCPUs, EffectiveMems cpuset.Set
	// ExclusiveCPUs is cpuset.cpus.exclusive of the cgroup, empty where the
	// kernel has no such file.
	ExclusiveCPUs cpuset.Set
	// Partition is cpuset.cpus.partition of the cgroup: "member", "root",
	// "isolated", or one of the latter two followed by "invalid (reason)".
	Partition string
}

// Zone returns a NUMA node by its id.
func (s Snapshot) Zone(id int) (Zone, bool) {
	for _, zone := range s.Zones {
		if zone.ID == id {
			return zone, true
		}
	}
	return Zone{}, false
}

// ZonesOf returns the ids of the NUMA nodes that have any of the CPUs.
func (s Snapshot) ZonesOf(cpus cpuset.Set) cpuset.Set {
	var ids cpuset.Set
	for _, zone := range s.Zones {
		if zone.CPUs.Overlaps(cpus) {
			ids = ids.Union(cpuset.New(zone.ID))
		}
	}
	return ids
}

// Container returns the first process of a pod's container. CPUs and Mems are
// united over all processes of the container, so that none can hide outside.
func (s Snapshot) Container(pod *corev1.Pod, name string) (Process, error) {
	id, err := containerID(pod, name)
	if err != nil {
		return Process{}, err
	}
	var container Process
	for _, process := range s.Processes {
		if !strings.Contains(process.Cgroup, id) {
			continue
		}
		if container.PID == 0 || process.PID < container.PID {
			process.CPUs = process.CPUs.Union(container.CPUs)
			process.Mems = process.Mems.Union(container.Mems)
			container = process
			continue
		}
		container.CPUs = container.CPUs.Union(process.CPUs)
		container.Mems = container.Mems.Union(process.Mems)
	}
	if container.PID == 0 {
		return Process{}, fmt.Errorf("find container %s of pod %s: no process has %s in its cgroup", name, pod.Name, id)
	}
	if !inPod(container.Cgroup, pod) {
		return Process{}, fmt.Errorf("find container %s of pod %s: cgroup %s is not in the pod's", name, pod.Name, container.Cgroup)
	}
	return container, nil
}

// containerID returns the runtime's id of a container from the pod's status.
func containerID(pod *corev1.Pod, name string) (string, error) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.Name != name {
			continue
		}
		if _, id, ok := strings.Cut(status.ContainerID, "://"); ok && id != "" {
			return id, nil
		}
		return "", fmt.Errorf("find container %s of pod %s: status has no container id", name, pod.Name)
	}
	return "", fmt.Errorf("find container %s of pod %s: not in the status", name, pod.Name)
}

// In returns the processes of a pod's cgroups.
func (s Snapshot) In(pod *corev1.Pod) (list []Process) {
	for _, process := range s.Processes {
		if inPod(process.Cgroup, pod) {
			list = append(list, process)
		}
	}
	return list
}

// inPod reports whether a cgroup lies below the pod's. The systemd cgroup
// driver writes the uid with underscores.
func inPod(cgroup string, pod *corev1.Pod) bool {
	uid := string(pod.UID)
	return strings.Contains(cgroup, uid) || strings.Contains(cgroup, strings.ReplaceAll(uid, "-", "_"))
}
