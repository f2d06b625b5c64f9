package translate_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/lint"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

var update = flag.Bool("update", false, "write the translations in testdata")

// input is a pod, and how it is translated; what it leaves out is as in options.
type input struct {
	Options translate.Options `json:"options"`
	Pod     *corev1.Pod       `json:"pod"`
}

func read(t *testing.T, file string) input {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := input{Options: options()}
	if err := yaml.UnmarshalStrict(text, &in); err != nil {
		t.Fatal(err)
	}
	// As the API server does before it asks a webhook.
	for _, list := range [][]corev1.Container{in.Pod.Spec.InitContainers, in.Pod.Spec.Containers} {
		for i := range list {
			if resources := &list[i].Resources; resources.Requests == nil {
				resources.Requests = resources.Limits.DeepCopy()
			}
		}
	}
	return in
}

func options() translate.Options {
	return translate.Options{Scope: translate.ScopeContainer, Policy: translate.PolicySingleNUMANode, PartOfCore: translate.PartOfCoreRound, ThreadsPerCore: 2, CPULimit: translate.CPULimitKeep}
}

// output is a translation in the order in which people read it.
func output(t *testing.T, got translate.Translated) string {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{"notes": got.Notes, "pod": got.Pod, "spec": got.Spec, "template": got.Template})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// known has the classes that are shipped, two of others, and one template.
type known struct {
	accounting.Known
	template *resourceapi.ResourceClaimTemplate
	threads  int64 // of a core
}

