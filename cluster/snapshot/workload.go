package snapshot

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// DaemonSet is the kind of a workload with a pod on each node.
const DaemonSet = "DaemonSet"

const cronJob = "CronJob"

// Workload is an object whose controller makes pods of templates.
type Workload struct {
	metav1.Object

	Kind, APIVersion string
	// Templates has one template. A JobSet has one for each of its replicatedJobs.
	Templates []Template
}

// Template is a template of pods in a workload.
type Template struct {
	*corev1.PodTemplateSpec

	Path string // of the template in the workload
	Job  string // name of the job in a JobSet, else ""
	// Pods is the number of pods that run at the same time, 0 for a DaemonSet. For a
	// CronJob, it is the number of pods of one run.
	Pods int
}

// newWorkload returns nil if the object is no workload that a snapshot holds.
func newWorkload(object metav1.Object) *Workload {
	const core, apps, batch, path = "v1", "apps/v1", "batch/v1", "spec.template"
	one := func(kind, apiVersion, path string, template *corev1.PodTemplateSpec, pods int) *Workload {
		return &Workload{object, kind, apiVersion, []Template{{template, path, "", pods}}}
	}
	switch o := object.(type) {
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			o.Spec.Template = &corev1.PodTemplateSpec{}
		}
		return one("ReplicationController", core, path, o.Spec.Template, count(o.Spec.Replicas, false))
	case *appsv1.Deployment:
		return one("Deployment", apps, path, &o.Spec.Template, count(o.Spec.Replicas, o.Spec.Paused))
	case *appsv1.ReplicaSet:
		return one("ReplicaSet", apps, path, &o.Spec.Template, count(o.Spec.Replicas, false))
	case *appsv1.StatefulSet:
		return one("StatefulSet", apps, path, &o.Spec.Template, count(o.Spec.Replicas, false))
	case *appsv1.DaemonSet:
		return one(DaemonSet, apps, path, &o.Spec.Template, 0)
	case *batchv1.Job:
		return one("Job", batch, path, &o.Spec.Template, parallel(o.Spec))
	case *batchv1.CronJob:
		pods := parallel(o.Spec.JobTemplate.Spec)
		if ptr.Deref(o.Spec.Suspend, false) {
			pods = 0
		}
		return one(cronJob, batch, "spec.jobTemplate."+path, &o.Spec.JobTemplate.Spec.Template, pods)
	case *jobSet:
		return o.workload()
	}
	return nil
}

// Pods is the number of pods that run at the same time.
func (w *Workload) Pods() (sum int) {
	for _, template := range w.Templates {
		sum += template.Pods
	}
	return sum
}

// PodPrefix begins the names of the pods of a template.
func (w *Workload) PodPrefix(template Template) string {
	if template.Job == "" {
		return w.GetName()
	}
	return w.GetName() + "-" + template.Job
}

// Pod returns a pod of a template, without a name. Its controller is the workload.
func (w *Workload) Pod(template Template) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.GenerateName, pod.Namespace = "", "", w.GetNamespace()
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: w.APIVersion, Kind: w.Kind, Name: w.GetName(), UID: w.GetUID(), Controller: ptr.To(true),
	}}
	defaultPod(pod) // an API server sets defaults of requests in pods, but not in templates
	return pod
}

// IsManifest reports whether the workload is a manifest. The pods of a workload that a
// cluster has are objects of that cluster, and so are those of a ReplicaSet or Job that
// has a controller itself.
func (w *Workload) IsManifest() bool {
	return w.GetUID() == madeUpUID(identityOf(w)) && metav1.GetControllerOf(w) == nil
}

// MadeBy returns the workload of the snapshot that has made this one, or nil.
func (s *Snapshot) MadeBy(w *Workload) *Workload {
	owner := metav1.GetControllerOf(w)
	if owner == nil {
		return nil
	}
	i := slices.IndexFunc(s.Workloads, func(other *Workload) bool {
		return other.Kind == owner.Kind && other.GetName() == owner.Name && other.GetNamespace() == w.GetNamespace()
	})
	if i < 0 {
		return nil
	}
	return s.Workloads[i]
}

// count is a number of replicas, 1 by default.
func count(replicas *int32, paused bool) int {
	if paused {
		return 0
	}
	return max(int(ptr.Deref(replicas, 1)), 0)
}

// parallel is how many pods of a job run at the same time.
func parallel(job batchv1.JobSpec) int {
	pods := count(job.Parallelism, ptr.Deref(job.Suspend, false))
	if job.Completions != nil {
		pods = min(pods, count(job.Completions, false))
	}
	return pods
}
