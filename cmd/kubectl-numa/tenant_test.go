package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// Limits of a command, for whatever a tenant writes.
const (
	mostCPUTime = 20 * time.Second
	mostMemory  = 2 << 30 // allocated in total
)

// tenantObjects are what a tenant can create, and what Kubernetes makes of it. The tests
// replace each value in turn.
var tenantObjects = `
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: team, labels: {app: a}, annotations: {note: b}}
spec:
  schedulerName: default-scheduler
  priority: 100
  priorityClassName: high
  nodeSelector: {disk: fast}
  tolerations: [{key: a, operator: Equal, value: b, effect: NoSchedule, tolerationSeconds: 5}]
  overhead: {cpu: "1"}
  resourceClaims:
  - {name: cpus, resourceClaimName: cpus}
  - {name: made, resourceClaimTemplateName: two}
  - {name: lost, resourceClaimName: lost}
  containers: [{name: main, image: a, resources: {claims: [{name: cpus, request: zone}], requests: {cpu: "1", memory: 1Mi}, limits: {memory: 1Mi}}}, {name: b, resources: {requests: {cpu: "1"}}}]
status:
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no node}]
---
apiVersion: v1
kind: Pod
metadata: {name: simple, namespace: team}
spec:
  resourceClaims: [{name: made, resourceClaimTemplateName: two}]
  containers: [{name: main, resources: {claims: [{name: made}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: runs, namespace: team, ownerReferences: [{apiVersion: v1, kind: Job, name: work, uid: uj, controller: true}]}
spec:
  nodeName: worker-1
  resourceClaims: [{name: held, resourceClaimName: held}]
  containers: [{name: main, resources: {requests: {cpu: "1"}, limits: {hugepages-2Mi: 4Mi}}}]
status:
  phase: Pending
  reason: Because
  message: text
  containerStatuses: [{name: main, image: a, imageID: b, ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff, message: text}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: cpus, namespace: team, labels: {app: a}}` + object.FullClaimSpec + `
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held, namespace: team}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: "2"}}}}]}}
status:
  allocation:
    devices:
      results: [{request: zone, driver: dra.numa, pool: worker-1, device: numa-0, shareID: 00000000-0000-8000-8000-000000000000, consumedCapacity: {cpu: "2"}}]
      config: [{source: FromClaim, requests: [zone], opaque: {driver: dra.numa, parameters: {l3: require}}}]
  reservedFor: [{resource: pods, name: runs, uid: u}]
  devices:
  - driver: dra.numa
    pool: worker-1
    device: numa-0
    shareID: 00000000-0000-8000-8000-000000000000
    conditions: [{type: Exclusive, status: "False", reason: PartitionInvalid, message: text, lastTransitionTime: 2026-01-01T00:00:00Z}]
    data: {cpus: 4-5, mems: "0", idleCPUs: "5", partition: root, scope: pod, mixed: true, sharedCPUs: 6-7, why: text}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two, namespace: team}
spec: {spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: "2"}}}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: theirs, labels: {app: a}}
spec:
  selectors: [{cel: {expression: 'device.driver == "them.example.com"'}}]
  extendedResourceName: them.example.com/card
  config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: root, locked: [partition]}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: theirs}
spec:
  driver: them.example.com
  nodeName: worker-1
  pool: {name: theirs, generation: 1, resourceSliceCount: 1}
  devices:
  - name: card-0
    attributes: {resource.kubernetes.io/numaNode: {int: 1}, model: {string: text}, resource.kubernetes.io/pciBusID: {string: "0000:3b:00.0"}}
    capacity: {memory: {value: 1Gi}}
    taints: [{key: a, value: b, effect: NoSchedule}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team, uid: ud}
spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, resources: {requests: {cpu: "17"}}}]}}}
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: text}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: planned, namespace: team}
spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: work, namespace: team, uid: uj}
spec: {parallelism: 1, completions: 3, template: {spec: {containers: [{name: main}]}}}
status: {succeeded: 1, conditions: [{type: Failed, status: "True", reason: Deadline, message: text}]}
---
` + warning("e", "FailedCreate", "text", "kind: Deployment, namespace: team, name: web, uid: ud") +
	warning("f", "FailedPrepareDynamicResources", "text", "kind: Pod, namespace: team, name: runs") + `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget, namespace: team}
spec: {selector: {matchLabels: {app: a}}}
`

// wantBounded runs a command, and fails the test if it uses too much time or memory, has
// no exit code of the documentation, or prints what a terminal obeys.
func wantBounded(t *testing.T, what string, args ...string) (exitCode int, stdout, stderr string) {
	t.Helper()
	var before, after syscall.Rusage
	var memoryBefore, memoryAfter runtime.MemStats
	runtime.ReadMemStats(&memoryBefore)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	exitCode, stdout, stderr = call(args...)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&memoryAfter)
	if took := time.Duration(after.Utime.Nano() - before.Utime.Nano()); took > mostCPUTime {
		t.Errorf("%s: %q takes %s of a CPU", what, args, took)
	}
	if took := memoryAfter.TotalAlloc - memoryBefore.TotalAlloc; took > mostMemory {
		t.Errorf("%s: %q allocates %d MiB", what, args, took>>20)
	}
	wantShown(t, what+": "+strings.Join(args, " "), stdout)
	wantShown(t, what+": "+strings.Join(args, " "), stderr)
	if exitCode < exitDone || exitCode > exitUsage {
		t.Errorf("%s: %q has exit code %d", what, args, exitCode)
	}
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, program+": ") {
			t.Errorf("%s: %q prints to stderr\n%s", what, args, stderr)
		}
	}
	return exitCode, stdout, stderr
}

