package migration

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NUMASchedulers returns names that only schedulers with a plugin for NodeResourceTopology
// have, such as in the examples of the NUMA Resources Operator.
func NUMASchedulers() []string { return []string{"topo-aware-scheduler", "topology-aware-scheduler"} }

// pluginsScheduler is the name by default in the chart of scheduler-plugins. It is also that of
// a scheduler for other things, where nothing writes NodeResourceTopologies.
const pluginsScheduler = "scheduler-plugins-scheduler"

// scheduled reports whether objects of the kind are pods or make pods.
func scheduled(kind string) bool {
	return slices.Contains([]string{"Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob"}, kind)
}

// podSpec is the spec of a pod, of its template, or of the template of its Job.
type podSpec struct {
	SchedulerName         string
	Template, JobTemplate *struct{ Spec podSpec }
}

// named returns the path of the scheduler's name, and the name.
func (s podSpec) named(path string) (at, name string) {
	switch {
	case s.JobTemplate != nil:
		return s.JobTemplate.Spec.named(path + ".jobTemplate.spec")
	case s.Template != nil:
		return s.Template.Spec.named(path + ".template.spec")
	}
	return path + ".schedulerName", s.SchedulerName
}

// addSchedulers lists pods, and what makes pods, that name a scheduler that will be gone.
func (p *plan) addSchedulers() {
	gone := NUMASchedulers()
	for i := range p.sources {
		var object struct{ Spec podSpec }
		switch s := &p.sources[i]; {
		case s.Kind == topologyKind:
			gone = append(gone, pluginsScheduler)
		case s.Kind == schedulerKind && s.Group == operatorGroup && s.decode(&object) == nil && object.Spec.SchedulerName != "":
			gone, p.schedulers = append(gone, object.Spec.SchedulerName), append(p.schedulers, object.Spec.SchedulerName)
		}
	}
	for i := range p.sources {
		s := &p.sources[i]
		var object struct{ Spec podSpec }
		if !scheduled(s.Kind) || s.decode(&object) != nil {
			continue
		}
		if path, name := object.Spec.named("spec"); slices.Contains(gone, name) {
			p.schedulers = append(p.schedulers, name)
			p.add(s.String(), Line{
				Kind: s.Kind, Field: path, Value: name, Outcome: ByHand,
				Says: fmt.Sprintf("without that scheduler, new pods stay Pending for ever: set it to %s, or remove it, before the namespace is labelled", corev1.DefaultSchedulerName),
			})
		}
	}
}
