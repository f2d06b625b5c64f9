package startup

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// controller is what controllers of pods have in common.
type controller struct {
	wanted    int // number of pods that should exist now
	ended     int // number of pods that have done their work, and need not exist any more
	obstacles []funnel.Obstacle
}

// Workload explains a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job. pod is a pod
// of it that does not run. If a pod is missing, and all that exist run, pod is one as the
// template makes it, and made is true. If nothing is missing, pod is nil. Of a manifest,
// pod is the last of the pods that [simulate.AddPods] has added, which fits last.
func Workload(s *snapshot.Snapshot, object *snapshot.Workload) (w simulate.Workload, pod *corev1.Pod, made bool) {
	c := controllerOf(object.Object)
	w.Kind, w.Name = object.Kind, object.GetNamespace()+"/"+object.GetName()
	w.Obstacles = append(c.obstacles, ofEvents(s, object)...)
	if count, last := addedPods(s, object); last != nil {
		w.Sentence = fmt.Sprintf("would create %d %s", count, pods(count))
		return w, last, false
	}
	owners := []types.UID{object.GetUID()}
	if w.Kind == "Deployment" {
		sets := replicaSetsOf(s, object)
		for _, set := range sets {
			owners = append(owners, set.GetUID())
			w.Obstacles = append(w.Obstacles, append(controllerOf(set.Object).obstacles, ofEvents(s, set)...)...)
		}
		if len(sets) == 0 && c.wanted > 0 {
			w.Obstacles = append(w.Obstacles, obstacle("the Deployment has no ReplicaSet; kube-controller-manager creates it, unless spec.paused is true"))
		}
	}
	existing, running := 0, 0
	for _, candidate := range s.Pods {
		owner := metav1.GetControllerOf(candidate)
		if owner == nil || candidate.Namespace != object.GetNamespace() || !slices.Contains(owners, owner.UID) || snapshot.Finished(candidate) {
			continue
		}
		existing++
		if Runs(candidate) {
			running++
		} else if pod == nil {
			pod = candidate
		}
	}
	w.Sentence = fmt.Sprintf("wants %d %s; %d exist, %d of them run", c.wanted, pods(c.wanted), existing, running)
	if c.ended > 0 {
		w.Sentence += fmt.Sprintf(", and %d have ended", c.ended)
	}
	if pod == nil && existing < c.wanted {
		return w, podOf(object), true
	}
	if c.wanted > 0 && existing >= c.wanted {
		w.Obstacles = nil // all pods were created, so these are old
	}
	return w, pod, false
}

// addedPods returns how many pods of a manifest the snapshot has, and the last one.
func addedPods(s *snapshot.Snapshot, object *snapshot.Workload) (count int, last *corev1.Pod) {
	if !object.IsManifest() {
		return 0, nil
	}
	for _, pod := range s.Pods {
		if metav1.IsControlledBy(pod, object) {
			count, last = count+1, pod
		}
	}
	return count, last
}

func pods(count int) string {
	if count == 1 {
		return "pod"
	}
	return "pods"
}

// controllerOf returns what the object says of itself.
func controllerOf(object metav1.Object) controller {
	switch o := object.(type) {
	case *appsv1.Deployment:
		c := controller{wanted: int(ptr.Deref(o.Spec.Replicas, 1))}
		for _, condition := range o.Status.Conditions {
			c.add(string(condition.Type), condition.Status, condition.Reason, condition.Message)
		}
		return c
	case *appsv1.ReplicaSet:
		c := controller{wanted: int(ptr.Deref(o.Spec.Replicas, 1))}
		for _, condition := range o.Status.Conditions {
			c.add(string(condition.Type), condition.Status, condition.Reason, condition.Message)
		}
		return c
	case *appsv1.StatefulSet:
		return controller{wanted: int(ptr.Deref(o.Spec.Replicas, 1))}
	case *appsv1.DaemonSet:
		return controller{wanted: int(o.Status.DesiredNumberScheduled)}
	case *batchv1.Job:
		return readJob(o)
	}
	return controller{}
}

func readJob(job *batchv1.Job) controller {
	c := controller{wanted: int(ptr.Deref(job.Spec.Parallelism, 1)), ended: int(job.Status.Succeeded)}
	if completions := job.Spec.Completions; completions != nil {
		c.wanted = max(min(c.wanted, int(*completions)-c.ended), 0)
	}
	if ptr.Deref(job.Spec.Suspend, false) {
		o := obstacle("the Job is suspended: spec.suspend is true")
		o.Hint = "a queue such as Kueue sets spec.suspend to false when it admits the Job; without a queue, set it yourself"
		c.obstacles = append(c.obstacles, o)
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			c.wanted = 0
		}
		if condition.Type != batchv1.JobSuspended {
			c.add(string(condition.Type), condition.Status, condition.Reason, condition.Message)
		}
	}
	return c
}

// add adds a condition that says why there are no pods.
func (c *controller) add(kind string, status corev1.ConditionStatus, reason, text string) {
	fails := kind == string(appsv1.DeploymentReplicaFailure) || kind == string(batchv1.JobFailed) || kind == string(batchv1.JobFailureTarget)
	if fails && status == corev1.ConditionTrue {
		c.obstacles = append(c.obstacles, obstacle("condition %s: %s", kind, joined(reason, text)))
	}
}

// replicaSetsOf returns the ReplicaSets of a Deployment that should have pods.
func replicaSetsOf(s *snapshot.Snapshot, deployment metav1.Object) (sets []*snapshot.Workload) {
	for _, workload := range s.Workloads {
		if workload.Kind == "ReplicaSet" && metav1.IsControlledBy(workload, deployment) && workload.Pods() > 0 {
			sets = append(sets, workload)
		}
	}
	return sets
}

// podOf returns a pod as a controller makes it, with the defaults of an API server.
func podOf(workload *snapshot.Workload) *corev1.Pod {
	pod := workload.Pod(workload.Templates[0])
	pod.Name = workload.GetName() + "-new"
	if err := new(snapshot.Snapshot).Add(pod, ""); err != nil {
		panic(err) // impossible: the snapshot is empty, and the pod has a name
	}
	return pod
}
