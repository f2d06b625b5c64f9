package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// workloads were written for the kubelet's static managers: IMAGE, NODE and CPUS are replaced.
const workloads = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: deployment}
spec:
  replicas: 1
  selector: {matchLabels: {app: deployment}}
  template:
    metadata: {labels: {app: deployment}}
    spec:
      nodeSelector: {kubernetes.io/hostname: NODE}
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      initContainers:
      - {name: init, image: IMAGE, command: [/bin/true], resources: {limits: {cpu: 100m, memory: 16Mi}}}
      containers:
      - {name: main, image: IMAGE, command: [/bin/sleep, "2147483647"], resources: {limits: {cpu: CPUS, memory: 64Mi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set}
spec:
  serviceName: set
  replicas: 1
  selector: {matchLabels: {app: set}}
  template:
    metadata: {labels: {app: set}}
    spec:
      nodeSelector: {kubernetes.io/hostname: NODE}
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: IMAGE, command: [/bin/sleep, "2147483647"], resources: {limits: {cpu: CPUS, memory: 64Mi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    spec:
      nodeSelector: {kubernetes.io/hostname: NODE}
      hostNetwork: true
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: IMAGE, command: [/bin/sleep, "2147483647"], resources: {limits: {cpu: CPUS, memory: 64Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: large}
spec:
  containers:
  - {name: main, image: IMAGE, command: [/bin/sleep, "2147483647"], resources: {limits: {cpu: "1000", memory: 64Mi}}}
`

var _ = Describe("workloads for static managers, unchanged", withDevices, atLength, func() {
	It("have exclusive CPUs of one NUMA node each where their namespace asks for it, and are untouched elsewhere", func(ctx context.Context) {
		threads := node.zones[0].threadsPerCore
		text := strings.NewReplacer("IMAGE", *image, "NODE", node.name, "CPUS", fmt.Sprint(threads)).Replace(workloads)
		asks, plain := createNamespace(ctx, "unchanged"), createNamespace(ctx, "untouched")
		askForTranslation(ctx, asks)
		for _, namespace := range []string{asks, plain} {
			apply(ctx, namespace, "workloads.yaml", text)
			waitRunningPods(ctx, namespace, 3)
		}

		pods, err := listPods(ctx, asks)
		Expect(err).NotTo(HaveOccurred())
		Expect(pods).To(HaveLen(4))
		s := snapshot(ctx)
		for i := range pods {
			if pod := &pods[i]; pod.Name != "large" {
				Expect(pod.Status.QOSClass).To(Equal(corev1.PodQOSGuaranteed), "pod %s", pod.Name)
				results := onlyClaim(ctx, pod).Status.Allocation.Devices.Results
				Expect(results).To(HaveLen(1), "results of the claim of pod %s", pod.Name)
				expectHeld(s, pod, zoneOf(results[0].Device).id, threads)
				expectQuotas(ctx, inKernel(s, pod).Cgroup, noQuota, noQuota)
			}
		}
		large, err := readPod(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: asks, Name: "large"}})
		Expect(err).NotTo(HaveOccurred())
		expectPending(ctx, large, "Insufficient cpu")

		pods, err = listPods(ctx, plain)
		Expect(err).NotTo(HaveOccurred())
		for _, pod := range pods {
			Expect(pod.Spec.ResourceClaims).To(BeEmpty(), "claims of pod %s", pod.Name)
			Expect(pod.Annotations).NotTo(HaveKey(translate.Annotation), "annotations of pod %s", pod.Name)
		}
	})
})

// ofRMD was written for the RMD operator: IMAGE, NODE and CPUS are replaced.
const ofRMD = `
apiVersion: v1
kind: Pod
metadata:
  name: rmd
  annotations: {main_cache_min: "2", main_pstate_ratio: "0.01"} # of branch misses
spec:
  nodeSelector: {kubernetes.io/hostname: NODE}
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: IMAGE, command: [/bin/sleep, "2147483647"], resources: {limits: {cpu: CPUS, memory: 64Mi, intel.com/l3_cache_ways: 2}}}
`

var _ = Describe("a pod for the RMD operator, unchanged", withDevices, atLength, func() {
	It("has its cache ways where its namespace asks for it, and frequencies stay as they are", func(ctx context.Context) {
		threads, before := node.zones[0].threadsPerCore, cpuSettings(ctx)
		namespace := createNamespace(ctx, "rmd")
		askForTranslation(ctx, namespace)
		apply(ctx, namespace, "pod.yaml", strings.NewReplacer("IMAGE", *image, "NODE", node.name, "CPUS", fmt.Sprint(threads)).Replace(ofRMD))
		pod := waitRunning(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rmd"}})
		cpus := cpusOfContainer(ctx, pod)
		Expect(cpus.Size()).To(Equal(threads), "CPUs %s of pod %s", cpus, pod.Name)
		expectWays(ctx, pod, 2, 100)
		Expect(cpuSettings(ctx)).To(Equal(before))
		beginDelete(ctx, pod)
		expectGone(ctx, pod, before)
	})
})

// askForTranslation gives the new pods of a namespace claims.
func askForTranslation(ctx context.Context, namespace string) {
	GinkgoHelper()
	label := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, translate.Label, translate.LabelOn)
	_, err := cluster.Kubernetes.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, []byte(label), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}
