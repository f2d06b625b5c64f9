package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/translation"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

const (
	translateFolder = "testdata/translate/"
	toTranslate     = translateFolder + "manifests.yaml"
)

// twoZones has a node with two zones of 4 and 8 CPUs, of which the first has 2 reserved.
func twoZones(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	machine := strings.Fields("--sockets 1 --nodes-per-socket 2 --cores-per-socket 8 --memory 4Gi --hugepages 2Mi=16")
	testfiles.Write(t, filepath.Join(dir, "node.yaml"), mustCall(t, append([]string{"generate", "node", "worker-1"}, machine...)...))
	testfiles.Write(t, filepath.Join(dir, "slices.yaml"), mustCall(t, append([]string{"generate", "slices", "--node-name", "worker-1"}, machine...)...))
	testfiles.Write(t, filepath.Join(dir, "classes.yaml"), mustCall(t, "generate", "classes"))
	return dir
}

func TestTranslateManifests(t *testing.T) {
	for name, args := range map[string]string{
		"text.txt":         "",
		"restricted.txt":   "--policy restricted --scope pod --threads-per-core 1 --twin example.com/gpu=gpu.example.com -l app=web",
		"leave.txt":        "--part-of-core leave -l app=web",
		"wide.txt":         "-o wide",
		"sorted.txt":       "--sort-by result --no-headers",
		"names.txt":        "-o name",
		"objects.yaml":     "-o objects",
		"lift.txt":         "--cpu-limit lift -l app",
		"lift.yaml":        "--cpu-limit lift -l app -o objects",
		"report.yaml":      "-o yaml -l app=web",
		"cluster.txt":      "-f " + twoZones(t),
		"cluster-wide.txt": "-o wide -f " + twoZones(t),
	} {
		exitCode, stdout, stderr := call(append([]string{"translate", "-f", toTranslate}, strings.Fields(args)...)...)
		if want := exitFailed; exitCode != want && !strings.Contains(args, "-l app") || !strings.Contains(stderr, "note: ignoring objects that do not change the answer: 1 Service\n") {
			t.Errorf("translate %s: exit code %d, stderr %q", args, exitCode, stderr)
		}
		testfiles.Golden(t, translateFolder+name, stdout)
	}
}

// What is written can be applied: lint finds no mistake, there is nothing left to translate,
// and simulate places the pods as translate says.
func TestTranslatedManifestsAreComplete(t *testing.T) {
	for _, limit := range []string{"keep", "lift"} {
		t.Run(limit, func(t *testing.T) { testComplete(t, limit) })
	}
}

func testComplete(t *testing.T, limit string) {
	dir, out := twoZones(t), filepath.Join(t.TempDir(), "out.yaml")
	_, text, _ := call("translate", "-f", dir, "-f", toTranslate, "--cpu-limit", limit, "-o", "objects")
	testfiles.Write(t, out, text)
	mustCall(t, "lint", "-f", dir, "-f", out)
	if left := mustCall(t, "translate", "-f", out, "-o", "jsonpath={.translated.objects} {.impossible.objects}"); left != "0 0" {
		t.Errorf("of what is translated, %s are translated and impossible", left)
	}
	if again := mustCall(t, "translate", "-f", out, "-o", "objects"); again != "apiVersion: v1\nitems: []\nkind: List\n" {
		t.Errorf("what is translated is printed again:\n%s", again)
	}
	for document := range strings.SplitSeq(testfiles.Read(t, toTranslate), "\n---\n") {
		if strings.Contains(document, "name: burstable") {
			text += "---\n" + document + "\n" // it is not printed, and takes CPUs as well
		}
	}
	testfiles.Write(t, out, text)
	_, placed, _ := call("simulate", "-f", dir, "-f", out, "-o", `jsonpath={range .unschedulable[*]}{.pod}: {.reasons[*].reason}{"\n"}{end}`)
	_, said, _ := call("translate", "-f", dir, "-f", toTranslate, "-o", `jsonpath={range .items[*].unschedulable[*]}{.pod}: {.reasons[*].reason}{"\n"}{end}`)
	if placed != said || placed == "" {
		t.Errorf("simulate says of the manifests\n%sand translate said\n%s", placed, said)
	}
	// A field that is not of a translation is as it was.
	for _, want := range []string{"priorityClassName: high", "enableDNSHostnames: true", "dependsOn:", "memory: 0.25Gi"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is lost in\n%s", want, text)
		}
	}
}