func (k known) DeviceClass(name string) *resourceapi.DeviceClass {
	classes, _ := deviceclasses.All()
	for i := range classes {
		if classes[i].Name == name {
			return &classes[i]
		}
	}
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "` + name + `"`}}},
	}}
}
func (k known) ResourceClaim(string, string) *resourceapi.ResourceClaim { return nil }
func (k known) ResourceClaimTemplate(_, name string) *resourceapi.ResourceClaimTemplate {
	if name != k.template.Name {
		return nil
	}
	return k.template
}

func (k known) Steps() accounting.Steps {
	return accounting.Steps{"cpu": *resource.NewQuantity(k.threads, resource.DecimalSI), "memory": resource.MustParse("1Mi"), "hugepages2Mi": resource.MustParse("2Mi"), "hugepages1Gi": resource.MustParse("1Gi")}
}
func (k known) Selectors() *probe.Selectors { return selectors }

var selectors = probe.New()

// The requests of the pod are what its claim may hold, nothing is wrong with the claim, and
// nothing changes if it is translated again.
func TestTranslationsOfPods(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata has %d pods, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".in.yaml"), func(t *testing.T) {
			in := read(t, file)
			before := in.Pod.DeepCopy()
			got, err := translate.Pod(in.Pod, in.Options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, in.Pod); diff != "" {
				t.Errorf("the pod that was given has changed:\n%s", diff)
			}
			golden := strings.TrimSuffix(file, ".in.yaml") + ".out.yaml"
			text := output(t, got)
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("%s, run with -update:\n%s", golden, diff)
			}

			template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: got.Template, Namespace: in.Pod.Namespace}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: got.Spec}}
			k := known{template: template, threads: in.Options.ThreadsPerCore}
			linter := lint.New(k)
			for _, finding := range append(linter.Template(template), linter.Pod(got.Pod)...) {
				t.Errorf("lint says %s", finding)
			}
			shares, unresolved := accounting.MostOf(got.Pod, k)
			if len(unresolved) > 0 {
				t.Errorf("what the claim may hold is not known: %v", unresolved)
			}
			if mirrored := accounting.Mirror(got.Pod, shares); len(mirrored.Uncounted)+len(mirrored.Short) > 0 {
				t.Errorf("the requests of the pod lack %v", mirrored.Uncounted)
			}
			if !strings.Contains(got.Pod.Annotations[translate.Annotation], in.Pod.Spec.Containers[0].Name) {
				t.Errorf("the annotation is %q", got.Pod.Annotations[translate.Annotation])
			}
			var static translate.NotStaticError
			if _, err := translate.Pod(got.Pod, in.Options); !errors.As(err, &static) {
				t.Errorf("translated again: %v", err)
			}
		})
	}
}

// Pods of one shape have one template, whatever else they say.
func TestTemplateIsThatOfTheShape(t *testing.T) {
	in := read(t, "testdata/one.in.yaml")
	first, err := translate.Pod(in.Pod, in.Options)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := translate.Pod(in.Pod, in.Options)
		if err != nil || again.Template != first.Template {
			t.Fatalf("%s, %v, before %s", again.Template, err, first.Template)
		}
	}
	in.Pod.Name, in.Pod.Labels, in.Pod.Spec.Containers[0].Image = "other", map[string]string{"a": "b"}, "other"
	if other, err := translate.Pod(in.Pod, in.Options); err != nil || other.Template != first.Template {
		t.Errorf("%s, %v, before %s", other.Template, err, first.Template)
	}
	in.Pod.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("6")
	in.Pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("6")
	if other, err := translate.Pod(in.Pod, in.Options); err != nil || other.Template == first.Template {
		t.Errorf("%s, %v, before %s", other.Template, err, first.Template)
	}
}

func TestWhyAPodIsNotTranslated(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*corev1.Pod, *translate.Options)
		static bool // the static managers would give it nothing
		want   string
	}{
		{
			"Burstable", func(p *corev1.Pod, _ *translate.Options) { delete(p.Spec.Containers[0].Resources.Limits, "memory") }, false,
			`the pod is not Guaranteed: container "app" has no limit of memory that equals its request`,
		},
		{"request below limit", func(p *corev1.Pod, _ *translate.Options) {
			p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1")
		}, false, `the pod is not Guaranteed: container "app" has no limit of cpu that equals its request`},
		{"parts of CPUs", func(p *corev1.Pod, _ *translate.Options) { set(p, "cpu", "500m") }, false, `no container has whole CPUs`},
		{
			"claims", func(p *corev1.Pod, _ *translate.Options) {
				p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
			}, false,
			`the pod has claims of its own`,
		},
		{
			"bound", func(p *corev1.Pod, _ *translate.Options) { p.Spec.NodeName = "node-1" }, false,
			`the pod is bound to node node-1, and Kubernetes allocates claims when it binds`,
		},
		{
			"Windows", func(p *corev1.Pod, _ *translate.Options) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, false,
			`the pod is for Windows, and only nodes of Linux have zones`,
		},
		{
			"requests of the pod", func(p *corev1.Pod, _ *translate.Options) { p.Spec.Resources = &corev1.ResourceRequirements{} }, false,
			`the pod itself has requests or limits`,
		},
		{
			"part of a core", func(p *corev1.Pod, o *translate.Options) {
				o.PartOfCore = translate.PartOfCoreLeave
				set(p, "cpu", "3")
			}, true,
			`container "app": 3 CPUs are no whole cores of 2 threads`,
		},
		{
			"ways that are too many", func(p *corev1.Pod, _ *translate.Options) { set(p, "intel.com/l3_cache_ways", "65") }, true,
			`container "app": intel.com/l3_cache_ways: 65, allowed are 0 to 64`,
		},
		{"least ways above the most", func(p *corev1.Pod, _ *translate.Options) {
			set(p, "intel.com/l3_cache_ways", "2")
			p.Annotations = map[string]string{"app_cache_min": "3"}
		}, true, `container "app": annotation app_cache_min: "3", allowed are 0 to 2`},
		{"unknown policy", func(p *corev1.Pod, _ *translate.Options) {
			set(p, "intel.com/l3_cache_ways", "2")
			p.Annotations = map[string]string{"app_policy": "platinum"}
		}, true, `container "app": annotation app_policy: "platinum", allowed are gold, silver, bronze`},
		{"bandwidth of shared ways", func(p *corev1.Pod, _ *translate.Options) {
			set(p, "intel.com/l3_cache_ways", "0")
			p.Annotations = map[string]string{"app_mba_mbps": "1000"}
		}, true, `container "app": a bandwidth is only for ways of its own, and the container shares its ways`},
		{"init container with more CPUs", func(p *corev1.Pod, _ *translate.Options) {
			init := *p.Spec.Containers[0].DeepCopy()
			init.Name = "init"
			p.Spec.InitContainers = []corev1.Container{init}
			set(p, "cpu", "2")
		}, true, `init container "init": it wants 4 of cpu, and all main containers have 2`},
		{
			"devices that are too many", func(p *corev1.Pod, o *translate.Options) {
				set(p, "example.com/gpu", "33")
				o.Twins = map[corev1.ResourceName]string{"example.com/gpu": "gpu.example.com"}
			}, true, `container "app": example.com/gpu: 33, allowed are up to 32 devices in a claim`,
		},
		{
			"fewer devices than none", func(p *corev1.Pod, o *translate.Options) {
				set(p, "example.com/gpu", "-1")
				o.Twins = map[corev1.ResourceName]string{"example.com/gpu": "gpu.example.com"}
			}, true, `container "app": -1 of example.com/gpu: want 0 or more`,
		},
		{"class that begins as ways of a cache", func(p *corev1.Pod, o *translate.Options) {
			set(p, "example.com/gpu", "1")
			o.Twins = map[corev1.ResourceName]string{"example.com/gpu": "cache.example.com"}
		}, true, `container "app": example.com/gpu has a class that begins with "cache", which means something else in the name of a request`},
		{"class with the separator", func(p *corev1.Pod, o *translate.Options) {
			set(p, "example.com/gpu", "1")
			o.Twins = map[corev1.ResourceName]string{"example.com/gpu": "gpu--a.example.com"}
		}, true, `container "app": example.com/gpu has a class that begins with "gpu--a", which means something else in the name of a request`},
		{"request with the name of its container", func(p *corev1.Pod, o *translate.Options) {
			set(p, "example.com/gpu", "1")
			p.Spec.Containers[0].Name = strings.Repeat("x", 56) + "--gpu-0"
			o.Twins = map[corev1.ResourceName]string{"example.com/gpu": "gpu.example.com"}
		}, true, `container "` + strings.Repeat("x", 56) + `--gpu-0": its request "` + strings.Repeat("x", 56) + `--gpu-0" would have the name of another one`},
		{"many containers that use GPUs of two makers", func(p *corev1.Pod, o *translate.Options) {
			*o = gpusOfTwoMakers(p, 10)
			set(p, "nvidia.com/gpu", "0")
			set(p, "amd.com/gpu", "1")
		}, true, `its template could not be made from what the pod says then: do many containers use devices whose classes begin with the same word?`},
		{"too many containers at one place", func(p *corev1.Pod, o *translate.Options) {
			o.Scope, o.Policy = translate.ScopePod, translate.PolicyBestEffort
			for i := range 16 {
				more := *p.Spec.Containers[0].DeepCopy()
				more.Name = fmt.Sprintf("c%d", i)
				p.Spec.Containers = append(p.Spec.Containers, more)
			}
		}, true, `a constraint of the claim would name 34 alternatives, allowed are 32`},
		{"unknown scope", func(_ *corev1.Pod, o *translate.Options) { o.Scope = "node" }, true, `scope: "node", allowed are [container pod]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := read(t, "testdata/one.in.yaml")
			test.change(in.Pod, &in.Options)
			_, err := translate.Pod(in.Pod, in.Options)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, want %s", err, test.want)
			}
			if static := new(translate.NotStaticError); errors.As(err, static) == test.static {
				t.Errorf("%v is a NotStaticError: %t", err, !test.static)
			}
		})
	}
}

