package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// logLines is how much of the driver's log a failure shows.
const logLines = 80

// After a failure: everything a person would ask for next. It runs before the
// spec's namespace is removed.
var _ = JustAfterEach(func(ctx context.Context) {
	if !CurrentSpecReport().Failed() || observer == nil {
		return
	}
	reportNamespaces(ctx)
	reportDriver(ctx)
	reportProcesses(ctx)
})

// reportProcesses ends the suite if the node has not answered for some time: every
// other spec would fail for that, too.
func reportProcesses(ctx context.Context) {
	var s kernel.Snapshot
	err := wait.PollUntilContextTimeout(ctx, pollInterval, eventuallyTimeout, true, func(ctx context.Context) (done bool, err error) {
		s, err = observer.Snapshot(ctx)
		if err != nil {
			GinkgoWriter.Println("snapshot:", err)
		}
		return err == nil, nil
	})
	if err != nil {
		AbortSuite("the node does not answer any more")
	}
	for _, process := range s.Processes {
		GinkgoWriter.Printf("process %d cpus %s mems %s exclusive %s partition %s in %s\n",
			process.PID, process.CPUs, process.Mems, process.ExclusiveCPUs, process.Partition, process.Cgroup)
	}
}

// reportNamespaces prints pods, claims and events of the suite's namespaces.
func reportNamespaces(ctx context.Context) {
	namespaces, err := cluster.Kubernetes.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		GinkgoWriter.Println("list namespaces:", err)
		return
	}
	for _, namespace := range namespaces.Items {
		name := namespace.Name
		if name != *driverNamespace && namespace.GenerateName == "" {
			continue
		}
		if pods, err := cluster.Kubernetes.CoreV1().Pods(name).List(ctx, metav1.ListOptions{}); err == nil {
			for _, pod := range pods.Items {
				dump("pod", name, pod.Name, pod.Status)
			}
		}
		if claims, err := cluster.Kubernetes.ResourceV1().ResourceClaims(name).List(ctx, metav1.ListOptions{}); err == nil {
			for _, claim := range claims.Items {
				dump("claim", name, claim.Name, claim.Status)
			}
		}
		reportEvents(ctx, name)
	}
}

func reportEvents(ctx context.Context, namespace string) {
	events, err := cluster.Kubernetes.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		GinkgoWriter.Println("list events:", err)
		return
	}
	for _, event := range events.Items {
		GinkgoWriter.Printf("event %s %s %s/%s: %s: %s\n", event.LastTimestamp.Format("15:04:05"),
			event.Type, namespace, event.InvolvedObject.Name, event.Reason, event.Message)
	}
}

// reportDriver prints the end of the driver's log, of this and the last run.
func reportDriver(ctx context.Context) {
	pods, err := driverPods(ctx)
	if err != nil {
		GinkgoWriter.Println("list driver pods:", err)
		return
	}
	for _, pod := range pods {
		for _, previous := range []bool{true, false} {
			lines := int64(logLines)
			log, err := cluster.Kubernetes.CoreV1().Pods(pod.Namespace).
				GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: &lines, Previous: previous}).DoRaw(ctx)
			if err == nil {
				GinkgoWriter.Printf("log of driver %s (previous run: %t):\n%s\n", pod.Name, previous, log)
			}
		}
	}
}

// dump prints an object's status as YAML.
func dump(kind, namespace, name string, status any) {
	text, err := yaml.Marshal(status)
	if err != nil {
		text = fmt.Appendf(nil, "%v", err)
	}
	GinkgoWriter.Printf("%s %s/%s:\n%s\n", kind, namespace, name, text)
}