// Of two pods in two zones, the second does not fit beside one that runs.
func TestTranslateSaysWhatDoesNotFit(t *testing.T) {
	dir := twoZones(t)
	const static = `
apiVersion: v1
kind: Pod
metadata: {name: NAME, OWNER}
spec: {NODE containers: [{name: main, resources: {limits: {cpu: CPUS, memory: 1Gi}}}]}
---`
	pods := ""
	for _, pod := range []struct{ name, node, cpus string }{{"runs", "nodeName: worker-1,", "4"}, {"fits", "", "6"}, {"pending", "", "4"}} {
		pods += strings.NewReplacer("NAME", pod.name, "NODE", pod.node, "CPUS", pod.cpus, ", OWNER", "").Replace(static)
	}
	testfiles.Write(t, filepath.Join(dir, "pods.yaml"), pods)
	exitCode, stdout, stderr := call("translate", "-f", dir, "-o", "jsonpath={range .items[*]}{.name} {.nodes} {.unschedulable[*].reasons[*].reason}{\"\\n\"}{end}")
	const want = `runs {"worker-1":1} 
fits {"worker-1":1} 
pending  request main: asks for 4 cpu of one device: numa-0 has 2 of 6 left, numa-1 has 2 of 8 left
`
	if stdout != want || exitCode != exitFailed || stderr != "kubectl-numa: error: 1 of 3 translated pods have no node\n" {
		t.Errorf("exit code %d, stderr %q, stdout\n%swant\n%s", exitCode, stderr, stdout, want)
	}
	// Without slices nobody knows.
	if err := os.Remove(filepath.Join(dir, "slices.yaml")); err != nil {
		t.Fatal(err)
	}
	exitCode, _, stderr = call("translate", "-f", dir)
	if exitCode != exitDone || stderr != "kubectl-numa: note: it is not known which pods fit, because no ResourceSlice has zones of driver dra.numa\n" {
		t.Errorf("without slices: exit code %d, stderr %q", exitCode, stderr)
	}
}

// running are pods of a cluster: three of a Deployment, one of them being deleted, and two
// others.
const running = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: web-7d4-a, namespace: team, labels: {pod-template-hash: 7d4}, ownerReferences: [OWNER]}, spec: SPEC, status: {phase: Running}}
- {apiVersion: v1, kind: Pod, metadata: {name: web-7d4-b, namespace: team, labels: {pod-template-hash: 7d4}, ownerReferences: [OWNER]}, spec: SPEC, status: {phase: Running}}
- {apiVersion: v1, kind: Pod, metadata: {name: web-7d4-c, namespace: team, deletionTimestamp: "2026-01-01T00:00:00Z", labels: {pod-template-hash: 7d4}, ownerReferences: [OWNER]}, spec: SPEC}
- {apiVersion: v1, kind: Pod, metadata: {name: done, namespace: team}, spec: SPEC, status: {phase: Succeeded}}
- {apiVersion: v1, kind: Pod, metadata: {name: etcd, namespace: kube-system, annotations: {kubernetes.io/config.mirror: x}, ownerReferences: [{apiVersion: v1, kind: Node, name: worker-1, uid: u, controller: true}]}, spec: SPEC}
`

func runningText() string {
	return strings.NewReplacer(
		"OWNER", "{apiVersion: apps/v1, kind: ReplicaSet, name: web-7d4, uid: r, controller: true}",
		"SPEC", "{nodeName: worker-1, containers: [{name: main, resources: {limits: {cpu: 2, memory: 512Mi}}}]}",
	).Replace(running)
}

// Pods that run are counted with their workload, and there are only templates for them.
func TestTranslateWhatRuns(t *testing.T) {
	dir := twoZones(t)
	testfiles.Write(t, filepath.Join(dir, "running.yaml"), runningText())
	t.Setenv("KUBECONFIG", testCluster(t, dir, gatesOn))
	want := `Deployment team/web in the cluster: 2 pods would be translated
  claim of template TEMPLATE:
    request main: zone.dra.numa, cpu 2, memory 512Mi
  would run: 2 on worker-1
