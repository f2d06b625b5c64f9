package diagnosis

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/migration"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// scheduleTime is how long a scheduler may take to look at a new pod, before that is a
// finding.
const scheduleTime = 10 * time.Minute

// numaScheduler finds pods that wait for a scheduler that knows NUMA nodes and does not run. A
// scheduler that has tried a pod says so in the condition PodScheduled.
func numaScheduler(f *Facts) (findings []Finding) {
	for _, name := range migration.NUMASchedulers() {
		var pods []string
		longest := time.Duration(0)
		for _, pod := range f.Objects.Waiting() {
			waits := f.Time.Sub(pod.CreationTimestamp.Time)
			tried := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
			if pod.Spec.SchedulerName != name || tried || pod.CreationTimestamp.IsZero() || waits < scheduleTime {
				continue
			}
			pods, longest = append(pods, pod.Namespace+"/"+pod.Name), max(longest, waits)
		}
		if len(pods) > 0 {
			findings = append(findings, Finding{
				Component: "Pod " + message.First(pods, 3), Setting: "schedulerName",
				Expected: "a scheduler that runs, such as " + corev1.DefaultSchedulerName,
				Detected: fmt.Sprintf("%s, which has not looked at a pod for %s", name, longest.Round(time.Minute)),
			})
		}
	}
	return findings
}
