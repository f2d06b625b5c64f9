package snapshot

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Names of a JobSet: github.com/kubernetes-sigs/jobset, api/jobset/v1alpha2.
const (
	jobSetKind    = "JobSet"
	jobSetVersion = "jobset.x-k8s.io/v1alpha2"
	jobSetJobs    = "spec.replicatedJobs["
)

// jobSet is a part of a JobSet: its templates of pods, and how many pods they make.
type jobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Suspend        *bool           `json:"suspend"`
		ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
	} `json:"spec"`
}

type replicatedJob struct {
	Name     string                  `json:"name"`
	Replicas *int32                  `json:"replicas"`
	Template batchv1.JobTemplateSpec `json:"template"`
}

func (j *jobSet) workload() *Workload {
	w := &Workload{j, jobSetKind, jobSetVersion, nil}
	for i := range j.Spec.ReplicatedJobs {
		job := &j.Spec.ReplicatedJobs[i]
		pods := count(job.Replicas, ptr.Deref(j.Spec.Suspend, false)) * parallel(job.Template.Spec)
		w.Templates = append(w.Templates, Template{
			&job.Template.Spec.Template, fmt.Sprintf("%s%d].template.spec.template", jobSetJobs, i), job.Name, pods,
		})
	}
	return w
}

// jobSetKnows reports whether an unknown field is in a part of a JobSet that is read whole:
// the templates of jobs. err is a strict decoding error.
func jobSetKnows(err error) bool {
	_, in, found := strings.Cut(err.Error(), jobSetJobs)
	return found && strings.Contains(in, "].template.")
}