// gpusOfTwoMakers gives the pod as many containers with a GPU of the second maker.
func gpusOfTwoMakers(pod *corev1.Pod, containers int) translate.Options {
	limits := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse("1")}
	pod.Spec.Containers = nil
	for i := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Resources: corev1.ResourceRequirements{Limits: limits.DeepCopy(), Requests: limits.DeepCopy()}})
	}
	o := options()
	o.Twins = map[corev1.ResourceName]string{"amd.com/gpu": "gpu.amd.com", "nvidia.com/gpu": "gpu.nvidia.com"}
	return o
}

// The names of requests do not say which maker it is.
func TestManyContainersWithDevicesOfOneMaker(t *testing.T) {
	pod := &corev1.Pod{}
	o := gpusOfTwoMakers(pod, 16)
	got, err := translate.Pod(pod, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, spec, err := translate.Again(got.Pod, o); err != nil || spec.Devices.Requests[1].Exactly.DeviceClassName != "gpu.nvidia.com" {
		t.Errorf("%v, %+v", err, spec)
	}
}

// Any container may have a name that looks like that of a request.
func TestContainersWithNamesOfRequests(t *testing.T) {
	for _, name := range []string{"web--v-1", "app--cache-2", "app--gpu-0", "a--b"} {
		in := read(t, "testdata/one.in.yaml")
		in.Options.Twins = map[corev1.ResourceName]string{"example.com/gpu": "gpu.example.com"}
		in.Pod.Spec.Containers[0].Name = name
		for _, gpus := range []string{"0", "2"} {
			set(in.Pod, "example.com/gpu", gpus)
			got, err := translate.Pod(in.Pod, in.Options)
			if err != nil {
				t.Fatalf("%s with %s GPUs: %v", name, gpus, err)
			}
			if _, _, err := translate.Again(got.Pod, in.Options); err != nil {
				t.Errorf("%s with %s GPUs: %v", name, gpus, err)
			}
		}
	}
}

// An init container that runs on the shared CPUs wants none of the claim.
func TestInitContainersOnSharedCPUs(t *testing.T) {
	const gpu = "deviceclass.resource.kubernetes.io/gpu.example.com: 1"
	for name, row := range map[string]struct{ sidecarFirst, init, main, sidecarLast, want string }{
		"less than the main container": {sidecarFirst: "cpu: 2, memory: 1Gi", init: "cpu: 100m, memory: 1Gi", main: "cpu: 500m, memory: 1Gi"},
		// The scheduler counts it beside the sidecar.
		"more than the main container": {sidecarFirst: "cpu: 2, memory: 1Gi", init: "cpu: 900m, memory: 1Gi", main: "cpu: 500m, memory: 1Gi"},
		"a sidecar follows":            {init: "cpu: 500m, memory: 1Gi", main: "cpu: 500m, memory: 1Gi", sidecarLast: "cpu: 2, memory: 1Gi"},
		"more, and a sidecar follows": {
			init: "cpu: 900m, memory: 1Gi", main: "cpu: 500m, memory: 1Gi", sidecarLast: "cpu: 2, memory: 1Gi",
			want: `init container "init": it wants 900m of cpu, and all main containers have 500m`,
		},
		"whole CPUs": {
			sidecarFirst: "cpu: 2, memory: 1Gi", init: "cpu: 1, memory: 1Gi", main: "cpu: 500m, memory: 1Gi",
			want: `init container "init": it wants 1 of cpu, and all main containers have 0`,
		},
		"on the CPUs of the main container": {
			init: "cpu: 2500m, memory: 1Gi", main: "cpu: 2, memory: 1Gi",
			want: `init container "init": it wants 2500m of cpu, and all main containers have 2`,
		},
		"device of a class": {init: "cpu: 2, memory: 1Gi, " + gpu, main: "cpu: 2, memory: 1Gi, " + gpu},
	} {
		t.Run(name, func(t *testing.T) {
			container := func(name, limits, more string) string {
				if limits == "" {
					return ""
				}
				return "{name: " + name + more + ", resources: {limits: {" + limits + "}, requests: {" + limits + "}}}, "
			}
			pod := object.Parse[corev1.Pod](t, "{spec: {initContainers: ["+container("first", row.sidecarFirst, ", restartPolicy: Always")+container("init", row.init, "")+
				container("last", row.sidecarLast, ", restartPolicy: Always")+"], containers: ["+container("main", row.main, "")+"]}}")
			got, err := translate.Pod(pod, options())
			if err != nil || row.want != "" {
				if err == nil || err.Error() != row.want {
					t.Fatalf("%v, want %q", err, row.want)
				}
				return
			}
			template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: got.Template}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: got.Spec}}
			shares, _ := accounting.MostOf(got.Pod, known{template: template, threads: 2})
			if mirrored := accounting.Mirror(got.Pod, shares); mirrored.Changed || len(mirrored.Short) > 0 {
				t.Errorf("the requests lack %v", mirrored.Uncounted)
			}
			if strings.Contains(row.main, gpu) != strings.Contains(strings.Join(got.Notes, "\n"), `container "main" keeps deviceclass.resource.kubernetes.io/gpu.example.com: it has a claim of its own`) {
				t.Errorf("notes %q", got.Notes)
			}
			o := options()
			o.CPULimit = translate.CPULimitLift
			if got, err = translate.Pod(pod, o); err != nil {
				t.Fatal(err)
			}
			for _, container := range got.Pod.Spec.InitContainers {
				if _, limited := container.Resources.Limits["cpu"]; container.Name == "init" && limited != strings.HasSuffix(row.main, "cpu: 500m, memory: 1Gi") {
					t.Errorf("has a limit of CPUs: %t", limited)
				}
			}
		})
	}
}

