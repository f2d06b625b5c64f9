package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/lint"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const wrongManifests = `
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: four}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4, memory: 1Gi}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: wrong, namespace: team}
spec:
  spec:
    devices:
      config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partitions: root}}}]
      requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {dra.numa/cpu: 4, memory: 1Gi}}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: c, resourceClaimName: four}]
  containers:
  - name: main
    resources: {claims: [{name: c}], requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2}}
---
apiVersion: v1
kind: Pod
metadata: {name: over}
spec: {resourceClaims: [{name: c, resourceClaimName: gone}], containers: [{name: main}]}
status: {phase: Succeeded}
`

func TestLintSaysWhatAdmissionWould(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "all.yaml")
	testfiles.Write(t, name, wrongManifests)
	want := strings.ReplaceAll(`ResourceClaimTemplate team/wrong in FILE, document 3
  error: spec.spec.devices.config[0].opaque.parameters: unknown field "partitions", allowed are apiVersion, kind, cores, l3, placement, coreType, partition, mixed, memoryPolicy, locked (invalid-parameters)
  warning: spec.spec.devices.requests[0].exactly.capacity.requests[dra.numa/cpu]: no device has this capacity, so the pod would stay Pending: write cpu (unknown-capacity-key)
Pod default/p in FILE, document 4
  warning: spec.containers[0].resources.limits[cpu]: limit 2 throttles the container on its own CPUs: remove the limit (cpu-limit-on-claim-pod)
  warning: spec.containers: the requests lack cpu 3, which the pod's claims hold (requests-do-not-match-claim)
`, "FILE", name)
	const wantError = "kubectl-numa: note: ignoring objects for which there are no rules: 1 Namespace\n" +
		"kubectl-numa: error: 4 findings in 2 of 3 objects\n"
	exitCode, stdout, stderr := call("lint", "-f", dir)
	if exitCode != exitFailed || stdout != want || stderr != wantError {
		t.Errorf("exit code %d, stderr %q, stdout\n%swant 1 and\n%s", exitCode, stderr, stdout, want)
	}
	exitCode, stdout, _ = call("lint", "-f", dir, "--ignore", "invalid-parameters,unknown-capacity-key,cpu-limit-on-claim-pod,requests-do-not-match-claim")
	if exitCode != exitDone || stdout != "" {
		t.Errorf("without the rules: exit code %d, stdout %q", exitCode, stdout)
	}
}

func TestLintInJSONAndYAMLIsOneDocument(t *testing.T) {
	dir := t.TempDir()
	testfiles.Write(t, filepath.Join(dir, "all.yaml"), wrongManifests)
	var fromJSON, fromYAML findings
	_, text, _ := call("lint", "-f", dir, "-o", "json")
	if err := json.Unmarshal([]byte(text), &fromJSON); err != nil {
		t.Fatal(err)
	}
	_, text, _ = call("lint", "-f", dir, "-o", "yaml")
	if err := yaml.Unmarshal([]byte(text), &fromYAML); err != nil {
		t.Fatal(err)
	}
	for _, report := range []findings{fromJSON, fromYAML} {
		if report.Looked != 3 || len(report.Objects) != 2 {
			t.Fatalf("report is %+v", report)
		}
		object := report.Objects[0]
		if object.Kind != "ResourceClaimTemplate" || object.Namespace != "team" || object.Name != "wrong" || !strings.HasSuffix(object.Where, "/all.yaml, document 3") ||
			len(object.Findings) != 2 || object.Findings[0].Rule != lint.InvalidParameters || object.Findings[0].Severity != lint.Error {
			t.Errorf("object is %+v", object)
		}
	}
	clean := t.TempDir()
	testfiles.Write(t, filepath.Join(clean, "pod.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main}]}\n")
	if text := mustCall(t, "lint", "-f", clean, "-o", "json"); text != "{\n  \"apiVersion\": \"cli.dra.numa/v1alpha1\",\n  \"kind\": \"LintReport\",\n  \"looked\": 1,\n  \"objects\": []\n}\n" {
		t.Errorf("nothing is wrong, and lint says %s", text)
	}
}

// lint checks the pods of workloads where they are written.
func TestLintChecksWorkloads(t *testing.T) {
	dir := t.TempDir()
	template := "{spec: {resourceClaims: [{name: c, resourceClaimName: four}], resources: {requests: {cpu: 4, memory: 1Gi}}, containers: [{name: main, resources: {claims: [{name: c}], requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 2}}}]}}"
	text := wrongManifests[strings.Index(wrongManifests, "apiVersion: resource"):strings.Index(wrongManifests, "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate")]
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"} {
		text += "---\napiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: w}\nspec: {template: " + template + "}\n"
	}
	text += strings.ReplaceAll(`---