Pod kube-system/etcd in the cluster: 1 pod is left alone: a static pod of the kubelet can have no claims
would be translated: 2 pods (1 object), 0 without a node; left alone: 1 pod (1 object); cannot be translated: 0 pods (0 objects)
`
	template := mustCall(t, "translate", "-o", "jsonpath={.items[*].template}")
	if stdout, want := mustCall(t, "translate"), strings.Replace(want, "TEMPLATE", template, 1); sorted(stdout) != sorted(want) {
		t.Errorf("translate says\n%swant\n%s", stdout, want)
	}
	exitCode, stdout, stderr := call("translate", "-o", "objects")
	if exitCode != exitDone || !strings.HasPrefix(stderr, "kubectl-numa: note: printing only the templates for 2 pods: ") ||
		strings.Count(stdout, "kind: ") != 1 || !strings.Contains(stdout, "  namespace: team\n") {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", exitCode, stderr, stdout)
	}
	// The Deployment in a file has these pods, and is listed once. It gets new ones.
	deployment := file(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team}
spec: {replicas: 4, template: {spec: {containers: [{name: main, resources: {limits: {cpu: 4, memory: 512Mi}}}]}}}
`)
	exitCode, stdout, _ = call("translate", "--from-cluster", "-f", deployment, "-o", "jsonpath={.items[*].kind} {.items[*].pods} {.items[*].nodes} {.noNode}")
	if exitCode != exitFailed || stdout != `Deployment 4 {"worker-1":2} 2` {
		t.Errorf("of a file in a cluster: exit code %d, stdout %q", exitCode, stdout)
	}
	// Without the file, kubectl get says the same of both.
	testfiles.Write(t, filepath.Join(dir, "web.yaml"), strings.Replace(testfiles.Read(t, deployment), "namespace: team}", "namespace: team, uid: d}", 1))
	if stdout := mustCall(t, "translate", "-f", dir, "-n", "team", "-o", "jsonpath={.items[*].kind} {.items[*].pods} {.items[*].nodes}"); stdout != `Deployment 4 {"worker-1":2}` {
		t.Errorf("of what kubectl get prints, translate says %q", stdout)
	}
}

// sorted makes a text independent of the order of its lines: that of pods is by age.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		for j := i + 1; j < len(lines); j++ {
			if lines[j] < lines[i] {
				lines[i], lines[j] = lines[j], lines[i]
			}
		}
	}
	return strings.Join(lines, "\n")
}

// A class that names an extended resource is its twin, unless the user says another one.
func TestTwinsOfExtendedResources(t *testing.T) {
	dir := t.TempDir()
	testfiles.Write(t, filepath.Join(dir, "all.yaml"), `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: cards.example.com}
spec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: "true"}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: main, resources: {limits: {cpu: 2, memory: 1Gi, example.com/gpu: 2, deviceclass.resource.kubernetes.io/cards.example.com: 1}}}]}
`)
	for args, want := range map[string]string{
		"": "main cards.example.com:main--cards-0 cards.example.com:main--cards-1", "--twin example.com/gpu=other.example.com": "main other.example.com:main--other-0 other.example.com:main--other-1",
	} {
		stdout := mustCall(t, append(strings.Fields("translate -f "+dir+" "+args), "-o", `jsonpath={.items[*].claim.devices.requests[0].name}{range .items[*].claim.devices.requests[1:]} {.exactly.deviceClassName}:{.name}{end}`)...)
		if stdout != want {
			t.Errorf("translate %s has the requests %q, want %q", args, stdout, want)
		}
	}
}

// Cores have as many threads as the published zones say.
func TestThreadsAreThoseOfTheZones(t *testing.T) {
	pod := file(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main, resources: {limits: {cpu: 3, memory: 1Gi}}}]}\n")
	slices := file(t, mustCall(t, "generate", "slices", "--node-name", "n", "--threads", "1"))
	for args, want := range map[string]string{"": "4", "-f " + slices: "3", "--threads-per-core 8": "8", "--threads-per-core 1": "3"} {
		if stdout := mustCall(t, append(strings.Fields("translate -f "+pod+" "+args), "-o", "jsonpath={.items[*].claim.devices.requests[*].exactly.capacity.requests.cpu}")...); stdout != want {
			t.Errorf("translate %s: %s CPUs, want %s", args, stdout, want)
		}
	}
}

func TestTranslateInJSONAndYAMLIsOneDocument(t *testing.T) {
	var fromJSON, fromYAML translation.Report
	_, text, _ := call("translate", "-f", toTranslate, "-o", "json")
	if err := json.Unmarshal([]byte(text), &fromJSON); err != nil {
		t.Fatal(err)
	}
	_, text, _ = call("translate", "-f", toTranslate, "-o", "yaml")
	if err := yaml.Unmarshal([]byte(text), &fromYAML); err != nil {
		t.Fatal(err)
	}
	for _, report := range []translation.Report{fromJSON, fromYAML} {
		if counts := fmt.Sprint(report.Translated, report.LeftAlone, report.Impossible, len(report.Items)); counts != "{7 10} {2 2} {1 1} 10" {
			t.Errorf("counts are %s", counts)
		}
	}
	if text := mustCall(t, "translate", "-f", file(t, "kind: List\napiVersion: v1\nitems: []\n"), "-o", "jsonpath={.items}"); text != "[]" {
		t.Errorf("of nothing, items are %s", text)
	}
}