func set(pod *corev1.Pod, name corev1.ResourceName, amount string) {
	resources := &pod.Spec.Containers[0].Resources
	resources.Limits[name], resources.Requests[name] = resource.MustParse(amount), resource.MustParse(amount)
}

// The scheduler tries all alternatives of a request before it moves an earlier one: a GPU
// would be far from its container if another container had chosen the NUMA node before.
func TestRequestsWithTheFewestPlacesAreFirst(t *testing.T) {
	in := read(t, "testdata/one.in.yaml")
	in.Options.Twins = map[corev1.ResourceName]string{"example.com/gpu": "gpu.example.com"}
	for _, more := range []struct{ name, cpus, gpus string }{{"train", "2", "1"}, {"large", "7", "0"}, {"whole", "8", "0"}} {
		container := *in.Pod.Spec.Containers[0].DeepCopy()
		container.Name = more.name
		limits := corev1.ResourceList{"cpu": resource.MustParse(more.cpus), "memory": resource.MustParse("1Gi"), "example.com/gpu": resource.MustParse(more.gpus)}
		container.Resources = corev1.ResourceRequirements{Limits: limits, Requests: limits.DeepCopy()}
		in.Pod.Spec.Containers = append(in.Pod.Spec.Containers, container)
	}
	got, err := translate.Pod(in.Pod, in.Options)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, request := range got.Spec.Devices.Requests {
		names = append(names, request.Name)
	}
	// 7 CPUs become 8: the order is the same when the pod that is stored is translated again.
	if diff := cmp.Diff([]string{"train", "train--gpu-0", "large", "whole", "app"}, names); diff != "" {
		t.Error(diff)
	}
	if _, again, err := translate.Again(got.Pod, in.Options); err != nil || cmp.Diff(got.Spec, again) != "" {
		t.Errorf("translated again: %v\n%s", err, cmp.Diff(got.Spec, again))
	}
}

