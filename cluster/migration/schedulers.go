package migration

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NUMASchedulers returns the names that schedulers with a plugin for NodeResourceTopology have
// by default: those of scheduler-plugins and of the NUMA Resources Operator.
func NUMASchedulers() []string { return []string{"topo-aware-scheduler", "topology-aware-scheduler"} }

// scheduled reports whether objects of the kind are pods or make pods.
func scheduled(kind string) bool {
	return slices.Contains([]string{"Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob"}, kind)
}

// podSpec is the spec of a pod, of its template, or of the template of its Job.
type podSpec struct {
	SchedulerName string `json:"schedulerName"`
	Template      struct {
		Spec struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"spec"`
	} `json:"template"`
	JobTemplate struct {
		Spec struct {
			Template struct {
				Spec struct {
					SchedulerName string `json:"schedulerName"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	} `json:"jobTemplate"`
}

// addSchedulers lists pods, and what makes pods, that name a scheduler that will be gone.
func (p *plan) addSchedulers() {
	gone := NUMASchedulers()
	for i := range p.sources {
		var object struct {
			Spec podSpec `json:"spec"`
		}
		if s := &p.sources[i]; s.Kind == schedulerKind && s.Group == operatorGroup && s.decode(&object) == nil {
			gone = append(gone, object.Spec.SchedulerName)
		}
	}
	for i := range p.sources {
		s := &p.sources[i]
		var object struct {
			Spec podSpec `json:"spec"`
		}
		if !scheduled(s.Kind) || s.decode(&object) != nil {
			continue
		}
		for path, name := range map[string]string{
			"spec.schedulerName":                                object.Spec.SchedulerName,
			"spec.template.spec.schedulerName":                  object.Spec.Template.Spec.SchedulerName,
			"spec.jobTemplate.spec.template.spec.schedulerName": object.Spec.JobTemplate.Spec.Template.Spec.SchedulerName,
		} {
			if name != "" && slices.Contains(gone, name) {
				p.add(s.String(), Line{
					Kind: s.Kind, Field: path, Value: name, Outcome: ByHand,
					Says: fmt.Sprintf("without that scheduler, new pods stay Pending for ever: set it to %s, or remove it, before that scheduler is removed", corev1.DefaultSchedulerName),
				})
			}
		}
	}
}
