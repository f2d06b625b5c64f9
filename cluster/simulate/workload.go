package simulate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// maxAdded is the maximum number of pods that AddPods adds. Anyone can write a large
// number of replicas.
const maxAdded = 10_000

// AddPods adds the pods that controllers would make of the manifests of workloads, after
// all other pods. Their names are those of their templates with a number, or with the
// name of the node for a DaemonSet.
func AddPods(s *snapshot.Snapshot) error {
	left := maxAdded
	for _, workload := range s.Workloads {
		if !workload.IsManifest() {
			continue
		}
		if left -= workload.Pods(); left < 0 {
			return fmt.Errorf("%s %s/%s would have %d pods: manifests may have %d pods together", workload.Kind, workload.GetNamespace(), workload.GetName(), workload.Pods(), maxAdded)
		}
		for _, template := range workload.Templates {
			add := addReplicas
			if workload.Kind == snapshot.DaemonSet {
				add = addOnNodes
			}
			if err := add(s, workload, template); err != nil {
				return err
			}
		}
	}
	return nil
}

// addReplicas adds as many pods of a template as run at the same time.
func addReplicas(s *snapshot.Snapshot, workload *snapshot.Workload, template snapshot.Template) error {
	for i, added := 0, 0; added < template.Pods; i++ {
		pod := workload.Pod(template)
		pod.Name = fmt.Sprintf("%s-%d", workload.PodPrefix(template), i)
		if other := s.Pod(pod.Namespace, pod.Name); other != nil {
			if madeOf(other, workload) {
				added++
			}
			continue
		}
		if err := s.Add(pod, s.Where(workload)); err != nil {
			return err
		}
		added++
	}
	return nil
}

// madeOf reports whether an earlier simulation has made the pod for the workload, and placed it.
func madeOf(pod *corev1.Pod, workload *snapshot.Workload) bool {
	owner := metav1.GetControllerOf(pod)
	return snapshot.IsPlaced(pod) && owner != nil && owner.Kind == workload.Kind && owner.Name == workload.GetName()
}

// addOnNodes adds a pod for each node that a DaemonSet selects.
func addOnNodes(s *snapshot.Snapshot, workload *snapshot.Workload, template snapshot.Template) error {
	for _, node := range s.Nodes {
		pod := workload.Pod(template)
		pod.Name = workload.PodPrefix(template) + "-" + node.Name
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, daemonTolerations()...)
		// An affinity that is not valid fits no node: the pod is placed and says so.
		if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err == nil && !fits {
			continue
		}
		if _, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, pod.Spec.Tolerations, preventsScheduling, false); untolerated {
			continue
		}
		if other := s.Pod(pod.Namespace, pod.Name); other != nil && madeOf(other, workload) {
			continue
		}
		pinTo(pod, node.Name)
		if err := s.Add(pod, s.Where(workload)); err != nil {
			return err
		}
	}
	return nil
}

// daemonTolerations are those that the DaemonSet controller adds
// (AddOrUpdateDaemonPodTolerations).
func daemonTolerations() (list []corev1.Toleration) {
	add := func(effect corev1.TaintEffect, keys ...string) {
		for _, key := range keys {
			list = append(list, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
		}
	}
	add(corev1.TaintEffectNoExecute, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable)
	add(corev1.TaintEffectNoSchedule, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable)
	return list
}

// pinTo lets the scheduler place the pod only on the node, as the DaemonSet controller
// does (ReplaceDaemonSetPodNodeNameNodeAffinity). The node matches the pod's own terms.
func pinTo(pod *corev1.Pod, node string) {
	term := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
		Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
	}}}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
}