apiVersion: batch/v1
kind: Job
metadata: {name: w}
spec: {template: TEMPLATE}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: w}
spec: {jobTemplate: {spec: {template: TEMPLATE}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: w}
spec: {template: TEMPLATE}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: w}
spec: {replicatedJobs: [{name: other, template: {spec: {template: {spec: {containers: [{name: main}]}}}}}, {name: job, template: {spec: {template: TEMPLATE}}}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: w-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: w, uid: u, controller: true}]}
spec: {template: TEMPLATE}
`, "TEMPLATE", template)
	name := filepath.Join(dir, "all.yaml")
	testfiles.Write(t, name, text)
	_, stdout, stderr := call("lint", "-f", dir)
	for i, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "ReplicationController", "JobSet"} {
		path := cmp.Or(map[string]string{"CronJob": "spec.jobTemplate.spec.template", "JobSet": "spec.replicatedJobs[1].template.spec.template"}[kind], "spec.template")
		want := fmt.Sprintf("%s default/w in %s, document %d\n  warning: %s.spec.containers[0].resources.limits[cpu]: limit 2 throttles", kind, name, i+2, path)
		if !strings.Contains(stdout, want) {
			t.Errorf("lint says\n%swant\n%s", stdout, want)
		}
	}
	if _, names, _ := call("lint", "-f", dir, "-o", "name"); !strings.Contains(names, "jobset.jobset.x-k8s.io/w") || !strings.Contains(names, "replicationcontroller/w") {
		t.Errorf("names are\n%s", names)
	}
	if want := "kubectl-numa: error: 8 findings in 8 of 9 objects\n"; stderr != want {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
}

// lint looks up what nodes publish, and prefers a class of the files to the driver's
// class with the same name.
func TestLintLooksUpWhatObjectsReferTo(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4, hugepages1Gi: 1Gi") // the rig's machine has pages of 2 MiB
	_, stdout, _ := call("lint", "-f", dir)
	if !strings.Contains(stdout, "requests[hugepages1Gi]: no zone has this capacity now") {
		t.Errorf("lint says\n%s", stdout)
	}
	testfiles.Write(t, filepath.Join(dir, "class.yaml"), "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: zone.dra.numa}\n"+
		"spec: {selectors: [{cel: {expression: 'device.attributes[\"a\"].b'}}]}\n")
	_, stdout, _ = call("lint", "-f", dir)
	if strings.Contains(stdout, "hugepages1Gi") || !strings.Contains(stdout, "DeviceClass zone.dra.numa in ") || !strings.Contains(stdout, "(missing-guard)") {
		t.Errorf("with another class of that name, lint says\n%s", stdout)
	}
}

// lint checks the objects of the files, and looks up objects of the cluster.
func TestLintOfFilesInACluster(t *testing.T) {
	kubeconfig := testCluster(t, clusterFolder(t, "hugepages1Gi: 1Gi"), "")
	dir := t.TempDir()
	testfiles.Write(t, filepath.Join(dir, "pod.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"+
		"spec: {resourceClaims: [{name: c, resourceClaimName: a}], containers: [{name: main, resources: {claims: [{name: c}]}}]}\n")
	_, files, _ := call("lint", "-n", "default", "--from-cluster", "-f", dir, "--kubeconfig", kubeconfig)
	want := "Pod default/p in " + dir + "/pod.yaml, document 1\n  warning: spec.containers: the requests lack hugepages-1Gi 1Gi, which the pod's claims hold (requests-do-not-match-claim)\n"
	if files != want {
		t.Errorf("of files in a cluster lint says\n%swant\n%s", files, want)
	}
	exitCode, cluster, stderr := call("lint", "--kubeconfig", kubeconfig)
	if exitCode != exitFailed || !strings.HasPrefix(cluster, "ResourceClaim default/a in the cluster\n") {
		t.Errorf("of a cluster: exit code %d, stderr %q, stdout\n%s", exitCode, stderr, cluster)
	}
}

// In a template as in a pod, a request that is not written is the limit.
func TestLintKnowsRequestsOfTemplates(t *testing.T) {
	claims := "claims: [{name: c}], limits: {cpu: 2, memory: 64Mi"
	text := `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2, memory: 64Mi, hugepages2Mi: 8Mi}}}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: w}