// Whatever a tenant writes into a field of an object, no command obeys it, hangs, or
// prints a line of the tenant's. In each round, another field of each object changes.
func TestNoFieldOfATenantIsObeyed(t *testing.T) {
	base, tenant := filepath.Join(t.TempDir(), "base.json"), filepath.Join(t.TempDir(), "tenant.json")
	cluster, err := files{clusterFolder(t)}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	writeList(t, base,
		listOf("NodeList", "v1", cluster.Nodes), listOf("DeviceClassList", resources, cluster.Classes), listOf("ResourceSliceList", resources, cluster.Slices))
	commands := []string{
		"lint", "simulate", "status", "explain pod waits -n team", "explain pod simple -n team", "explain pod runs -n team", "explain claim cpus -n team", "explain claim held -n team",
		"explain pods -A -o wide", "explain claims -A -o wide",
		"explain deployment web -n team", "explain job work -n team", "suggest-evictions pod simple -n team", "taint worker-1/numa-0",
	}
	look := func(round string) {
		t.Helper()
		for _, command := range commands {
			if exitCode, _, stderr := wantBounded(t, round, append(strings.Fields(command), "-f", base, "-f", tenant)...); round == "as written" && exitCode == exitUsage {
				t.Fatalf("%s: %s", command, stderr)
			}
		}
	}
	writeList(t, tenant, object.Documents(t, tenantObjects)...)
	look("as written")
	fields := 0
	for kind := range object.MostWorse {
		for round, more := 0, true; more; round++ {
			more = false
			objects, changed := object.Documents(t, tenantObjects), []string{}
			for i := range objects {
				list := object.Leaves(objects[i])
				if round >= len(list) {
					continue
				}
				more = true
				worse := list[round].Worse()
				if kind >= len(worse) || worse[kind] == nil {
					continue
				}
				list[round].Set(worse[kind])
				fields++
				if writeList(t, tenant, objects[i]); !isReadable(tenant) {
					wantBounded(t, list[round].Path, "lint", "-f", tenant)
					objects[i] = object.Documents(t, tenantObjects)[i]
					continue
				}
				changed = append(changed, list[round].Path)
			}
			if len(changed) > 0 {
				writeList(t, tenant, objects...)
				look(strings.Join(changed, " "))
			}
		}
	}
	if fields < 200 {
		t.Errorf("only %d fields were changed", fields)
	}
}

// writeList writes objects and lists as one list.
func writeList[T any](t *testing.T, path string, objects ...T) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	testfiles.Write(t, path, string(text))
}

func isReadable(path string) bool {
	_, err := files{path}.Snapshot(context.Background())
	return err == nil
}

// neighbour are a pod that says that it is the driver's, and a claim with its pod. An API
// server accepts them of a tenant.
const neighbour = `
apiVersion: v1
kind: Pod
metadata:
  name: dra-driver-numa-believed
  namespace: tenant
  labels: {app.kubernetes.io/part-of: dra-driver-numa, app.kubernetes.io/component: daemon, app.kubernetes.io/version: believed}
  annotations: {dra.numa/mirrored: believed, text: "OBEYED"}
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: dra-driver-numa, uid: set, controller: true}]
spec: {nodeName: worker-1, schedulerName: "OBEYED", containers: [{name: driver, image: "believed:1", args: ["--exclusivity=believed"]}]}
status: {containerStatuses: [{name: driver, ready: true, restartCount: 1, image: "believed:1", imageID: x, state: {running: {}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: evil, namespace: team}
spec:
  schedulerName: "OBEYED"
  resourceClaims: [{name: cpus, resourceClaimName: evil}]
  containers: [{name: main, image: "a OBEYED", resources: {claims: [{name: cpus}]}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: evil, namespace: team, annotations: {text: "OBEYED"}}
spec:
  devices:
    requests:
    - name: zone
      exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: "ENDLESS", dra.numa/cpu: "ENDLESS"}}, selectors: [{cel: {expression:
        "device.driver == \"\"\"OBEYED\"\"\""}}]}
    config: [{opaque: {driver: dra.numa, parameters: {kind: "OBEYED", "OBEYED": "OBEYED"}}}]
`

