package manifest

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Workload is what has pods with a claim each.
type Workload struct {
	Kind     string   // Pod, Deployment, StatefulSet or Job
	Image    string   // of the only container
	Command  []string // what it runs instead of what the image says
	Replicas int32    // how many pods, 1 or more; a Pod is 1. A Job runs all of them side by side
}

// podSet is what Deployments and StatefulSets have.
type podSet struct {
	Replicas    int32                `json:"replicas"`
	Selector    metav1.LabelSelector `json:"selector"`
	ServiceName string               `json:"serviceName,omitempty"`
	Template    podTemplate          `json:"template"`
}

type jobSet struct {
	Completions int32       `json:"completions"`
	Parallelism int32       `json:"parallelism"`
	Template    podTemplate `json:"template"`
}

type podTemplate struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata,omitzero"`
	Spec corev1.PodSpec `json:"spec"`
}

// label names the workload of a pod.
const label = "app.kubernetes.io/name"

// Objects are the workload and the ResourceClaimTemplate of its claims, which has its name.
// Each pod requests what its claim holds.
func (w Workload) Objects(name Metadata, wish Wish) ([]Object, error) {
	template, err := Template(name, wish)
	if err != nil {
		return nil, err
	}
	if problems := validation.IsValidLabelValue(name.Name); len(problems) > 0 {
		return nil, fmt.Errorf("name %q: %s", name.Name, problems[0])
	}
	switch {
	case w.Image == "":
		return nil, errors.New("there is no image: want the image of the container")
	case len(wish.Hugepages) > 0 && wish.CPUs == 0 && wish.Memory.Sign() == 0:
		return nil, errors.New("a pod with hugepages must request cpus or memory: want one of them as well")
	case w.Replicas < 1:
		return nil, fmt.Errorf("%d replicas: want 1 or more", w.Replicas)
	}
	pod := wish.pod(name.Name, w)
	labelled := podTemplate{Spec: pod}
	labelled.Metadata.Labels = map[string]string{label: name.Name}
	set := podSet{Replicas: w.Replicas, Selector: metav1.LabelSelector{MatchLabels: labelled.Metadata.Labels}, Template: labelled}
	group, spec := appsv1.SchemeGroupVersion, any(set)
	switch w.Kind {
	case "Pod":
		group, spec = corev1.SchemeGroupVersion, pod
	case "StatefulSet":
		set.ServiceName = name.Name
		spec = set
	case "Job":
		job := jobSet{w.Replicas, w.Replicas, podTemplate{Spec: pod}}
		job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		group, spec = batchv1.SchemeGroupVersion, job
	}
	workload := Object{metav1.TypeMeta{APIVersion: group.String(), Kind: w.Kind}, name, spec}
	return []Object{template, workload}, nil
}

// pod is a pod whose container has a claim of the template, and requests as much. Without a
// limit of hugepages, it would get none.
func (w Wish) pod(template string, of Workload) corev1.PodSpec {
	const claim = "near"
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	add := func(list corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
		if amount.Mul(int64(w.Shares)); amount.Sign() > 0 {
			list[name] = amount
		}
	}
	add(requests, corev1.ResourceCPU, *resource.NewQuantity(w.CPUs, resource.DecimalSI))
	add(requests, corev1.ResourceMemory, w.Memory.DeepCopy())
	for size, amount := range w.Hugepages {
		add(requests, corev1.ResourceName(corev1.ResourceHugePagesPrefix+size), amount.DeepCopy())
		add(limits, corev1.ResourceName(corev1.ResourceHugePagesPrefix+size), amount.DeepCopy())
	}
	return corev1.PodSpec{
		ResourceClaims: []corev1.PodResourceClaim{{Name: claim, ResourceClaimTemplateName: &template}},
		Containers: []corev1.Container{{
			Name: "main", Image: of.Image, Command: of.Command,
			Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: claim}}, Requests: requests, Limits: limits},
		}},
	}
}