spec: {template: {spec: {resourceClaims: [{name: c, resourceClaimName: two}], initContainers: [{name: init, resources: {` + claims + `}}}],
  containers: [{name: main, resources: {` + claims + `, hugepages-2Mi: 8Mi}}}]}}}
`
	mustCall(t, "lint", "-f", file(t, text), "--ignore", "cpu-limit-on-claim-pod,init-claims-add-up")
}

func TestNonsenseToLintIsOneUsageLine(t *testing.T) {
	dir := t.TempDir()
	testfiles.Write(t, filepath.Join(dir, "bad.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {container: []}\n")
	for args, want := range map[string]string{
		"lint -f " + dir:                       "read " + dir + `/bad.yaml, document 1: Pod p: unknown field "spec.container"`,
		"lint -f " + dir + " --ignore speling": `--ignore "speling": there is no such rule, allowed are invalid-parameters, `,
		"lint pods -f " + dir:                  `unexpected argument "pods", kubectl numa lint takes only flags`,
	} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if exitCode != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "kubectl-numa: error: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant exit code 2 and\n%s", args, exitCode, stdout, stderr, want)
		}
	}
}

// sharedCases is a folder beside the repository with inputs that users reported.
const sharedCases = "../../../shared/testdata/cases"

// lint finds what is wrong with objects that users reported.
func TestLintFindsWhatUsersReported(t *testing.T) {
	machine := t.TempDir()
	testfiles.Write(t, filepath.Join(machine, "slices.yaml"), mustCall(t, "generate", "slices", "--node-name", "w1", "--preset", "intel-2s"))
	for name, want := range map[string][]string{
		"lint-amounts-without-unit": {
			"requests[hugepages1Gi]: an amount without a unit is in bytes, and 4 becomes one page of 1Gi: for 4 pages, write 4Gi (amount-without-unit)",
			"requests[memory]: an amount without a unit is in bytes, and 4 becomes 1Mi: for GiB, write 4Gi (amount-without-unit)",
			"spec.containers[0].resources.limits[hugepages-1Gi]: the pod may use 4Gi, but its claims hold 1Gi",
		},
		"lint-request-not-in-claim": {"spec.containers[0].resources.claims[0].request: \"cpu\" is no request of the claim: the claim has request cpus, so the container starts without its devices (request-not-in-claim)"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := filepath.Join(sharedCases, name, "objects.yaml")
			if _, err := os.Stat(objects); err != nil {
				t.Skipf("the input is not beside the repository: %v", err)
			}
			_, stdout, stderr := call("lint", "-f", machine, "-f", objects)
			for _, line := range want {
				if !strings.Contains(stdout, line) {
					t.Errorf("lint says\n%s%swant\n%s", stdout, stderr, line)
				}
			}
			if got := strings.Count(stdout, "  warning: "); got != len(want) {
				t.Errorf("lint has %d warnings, want %d:\n%s", got, len(want), stdout)
			}
		})
	}
}