// What is in the annotation is for people and their tools.
func TestAnnotationSaysWhichRequestsAContainerUses(t *testing.T) {
	in := read(t, "testdata/init.in.yaml")
	got, err := translate.Pod(in.Pod, in.Options)
	if err != nil {
		t.Fatal(err)
	}
	var uses map[string][]string
	if err := json.Unmarshal([]byte(got.Pod.Annotations[translate.Annotation]), &uses); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"large": {"large", "large--gpu-0", "large--gpu-1"}, "middle": {"middle"}, "small": {"large", "middle"}, "all": {"large", "middle", "large--gpu-0"}, "part": {"large", "middle"}}
	if diff := cmp.Diff(want, uses); diff != "" {
		t.Error(diff)
	}
}

// A template is made of what the pod asks for, and not of what somebody writes elsewhere.
func TestAgainRefusesWhatNoTranslationSays(t *testing.T) {
	in := read(t, "testdata/devices.in.yaml")
	got, err := translate.Pod(in.Pod, in.Options)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*corev1.Pod, *translate.Options){
		"fewer CPUs": func(p *corev1.Pod, _ *translate.Options) { set(p, "cpu", "4") },
		"another name": func(p *corev1.Pod, _ *translate.Options) {
			*p.Spec.ResourceClaims[0].ResourceClaimTemplateName = "numa-" + strings.Repeat("0", 32)
		},
		"another policy": func(_ *corev1.Pod, o *translate.Options) { o.Policy = translate.PolicySingleNUMANode },
		"no twins":       func(_ *corev1.Pod, o *translate.Options) { o.Twins = nil },
		"no claims":      func(p *corev1.Pod, _ *translate.Options) { p.Spec.ResourceClaims = nil },
		"a foreign name": func(p *corev1.Pod, _ *translate.Options) { *p.Spec.ResourceClaims[0].ResourceClaimTemplateName = "own" },
		"fewer devices": func(p *corev1.Pod, _ *translate.Options) {
			p.Spec.Containers[0].Resources.Claims = p.Spec.Containers[0].Resources.Claims[:2]
		},
		"unknown request": func(p *corev1.Pod, _ *translate.Options) {
			p.Spec.Containers[0].Resources.Claims[1].Request = "app--tpu-0"
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod, options := got.Pod.DeepCopy(), in.Options
			change(pod, &options)
			if name, spec, err := translate.Again(pod, options); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %v, %v", name, spec, err)
			}
		})
	}
}