// hostileCluster answers as a cluster with a hostile tenant, who can also write events:
// their reasons may have several lines.
func hostileCluster(t *testing.T) answers {
	t.Helper()
	a := installedCluster(t)
	quoted := strings.Trim(strconv.QuoteToASCII(object.HostileText), `"`)
	tenant := object.Documents(t, strings.NewReplacer("OBEYED", quoted, "ENDLESS", object.EndlessAmount).Replace(neighbour))
	started := &snapshot.Snapshot{}
	if err := started.Read("starting", strings.NewReader(startingCluster)); err != nil {
		t.Fatal(err)
	}
	for _, event := range started.Events {
		event.Reason, event.Message = "Failed"+object.HostileText, object.HostileText
	}
	before := snapshotOf(t, a)
	for path, answer := range (answers{
		"/api/v1/pods": listOf("PodList", "v1", append(anyOf(before.Pods, started.Pods), tenant[:2]...)),
		"/apis/resource.k8s.io/v1/resourceclaims": listOf("ResourceClaimList", resources, append(anyOf(before.Claims, started.Claims), tenant[2])),
		"/api/v1/events":                                               listOf("EventList", "v1", started.Events),
		"/api/v1/namespaces/team/events":                               listOf("EventList", "v1", started.Events),
		"/apis/apps/v1/namespaces/team/deployments":                    listOf("DeploymentList", "apps/v1", objectsOf(started.Workloads[:1])),
		"/apis/apps/v1/namespaces/team/replicasets":                    listOf("ReplicaSetList", "apps/v1", objectsOf(started.Workloads[1:])),
		"/api/v1/namespaces/tenant/pods/dra-driver-numa-believed/exec": stateOf(`{"partitions": [{"cgroup": "believed", "cpus": "4-5", "state": "root"}]}`),
		"/api/v1/namespaces/tenant/pods/dra-driver-numa-believed/log":  "believed\n",
	}) {
		a[path] = answer
	}
	return a
}

// anyOf joins lists of objects.
func anyOf[T any](lists ...[]T) (all []any) {
	for _, object := range slices.Concat(lists...) {
		all = append(all, object)
	}
	return all
}

// Every command, in every format, shows a cluster with a hostile tenant. It does not ask
// the tenant's pod, and does not repeat what it says of the driver.
func TestEveryCommandOfAHostileCluster(t *testing.T) {
	a := hostileCluster(t)
	var mu sync.Mutex
	asked := make(map[string]bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path] = true
		mu.Unlock()
		(&recorder{answers: a, asked: make(rights)}).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv("KUBECONFIG", kubeconfigOf(t, server.URL))
	lines := maps.Clone(commandLines)
	lines["explain"] = append(lines["explain"], "explain pod evil -n team", "explain claim evil -n team")
	lines["suggest-evictions"] = []string{"suggest-evictions pod evil -n team"}
	dir, shown := clusterFolder(t, "cpu: 2"), ""
	for _, command := range (cli{name: program}).rootCommand().Commands() {
		formats := []string{""}
		if flag := command.Flags().Lookup("output"); flag != nil {
			formats = flag.Value.(*printer).choices("{}")
		}
		for _, line := range lines[command.Name()] {
			for _, format := range formats {
				args := strings.Fields(strings.NewReplacer("FILE", filepath.Join(t.TempDir(), "bundle.tar.gz"), "DIR", dir).Replace(line))
				if format != "" {
					args = append(args, "-o", format)
				}
				_, stdout, stderr := wantBounded(t, "a hostile cluster", args...)
				if strings.Contains(stdout, "believed:1") || strings.Contains(stdout, "cgroup believed") || strings.Contains(stdout+stderr, "exclusivity=believed") {
					t.Errorf("%s believes the tenant's pod:\n%s%s", line, stdout, stderr)
				}
				if format == "json" && stdout != "" && !json.Valid([]byte(stdout)) {
					t.Errorf("%s prints no JSON:\n%s", line, stdout)
				}
				shown += stdout
			}
		}
	}
	for path := range asked {
		if strings.HasPrefix(path, "/api/v1/namespaces/tenant/") {
			t.Errorf("a command asks %s", path)
		}
	}
	for _, part := range []string{`Failed\u001b]0;owned`, `device.driver == """\u001b]0;owned`, "look-alike"} {
		if !strings.Contains(shown, part) {
			t.Errorf("no command shows %q", part)
		}
	}
}

// Many objects of a tenant, each with a selector of its own, cost no more than they do
// the scheduler.
func TestManyObjectsOfATenant(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2")
	var manifests strings.Builder
	for i := range 300 {
		manifest := strings.ReplaceAll(podManifest, "NAME", fmt.Sprintf("many-%d", i))
		manifest = strings.Replace(manifest, "AMOUNTS}}", fmt.Sprintf(`cpu: 99}}, selectors: [{cel: {expression: "device.driver != 'd%d'"}}]`, i), 1)
		manifests.WriteString(manifest + "\n---\n")
	}
	testfiles.Write(t, filepath.Join(dir, "many.yaml"), manifests.String())
	for _, args := range []string{"explain pod many-299", "simulate", "lint", "status", "suggest-evictions pod many-0"} {
		if exitCode, _, stderr := wantBounded(t, "many objects", append(strings.Fields(args), "-f", dir)...); exitCode == exitUsage {
			t.Errorf("%s: %s", args, stderr)
		}
	}
}