// staticPod has a value in each field that a translation reads.
const staticPod = `apiVersion: v1
kind: Pod
metadata:
  name: p
  namespace: team
  annotations: {main_cache_min: "2", main_pstate_ratio: "1.5", main_mba_percentage: "40", main_pstate_monitoring: "on"}
  labels: {dra.numa/translate: "true"}
spec:
  os: {name: linux}
  initContainers:
  - {name: init, resources: {limits: {cpu: "2", memory: 64Mi, example.com/gpu: "1"}}}
  - {name: side, restartPolicy: Always, resources: {limits: {cpu: 500m, memory: 64Mi}}}
  containers:
  - name: main
    resources:
      limits: {cpu: "4", memory: 256Mi, hugepages-2Mi: 8Mi, example.com/gpu: "2", intel.com/l3_cache_ways: "3"}
      requests: {cpu: "4", memory: 256Mi, hugepages-2Mi: 8Mi, example.com/gpu: "2", intel.com/l3_cache_ways: "3"}
  - {name: other, resources: {limits: {cpu: "2", memory: 64Mi, hugepages-1Gi: 2Gi}}}
`

// Whatever a tenant writes, the answer is bounded, and a terminal obeys nothing of it.
func TestNoFieldOfATranslatedPodIsObeyed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod.json")
	codes := map[int]int{}
	object.Variants(t, staticPod, func(field string, variant any) {
		text, err := json.Marshal(variant)
		if err != nil {
			t.Fatal(err)
		}
		testfiles.Write(t, path, string(text))
		for _, args := range []string{"", "-o objects --policy best-effort --scope pod --part-of-core leave --threads-per-core 1"} {
			exitCode, _, _ := wantBounded(t, field, strings.Fields("translate --twin example.com/gpu=gpu.dra.numa -f "+path+" "+args)...)
			codes[exitCode]++
		}
	})
	if codes[exitDone] < 20 || codes[exitFailed] < 20 || codes[exitUsage] < 20 {
		t.Errorf("exit codes are %v", codes)
	}
}

// The page has an example, and what the command says of it.
func TestPageHasWhatTranslateSays(t *testing.T) {
	_, section, _ := strings.Cut(testfiles.Read(t, "../../docs/kubectl-numa.md"), "\n## translate\n")
	_, manifest, _ := strings.Cut(section, "```yaml\n")
	manifest, section, _ = strings.Cut(manifest, "```\n")
	_, line, _ := strings.Cut(section, "```\n$ kubectl numa ")
	line, answer, _ := strings.Cut(line, "\n")
	answer, _, _ = strings.Cut(answer, "```")
	t.Chdir(t.TempDir())
	testfiles.Write(t, "web.yaml", manifest)
	if stdout := mustCall(t, strings.Fields(line)...); stdout != answer {
		t.Errorf("%s says\n%swant\n%s", line, stdout, answer)
	}
}

func TestNonsenseToTranslateIsOneUsageLine(t *testing.T) {
	many := file(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: many}\nspec: {replicas: 20000, template: {spec: {containers: [{name: main}]}}}\n")
	for args, want := range map[string]string{
		"--twin cpu=a.b":                                `--twin: "cpu=a.b" is no extended resource with its class, such as vendor.com/gpu=gpu.vendor.com`,
		"--twin x.kubernetes.io/cpu=a.b":                `--twin: "x.kubernetes.io/cpu=a.b" is no extended resource with its class`,
		"--twin example.com/gpu":                        `--twin: "" is no name of a DeviceClass for example.com/gpu`,
		"--twin example.com/g=a --twin example.com/g=b": `--twin: example.com/g has two classes`,
		"--threads-per-core 0":                          "--threads-per-core 0: want 1 or more",
		"--policy static":                               `invalid argument "static" for "--policy" flag: allowed are single-numa-node, restricted, best-effort, none`,
		"-n nobody":                                     "there are no pods or workloads in namespace nobody in the files",
		"--kubernetes 2":                                "--kubernetes: ",
		"-f " + many + " -f " + twoZones(t):             "Deployment default/many would have 20000 pods: manifests may have 10000 pods together",
		"pods":                                          `unexpected argument "pods", kubectl numa translate takes only flags`,
	} {
		exitCode, stdout, stderr := call(append([]string{"translate", "-f", toTranslate}, strings.Fields(args)...)...)
		if exitCode != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "kubectl-numa: error: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant exit code 2 and\n%s", args, exitCode, stdout, stderr, want)
		}
	}
}