// A container that a webhook adds after the translation has no request, and changes nothing.
func TestAgainLeavesOutWhatWasAddedLater(t *testing.T) {
	in := read(t, "testdata/devices.in.yaml")
	got, err := translate.Pod(in.Pod, in.Options)
	if err != nil {
		t.Fatal(err)
	}
	always := corev1.ContainerRestartPolicyAlways
	pod := got.Pod.DeepCopy()
	added := *in.Pod.Spec.Containers[1].DeepCopy()
	added.Name = "added"
	pod.Spec.Containers = append([]corev1.Container{added}, pod.Spec.Containers...)
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "proxy", RestartPolicy: &always}, corev1.Container{Name: "setup"})
	pod.Spec.ResourceClaims = append([]corev1.PodResourceClaim{{Name: "other", ResourceClaimName: new("other")}}, pod.Spec.ResourceClaims...)
	if name, spec, err := translate.Again(pod, in.Options); err != nil || name != got.Template || cmp.Diff(got.Spec, spec) != "" {
		t.Errorf("%s, %v, want %s", name, err, got.Template)
	}
}

// A device of another driver has no socket, and a constraint would refuse it whichever
// alternative is chosen. Parts of one socket are on one socket nevertheless.
func TestDevicesOfOtherDriversNeedNoSocket(t *testing.T) {
	in := read(t, "testdata/devices.in.yaml")
	in.Options.Scope = translate.ScopeContainer
	got, err := translate.Pod(in.Pod, in.Options)
	if err != nil {
		t.Fatal(err)
	}
	var bound []string
	for _, constraint := range got.Spec.Devices.Constraints {
		if *constraint.MatchAttribute == deviceclasses.FullName(deviceclasses.AttributeSocket) {
			bound = append(bound, strings.Join(constraint.Requests, " "))
		}
	}
	want := []string{"app/one-socket", "app/one-socket app--nic-0", "app-gpu-0/one-socket"}
	if diff := cmp.Diff(want, bound); diff != "" {
		t.Errorf("bound to one socket (-want +got):\n%s", diff)
	}
}

