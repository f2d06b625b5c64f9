package translate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/lint"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// randomPod is a Guaranteed pod, mostly.
func randomPod(r *rand.Rand) *corev1.Pod {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "team", Annotations: map[string]string{}}}
	container := func(name string) corev1.Container {
		limits := corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(pick("1", "2", "3", "4", "6", "8", "12", "100m", "1500m")),
			corev1.ResourceMemory: resource.MustParse(pick("1Gi", "64Mi", "63Mi", "100M", "1", "1500m")),
		}
		add := func(name corev1.ResourceName, amounts ...string) {
			if r.IntN(3) == 0 {
				limits[name] = resource.MustParse(pick(amounts...))
			}
		}
		add("hugepages-2Mi", "2Mi", "64Mi", "6Mi", "0")
		add("hugepages-1Gi", "1Gi", "2Gi")
		add("example.com/gpu", "1", "2", "8", "0")
		add("other.example.com/gpu", "1", "0")
		add("example.com/fpga", "1")
		add("second.example.com/gpu", "1") // another name of a class
		add("old.example.com/nic", "1", "2")
		add("deviceclass.resource.kubernetes.io/gpu.example.com", "1")
		add("intel.com/l3_cache_ways", "0", "1", "2", "5")
		for suffix, values := range map[string][]string{
			"_cache_min": {"0", "1", "2"}, "_policy": {"gold", "silver", "bronze"}, "_mba_percentage": {"50"}, "_mba_mbps": {"100"}, "_pstate_ratio": {"1.5"},
		} {
			if r.IntN(4) == 0 {
				pod.Annotations[name+suffix] = pick(values...)
			}
		}
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits.DeepCopy()}}
	}
	// Containers may have names of the form that requests have.
	suffix := func() string {
		return pick("", "", "--v-1", "--cache-2", "--gpu-0", strings.Repeat("x", 61), strings.Repeat("x", 54)+"--gpu-0")
	}
	for i := range 1 + r.IntN(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, container(fmt.Sprint("c", i)+suffix()))
	}
	for i := range r.IntN(3) {
		init := container(fmt.Sprint("i", i) + suffix())
		if r.IntN(2) == 0 {
			always := corev1.ContainerRestartPolicyAlways
			init.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, init)
	}
	return pod
}

// Whatever a pod asks for: nothing is wrong with its claim, its requests are what the claim
// may hold, and it names the same template each time.
func TestRandomTranslationsAreRight(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 50))
	const pods = 400
	translated, static, failed := 0, 0, map[string]int{}
	for n := range pods {
		pod := randomPod(r)
		o := translate.Options{
			Scope:          []string{translate.ScopeContainer, translate.ScopePod}[r.IntN(2)],
			Policy:         []string{translate.PolicySingleNUMANode, translate.PolicyRestricted, translate.PolicyBestEffort, translate.PolicyNone}[r.IntN(4)],
			PartOfCore:     translate.PartOfCoreRound,
			ThreadsPerCore: []int64{1, 2}[r.IntN(2)],
			CPULimit:       []string{translate.CPULimitKeep, translate.CPULimitLift}[r.IntN(2)],
			Twins: map[corev1.ResourceName]string{
				"example.com/gpu": "gpu.example.com", "other.example.com/gpu": "gpu.other.example.com", "second.example.com/gpu": "gpu.example.com", "old.example.com/nic": "a-nic",
			},
		}
		got, err := translate.Pod(pod, o)
		if errors.As(err, new(translate.NotStaticError)) {
			static++
			continue
		}
		if err != nil {
			if strings.HasPrefix(err.Error(), "its template could not be made") {
				t.Fatalf("pod %d, %+v: %v: %+v", n, o, err, pod.Spec)
			}
			failed[err.Error()]++
			continue
		}
		translated++
		if again, err := translate.Pod(pod, o); err != nil || cmp.Diff(got, again) != "" {
			t.Fatalf("pod %d is translated in two ways: %v\n%s", n, err, cmp.Diff(got, again))
		}
		stored := got.Pod.DeepCopy()
		delete(stored.Annotations, translate.Annotation)
		stored.Spec.NodeName = "node-1"
		for _, stored := range []*corev1.Pod{stored, translate.Part(stored)} {
			if name, spec, err := translate.Again(stored, o); err != nil || name != got.Template || cmp.Diff(got.Spec, spec) != "" {
				t.Fatalf("pod %d: what is stored is not translated again: %v\n%s", n, err, output(t, got))
			}
		}
		template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: got.Template, Namespace: pod.Namespace}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: got.Spec}}
		k := known{template: template, threads: o.ThreadsPerCore}
		linter := lint.New(k)
		for _, finding := range append(linter.Template(template), linter.Pod(got.Pod)...) {
			t.Errorf("pod %d, %+v: lint says %s", n, o, finding)
		}
		shares, unresolved := accounting.MostOf(got.Pod, k)
		if mirrored := accounting.Mirror(got.Pod, shares); len(mirrored.Uncounted)+len(mirrored.Short)+len(unresolved) > 0 {
			t.Errorf("pod %d, %+v: the requests lack %v; unknown is %v", n, o, mirrored.Uncounted, unresolved)
		}
		if t.Failed() {
			t.Fatalf("pod %d:\n%s", n, output(t, got))
		}
	}
	t.Logf("%d translated, %d not for static managers, and %d refused for %d reasons", translated, static, pods-translated-static, len(failed))
	if translated < 100 || static < 10 || len(failed) < 3 {
		t.Error("pods are too much alike")
	}
}
