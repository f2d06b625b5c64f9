package driver

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// Containers says which claims and pods have running containers, at one moment. Nothing of it
// comes from the API server: a pod that is deleted there may still run here.
type Containers struct {
	// Pods are the pods of the host that have a cgroup, by UID, and whether a process is in it.
	Pods map[types.UID]bool
	// AllPods says that a pod which is not in Pods has no cgroup. Else it may have one that
	// was not found.
	AllPods bool
	// Unseen says why a pod may be missing in Pods, unless it is because the cgroup of the
	// daemon's own pod is.
	Unseen string
	// Recorded are the claims for which a hook has recorded a cgroup with processes, by UID,
	// and one such cgroup each.
	Recorded map[types.UID]string
}

// use says how containers use what a grant holds; "" if none does.
func (c *Containers) use(g ledger.Grant) string {
	if cgroup := c.Recorded[g.UID]; cgroup != "" {
		return "containers in cgroup " + cgroup + " use it"
	}
	for _, pod := range g.Pods {
		switch runs, found := c.Pods[pod]; {
		case runs:
			return fmt.Sprintf("containers of pod %s run", pod)
		case !found && !c.AllPods:
			return fmt.Sprintf("it is unknown whether containers of pod %s run, because %s", pod, cmp.Or(c.Unseen, "the cgroup of the daemon's own pod was not found"))
		}
	}
	return ""
}

// InUseError says that containers still use what a claim holds.
type InUseError struct{ why string }

func (e *InUseError) Error() string { return e.why }

// usedBy says how containers use what a grant holds; "" if none does. An error of reading is
// a use: what is not known to have ended may run.
func (c *Config) usedBy(grant ledger.Grant) string { return c.asking()(grant) }

// asking returns usedBy for several grants: it looks at the host once, when it is first
// asked.
func (c *Config) asking() func(ledger.Grant) string {
	if c.Containers == nil {
		return func(ledger.Grant) string { return "" }
	}
	look := sync.OnceValues(c.Containers)
	return func(grant ledger.Grant) string {
		seen, err := look()
		if err != nil {
			return fmt.Sprintf("it is unknown whether its containers run: %s", err)
		}
		return seen.use(grant)
	}
}

// podsOf returns the pods for which the claim is reserved, by UID in ascending order, and
// those of the recorded grant that may still run.
func (p *planner) podsOf(claim *resourceapi.ResourceClaim, recorded []types.UID) []types.UID {
	var pods []types.UID
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.APIGroup == "" && consumer.Resource == "pods" {
			pods = append(pods, consumer.UID)
		}
	}
	usedBy := p.config.asking()
	for _, pod := range recorded {
		if !slices.Contains(pods, pod) && usedBy(ledger.Grant{Pods: []types.UID{pod}}) != "" {
			pods = append(pods, pod)
		}
	}
	slices.Sort(pods)
	return slices.Compact(pods)
}

// quotaPods returns those of the grant's pods that have no CPU limit of their own, by UID in
// ascending order. A pod that was read says so now; for others, the record counts.
func quotaPods(all []types.UID, recorded []cdi.QuotaPod, read []*corev1.Pod) (list []cdi.QuotaPod) {
	known := make(map[types.UID]cdi.QuotaPod)
	for _, pod := range recorded {
		known[pod.UID] = pod
	}
	for _, pod := range read {
		delete(known, pod.UID)
		if own := pod.Spec.Resources; own == nil || own.Limits.Cpu().IsZero() {
			known[pod.UID] = cdi.QuotaPod{UID: pod.UID, MilliCPU: milliLimit(pod)}
		}
	}
	for _, uid := range all {
		if pod, is := known[uid]; is {
			list = append(list, pod)
		}
	}
	return list
}

// mostMilli is more than what any machine has.
const mostMilli = 1 << 32

// milliLimit is the CPU quota that the kubelet gives the pod, in thousandths of a CPU; 0 if it
// gives none (ResourceConfigForPod in pkg/kubelet/cm of Kubernetes).
func milliLimit(pod *corev1.Pod) int64 {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Resources.Limits.Cpu().IsZero() {
				return 0
			}
		}
	}
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	if milli := limits.Cpu().MilliValue(); milli > 0 && milli <= mostMilli {
		return milli
	}
	return 0
}
