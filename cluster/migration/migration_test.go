package migration

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func sources(t *testing.T, name, text string) []Source {
	t.Helper()
	list, err := Read(name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func made(t *testing.T, list ...Source) Plan {
	t.Helper()
	plan, err := Make(list)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// kubectl get -o json twice into one file.
func TestEveryValueOfAFileIsRead(t *testing.T) {
	if list := sources(t, "all.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}
{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`); len(list) != 2 {
		t.Errorf("read %v, want two Nodes", list)
	}
}

// Each origin, with every field that it has.
func TestPlansGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.*ml")
	if err != nil || len(inputs) < 5 {
		t.Fatal(inputs, err)
	}
	for _, input := range inputs {
		plan := made(t, sources(t, input, files.Read(t, input))...)
		var b strings.Builder
		for _, line := range plan.Lines {
			fmt.Fprintf(&b, "%s | %s %s | %s | %s | %s\n", line.Outcome, line.Kind, strings.Join(line.Sources, " "), line.Field, line.Value, line.Says)
		}
		for _, file := range plan.Files {
			fmt.Fprintf(&b, "\n--- %s: %s\n%s", file.Name, file.For, file.Text)
		}
		for i, step := range plan.Steps {
			fmt.Fprintf(&b, "\n%d. %s\n   breaks: %s\n", i+1, step.Do, step.Breaks)
		}
		files.Golden(t, strings.TrimSuffix(input, filepath.Ext(input))+".golden", b.String())
	}
}

// The NodeConfig is one that the daemon reads.
func TestNodeConfigIsAccepted(t *testing.T) {
	for _, input := range []string{"testdata/kubelet.yaml", "testdata/openshift.yaml", "testdata/rdt.yaml", "testdata/rmd.toml"} {
		plan := made(t, sources(t, input, files.Read(t, input))...)
		if plan.Files[0].Name != "node.yaml" {
			t.Fatalf("%s: files begin with %s", input, plan.Files[0].Name)
		}
		if _, err := deviceclasses.DecodeNodeConfig([]byte(plan.Files[0].Text)); err != nil {
			t.Errorf("%s: %v", input, err)
		}
	}
}

// The table knows every field that the API of kubelets has.
func TestEveryFieldOfAKubeletIsKnown(t *testing.T) {
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[kubeletconfig.KubeletConfiguration]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, known := table[field{kubeletGroup, kubeletKind, name}]; !known && name != "" && name != "kind" && name != "apiVersion" {
			t.Errorf("the table has no field %s of a KubeletConfiguration", name)
		}
		fields = append(fields, name)
	}
	for at := range table {
		name, _, _ := strings.Cut(at.path, ".")
		if at.kind == kubeletKind && name != "" && !slices.Contains(fields, name) {
			t.Errorf("a KubeletConfiguration has no field %s", name)
		}
	}
}

// No field is left out: each field of a source is in a line, or in that of a field around it.
func TestUnknownFieldsAreListed(t *testing.T) {
	plan := made(t, sources(t, "worker-1.yaml", `
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
cpuManagerPolicy: dynamic
cpuManagerPolicyOptions: {new-option: "true", full-pcpus-only: "false"}
topologyManagerPolicyOptions: [list]
newField: 0
---
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v2
---
kind: NUMAResourcesScheduler
apiVersion: nodetopology.openshift.io/v1
metadata: {name: a}
spec: {scoringStrategy: LeastAllocated}
`)...)
	var got []string
	for _, line := range plan.Lines {
		got = append(got, fmt.Sprintf("%s %s=%s", line.Outcome, line.Field, line.Value))
	}
	want := []string{
		"unknown cpuManagerPolicy=dynamic", "unknown cpuManagerPolicyOptions.new-option=true", "unknown newField=0",
		`unknown topologyManagerPolicyOptions=["list"]`, "unknown spec.scoringStrategy=LeastAllocated",
		"by hand cpuManagerPolicy=-", "gone cpuManagerPolicyOptions.full-pcpus-only=false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What most kubelets have is for all nodes; the rest is in profiles.
func TestKubeletsThatDiffer(t *testing.T) {
	kubelet := func(node, fields string) Source {
		s := sources(t, node+".yaml", "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"+fields)[0]
		return s
	}
	node := sources(t, "nodes.yaml", "kind: Node\napiVersion: v1\nmetadata: {name: c, labels: {kubernetes.io/hostname: host-c}}")[0]
	for _, row := range []struct {
		what string
		list []Source
		want string
	}{
		{"all have the same", []Source{kubelet("a", "reservedSystemCPUs: '0,1'"), kubelet("b", "reservedSystemCPUs: 0-1")}, "reservedCPUs: 0-1\n"},
		{"one differs", []Source{kubelet("a", "reservedSystemCPUs: 0-1"), kubelet("b", "reservedSystemCPUs: 0-1"), kubelet("c", "reservedSystemCPUs: 0-3"), node}, `
profiles:
- nodeSelector:
    kubernetes.io/hostname: host-c
  reservedCPUs: 0-3
reservedCPUs: 0-1
`},
		{"one has none", []Source{kubelet("a", "reservedSystemCPUs: 0-1"), kubelet("b", "")}, `
profiles:
- nodeSelector:
    kubernetes.io/hostname: a
  reservedCPUs: 0-1
`},
	} {
		plan := made(t, row.list...)
		want := "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n" + strings.TrimPrefix(row.want, "\n")
		if len(plan.Files) != 2 || plan.Files[0].Text != want {
			t.Errorf("%s: files %v, want\n%s", row.what, plan.Files, want)
		}
	}
}

// Policies that differ become the strictest, and a line says so.
func TestPoliciesThatDiffer(t *testing.T) {
	text := "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\ncpuManagerPolicy: static\n"
	plan := made(t, slices.Concat(sources(t, "a", text+"topologyManagerPolicy: best-effort"), sources(t, "b", text+"topologyManagerPolicy: restricted\ntopologyManagerScope: pod"))...)
	var values struct {
		Webhook struct{ Translate map[string]any }
	}
	if err := yaml.Unmarshal([]byte(plan.Files[0].Text), &values); err != nil || values.Webhook.Translate["policy"] != "restricted" || values.Webhook.Translate["scope"] != "pod" {
		t.Errorf("values %v, %v", values, err)
	}
	if plan.Lines[0].Outcome != ByHand || plan.Lines[1].Outcome != ByHand {
		t.Errorf("lines begin with %v", plan.Lines[:2])
	}
}

const performanceProfile = "kind: PerformanceProfile\napiVersion: performance.openshift.io/v2\nmetadata: {name: cnf, annotations: {%s}}\n" +
	"spec: {cpu: {reserved: 0-1, isolated: 2-7, shared: 4-5}, numa: {topologyPolicy: restricted}, nodeSelector: {role: cnf}, workloadHints: {mixedCpus: %t}}\n"

// What kubelets themselves say counts before the objects of their pools.
func TestKubeletsKnowBetterThanTheirPools(t *testing.T) {
	kubelet := sources(t, "a.yaml", "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nreservedSystemCPUs: '0'")
	pool := sources(t, "pool.yaml", fmt.Sprintf(performanceProfile, "", false))
	for _, list := range [][]Source{slices.Concat(kubelet, pool), slices.Concat(pool, kubelet)} {
		if plan := made(t, list...); plan.Files[0].Text != "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nreservedCPUs: \"0\"\n" {
			t.Errorf("files %v", plan.Files)
		}
	}
}

// A profile makes of its kubelets what the operator makes of them.
func TestProfileDecidesWhatItsKubeletsHave(t *testing.T) {
	for _, row := range []struct {
		annotations   string
		mixed, static bool
		want          string
	}{
		{"", false, true, "reservedCPUs: 0-1\n  reservedMemory: \"0\"\n  reservedNodeMemory:\n  - amount: 1100Mi\n"},
		{"", true, true, "reservedCPUs: 0-1,4-5\n"},
		{"performance.openshift.io/dra-resource-management: 'true'", false, false, "reservedCPUs: 0-1\n"},
		{"performance.openshift.io/dra-resource-management: 'false'", false, true, "1100Mi"},
		{`kubeletconfig.experimental: '{"kubeReserved": {"memory": "5%"}}'`, false, true, "reservedCPUs: 0-1\n"},
		{"kubeletconfig.experimental: 'null'", false, true, "1100Mi"},
		{`performance.openshift.io/dra-resource-management: 'true', kubeletconfig.experimental: '{"topologyManagerScope": "pod"}'`, false, false, "reservedCPUs: 0-1\n"},
	} {
		plan := made(t, sources(t, "pool.yaml", fmt.Sprintf(performanceProfile, row.annotations, row.mixed))...)
		static := slices.ContainsFunc(plan.Steps, func(s Step) bool { return strings.Contains(s.Do, "stop the kubelet; set cpuManagerPolicy: none") })
		scope := "scope: container\n"
		if strings.Contains(row.annotations, "pod") {
			scope = "scope: pod\n"
		}
		if len(plan.Files) != 2 || !strings.Contains(plan.Files[1].Text, "policy: restricted\n") || !strings.Contains(plan.Files[1].Text, scope) {
			t.Errorf("%s: files %v", row.annotations, plan.Files)
		}
		if text := plan.Files[0].Text; !strings.Contains(text, "role: cnf") || !strings.Contains(text, row.want) || static != row.static {
			t.Errorf("%s, mixed %t: static managers %t, want %t, and %q in\n%s", row.annotations, row.mixed, static, row.static, row.want, text)
		}
	}
}

// Without a static CPU manager, the policy is for devices only: no file has it, and it may still
// refuse pods.
func TestTopologyManagerAlone(t *testing.T) {
	for policy, want := range map[string]Outcome{"none": Stays, "best-effort": Stays, "restricted": ByHand, "single-numa-node": ByHand} {
		plan := made(t, sources(t, "a", "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\ntopologyManagerScope: pod\ntopologyManagerPolicy: "+policy)...)
		at := slices.IndexFunc(plan.Lines, func(l Line) bool { return l.Field == "topologyManagerPolicy" })
		if len(plan.Files) > 0 || plan.Lines[at].Outcome != want || plan.Lines[1-at].Outcome != Stays {
			t.Errorf("%s: files %v, lines %+v", policy, plan.Files, plan.Lines)
		}
		set := slices.IndexFunc(plan.Steps, func(s Step) bool {
			return s.Do == "stop the kubelet; set topologyManagerPolicy: none; start the kubelet"
		})
		if set >= 0 != (want == ByHand) || len(plan.Steps) > 0 != (want == ByHand) || set >= 0 && plan.Steps[0].Do != "install the driver on all nodes: helm install" {
			t.Errorf("%s: steps %+v", policy, plan.Steps)
		}
	}
}

// Of files with .conf, configurations of kubelets are read. They may be parts of one.
func TestPartsOfAKubelet(t *testing.T) {
	const kubelet = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"
	if list, err := Read("crio.conf", strings.NewReader("[crio.nri]\nenable_nri = true")); len(list) > 0 || err != nil {
		t.Error(list, err)
	}
	cpus, topology := sources(t, "10-cpus.conf", kubelet+"cpuManagerPolicy: static"), sources(t, "20-topology.CONF", kubelet+"topologyManagerPolicy: restricted")
	plan := made(t, slices.Concat(cpus, topology)...)
	if line := plan.Lines[0]; line.Outcome != ByHand || line.Field != "topologyManagerPolicy" {
		t.Errorf("lines begin with %+v", line)
	}
	if line := plan.Lines[1]; line.Outcome != ByHand || line.Field != "cpuManagerPolicy" || line.Sources[0] != "20-topology.CONF" || !strings.Contains(line.Says, "--config-dir") {
		t.Errorf("second line %+v", line)
	}
	if plan = made(t, slices.Concat(cpus, sources(t, "b.conf", kubelet+"cpuManagerPolicy: none"))...); plan.Lines[0].Outcome == ByHand {
		t.Errorf("lines begin with %+v", plan.Lines[0])
	}
}

// Without NodeResourceTopologies, that scheduler is there for something else.
func TestSchedulerOfOtherPluginsStays(t *testing.T) {
	if plan := made(t, sources(t, "a.yaml", "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {schedulerName: "+pluginsScheduler+"}")...); len(plan.Lines)+len(plan.Steps) > 0 {
		t.Errorf("plan %+v", plan)
	}
}

// A kubelet says its configuration in another form, with every field.
func TestConfigzIsRead(t *testing.T) {
	list := sources(t, "configz", `{"kubeletconfig": {"cpuManagerPolicy": "none", "reservedSystemCPUs": "0-1", "staticPodPath": "", "maxPods": 110}}`)
	list[0].Node = "worker-1"
	if plan := made(t, list...); len(plan.Lines) != 3 || plan.Lines[0].Sources[0] != "worker-1" || len(plan.Files) != 2 {
		t.Errorf("plan %+v", plan)
	}
}

func TestNothingToMigrate(t *testing.T) {
	if plan := made(t, sources(t, "a", "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\ncpuManagerPolicy: none")...); len(plan.Files)+len(plan.Steps) > 0 {
		t.Errorf("plan %+v", plan)
	}
}

// Bad input is one line that names the file or the object.
func TestBadInputIsOneLine(t *testing.T) {
	kubelet := "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"
	rmd := "kind: RmdWorkload\napiVersion: intel.com/v1alpha1\nmetadata: {name: a, namespace: b}\n"
	for text, want := range map[string]string{
		"a: {":                              "read worker.yaml, document 1: ",
		"a: 1":                              "read worker.yaml, document 1: object without kind",
		"kind: List\nitems: [1]":            "read worker.yaml, document 1: items[0]: want an object",
		"kind: A\nmetadata: text":           "A : cannot unmarshal",
		kubelet + "cpuManagerPolicy: [a]":   "KubeletConfiguration worker: cannot unmarshal array",
		kubelet + "reservedSystemCPUs: 1-x": "KubeletConfiguration worker: reservedSystemCPUs: ",
		kubelet + "reservedMemory: [{numaNode: -1, limits: {memory: 1}}]":                                                                        "KubeletConfiguration worker: reservedMemory: numaNode -1, want 0 to ",
		kubelet + "reservedMemory: [{numaNode: 0, limits: {memory: x}}]":                                                                         `KubeletConfiguration worker: reservedMemory: memory: "x", want an amount such as 1Gi`,
		kubelet + "reservedMemory: [{numaNode: 0, limits: {memory: -1}}]":                                                                        "what was read makes no NodeConfig: reservedNodeMemory[0]",
		kubelet + "reservedMemory: [{numaNode: 0, limits: {memory: 1e300000000}}]":                                                               `memory: "1e300000000", want an amount`,
		"kind: KubeletConfig\napiVersion: machineconfiguration.openshift.io/v1\nmetadata: {name: a}\nspec: {kubeletConfig: text}":                "KubeletConfig a: cannot unmarshal",
		"kind: PerformanceProfile\napiVersion: performance.openshift.io/v2\nmetadata: {name: a}\nspec: {cpu: {reserved: x}}":                     "PerformanceProfile a: spec.cpu: ",
		"kind: PerformanceProfile\napiVersion: performance.openshift.io/v2\nmetadata: {name: a, annotations: {kubeletconfig.experimental: '{'}}": "PerformanceProfile a: kubeletconfig.experimental: ",
		rmd + "spec: {coreIds: [a]}":                                   "RmdWorkload b/a: coreIds: ",
		rmd + "spec: {coreIds: ['1'], rdt: {cache: {min: 3, max: 2}}}": "RmdWorkload b/a: rdt.cache: min 3, max 2: want 0 <= min <= max <= 64",
		rmd + "spec: {coreIds: ['1'], rdt: {cache: {min: 40, max: 40}}}\n---\n" + rmd + "spec: {coreIds: ['2'], rdt: {cache: {min: 40, max: 40}}}": "what was read makes no NodeConfig: cache.guaranteed.ways: 80",
	} {
		list, err := Read("worker.yaml", strings.NewReader(text))
		if err == nil {
			_, err = Make(list)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// Whatever a file has, the answer is a plan or one line.
func FuzzPlan(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*.*ml")
	if err != nil {
		f.Fatal(err)
	}
	for _, input := range inputs {
		f.Add(files.Read(f, input))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"a.yaml", "a.toml", "a.conf"} {
			list, err := Read(name, strings.NewReader(text))
			if err == nil {
				_, err = Make(list)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %v", err)
			}
		}
	})
}