// A class can say itself which extended resource it is for, as for the scheduler.
func TestTwinsAreThoseOfTheSchedulerOrTheAdministrator(t *testing.T) {
	class := func(name, resource string, second int64) *resourceapi.DeviceClass {
		class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(second, 0)}}
		if resource != "" {
			class.Spec.ExtendedResourceName = &resource
		}
		return class
	}
	classes := []*resourceapi.DeviceClass{
		class("none", "", 9), class("new", "example.com/gpu", 2), class("old", "example.com/gpu", 1),
		class("b", "example.com/nic", 1), class("a", "example.com/nic", 1), class("ignored", "example.com/fpga", 1),
	}
	own := map[corev1.ResourceName]string{"example.com/fpga": "own"}
	want := map[corev1.ResourceName]string{"example.com/gpu": "new", "example.com/nic": "a", "example.com/fpga": "own"}
	for range classes {
		classes = append(classes[1:], classes[0])
		if diff := cmp.Diff(want, translate.Options{Twins: own}.WithTwinsOf(classes).Twins); diff != "" {
			t.Error(diff)
		}
	}
	if len(own) != 1 {
		t.Errorf("the twins that were given are now %v", own)
	}
}

func TestTwinsAsText(t *testing.T) {
	want := map[corev1.ResourceName]string{"a.com/gpu": "gpu", "b.com/nic": "nic.b.com", "deviceclass.resource.kubernetes.io/gpu": "gpu"}
	if twins, err := translate.ParseTwins("a.com/gpu=gpu,b.com/nic=nic.b.com,deviceclass.resource.kubernetes.io/gpu=gpu"); err != nil || cmp.Diff(want, twins) != "" {
		t.Errorf("%v, %v", twins, err)
	}
	for text, fault := range map[string]string{
		"":                    `"" is no extended resource with its class`,
		"gpu=a":               `"gpu=a" is no extended resource`,
		"a.com/b c=d":         `"a.com/b c=d" is no extended resource`,
		"a.kubernetes.io/b=c": `"a.kubernetes.io/b=c" is no extended resource`,
		"a.com/b":             `"" is no name of a DeviceClass for a.com/b`,
		"a.com/b=C":           `"C" is no name of a DeviceClass for a.com/b`,
		"a.com/b=c,a.com/b=d": "a.com/b has two classes",
	} {
		if twins, err := translate.ParseTwins(text); err == nil || !strings.HasPrefix(err.Error(), fault) {
			t.Errorf("%q: %v, %v", text, twins, err)
		}
	}
}

// No node runs such a pod, but a webhook is asked about it before the API server refuses it.
func TestHugePodsAreRefusedAtOnce(t *testing.T) {
	in := read(t, "testdata/init.in.yaml")
	in.Options.Twins = map[corev1.ResourceName]string{"example.com/gpu": strings.Repeat("g", 31)}
	for name, change := range map[string]func(*corev1.Pod){
		"init containers": func(p *corev1.Pod) {
			for range 50_000 {
				p.Spec.InitContainers = append(p.Spec.InitContainers, p.Spec.InitContainers[0])
			}
		},
		"containers": func(p *corev1.Pod) {
			for range 50_000 {
				p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
			}
		},
		"requests": func(p *corev1.Pod) {
			for i := range 40 {
				next := *p.Spec.Containers[0].DeepCopy()
				next.Name = fmt.Sprintf("c%d", i)
				delete(next.Resources.Limits, "example.com/gpu")
				p.Spec.Containers = append(p.Spec.Containers, next)
			}
			p.Spec.Containers = p.Spec.Containers[3:]
		},
		"letters of a class": func(*corev1.Pod) {},
	} {
		pod := in.Pod.DeepCopy()
		change(pod)
		begin := time.Now()
		_, err := translate.Pod(pod, in.Options)
		if err == nil || !strings.Contains(err.Error(), "allowed are ") {
			t.Errorf("%s: %v", name, err)
		}
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "numa", ResourceClaimTemplateName: new("numa-" + strings.Repeat("0", 32))}}
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Resources.Claims = []corev1.ResourceClaim{{Name: "numa", Request: "app"}}
		}
		if _, _, err := translate.Again(pod, in.Options); err == nil {
			t.Errorf("%s: translated again", name)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: takes %s", name, took)
		}
	}
}
