package startup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

const (
	node = `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {conditions: [{type: Ready, status: "True"}]}`

	creating = `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {nodeName: n1, containers: [{name: main}], resourceClaims: [{name: cpus, resourceClaimName: c}]}
status: {phase: Pending, containerStatuses: [{name: main, state: {waiting: {reason: ContainerCreating}}}]}`

	claimHead = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa}}]}}
`
	allocation = `
  allocation:
    devices:
      results: [{request: zone, driver: dra.numa, pool: n1, device: numa-0, consumedCapacity: {cpu: "4"}}]
      config: [CONFIG]
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}`

	published = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec: {driver: dra.numa, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: numa-0}]}`

	forP = "\n  reservedFor: [{resource: pods, name: p, uid: Pod default/p}]"
)

// allocated is a claim of the pod. more is further fields of its status.
func allocated(more string) string {
	return claimHead + "status:" + strings.Replace(allocation, "CONFIG", "", 1) + more
}

func event(about, reason, message, at string) string {
	return `
apiVersion: v1
kind: Event
metadata: {generateName: e}
type: Warning
reason: ` + reason + `
message: "` + message + `"
lastTimestamp: ` + at + `
involvedObject: {` + about + `, namespace: default}`
}

// normal is the event with the type Normal.
func normal(event string) string { return strings.Replace(event, "type: Warning", "type: Normal", 1) }

const aboutP = "kind: Pod, name: p"

// lines are the sentences of obstacles, with those who hold what is missing.
func lines(obstacles []funnel.Obstacle) (list []string) {
	for _, o := range obstacles {
		list = append(list, o.Sentence)
		for _, holder := range o.HeldBy {
			list = append(list, "  "+holder.String())
		}
	}
	return list
}

// Of each of these pods, explain said only that it has a node.
func TestAPodWithANodeThatDoesNotStart(t *testing.T) {
	const prepared = `
  devices: [{driver: dra.numa, pool: n1, device: numa-0, conditions: [CONDITION]}]`
	for name, row := range map[string]struct {
		manifests []string
		sentence  string
		obstacles []string
		hint      string
		note      string
	}{
		"prepare error": {
			manifests: []string{
				node, creating, allocated(forP),
				event(aboutP, "FailedPrepareDynamicResources", `Failed to prepare:\n no room`, "2026-01-01T00:01:00Z"),
				event(aboutP, "FailedPrepareDynamicResources", "an older message", "2026-01-01T00:00:00Z"),
				event("kind: Pod, name: other", "Failed", "of another pod", "2026-01-01T00:00:00Z"),
			},
			sentence: "is assigned to node n1, but does not start there",
			obstacles: []string{
				`driver dra.numa has not prepared device numa-0 of ResourceClaim "c"`,
				"event FailedPrepareDynamicResources: Failed to prepare: no room",
			},
		},
		"it had no node, and then pulls its image": {
			manifests: []string{
				node, creating, allocated(forP + strings.Replace(prepared, "CONDITION", "", 1)),
				event(aboutP, "FailedScheduling", "0/1 nodes are available: 1 cannot allocate all claims", "2026-01-01T00:00:00Z"),
				event(aboutP, "FailedPrepareDynamicResources", "not now", "2026-01-01T00:01:00Z"),
				normal(event(aboutP, "Scheduled", "assigned", "2026-01-01T00:00:30Z")),
				normal(event(aboutP, "Pulling", "Pulling image 'large'", "2026-01-01T00:02:00Z")),
			},
			sentence: "is assigned to node n1, and no object says why it would not start there",
			note:     "event Pulling: Pulling image 'large'",
		},
		"an old warning, before it got its node": {
			manifests: []string{
				node, strings.Replace(creating, "phase: Pending", "phase: Pending, conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: 2026-01-01T00:01:00Z}]", 1),
				allocated(forP + strings.Replace(prepared, "CONDITION", "", 1)),
				event(aboutP, "Preempting", "not enough", "2026-01-01T00:00:00Z"),
				event(aboutP, "FailedMount", "no volume", "2026-01-01T00:02:00Z"),
			},
			sentence:  "is assigned to node n1, but does not start there",
			obstacles: []string{"event FailedMount: no volume"},
		},
		"l3: require": {
			manifests: []string{
				node, creating,
				strings.Replace(allocated(forP), "config: []", `config: [{source: FromClaim, opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, l3: require}}}]`, 1),
				strings.NewReplacer("name: c}", "name: d}", "name: p,", "name: q,").Replace(allocated(forP)),
			},
			sentence: "is assigned to node n1, but does not start there",
			obstacles: []string{
				`driver dra.numa has not prepared device numa-0 of ResourceClaim "c", which requires one level-3 cache`,
				"  pod default/q holds 4 cpu of numa-0 through claim default/d",
			},
			hint: "l3: require waits on its node until one level-3 cache",
		},
		"condition": {
			manifests: []string{node, creating, allocated(forP + strings.Replace(prepared, "CONDITION", `{type: Ready, status: "False", reason: Broken, message: it is}`, 1))},
			sentence:  "is assigned to node n1, but does not start there",
			obstacles: []string{`ResourceClaim "c", device numa-0: condition Ready is false: Broken: it is`},
		},
		"container": {
			manifests: []string{
				node, strings.Replace(creating, "reason: ContainerCreating", "reason: CreateContainerError, message: 'hook: cpus 0-3 are taken'", 1),
				allocated(forP + strings.Replace(prepared, "CONDITION", `{type: Ready, status: "True"}`, 1)),
			},
			sentence:  "is assigned to node n1, but does not start there",
			obstacles: []string{"container main waits: CreateContainerError: hook: cpus 0-3 are taken"},
		},
		"without the scheduler": {
			manifests: []string{node, creating, claimHead},
			sentence:  "is assigned to node n1, but does not start there",
			obstacles: []string{`ResourceClaim "c" is not allocated: the pod got its node without the scheduler, which alone allocates claims`},
			hint:      "create the pod without spec.nodeName, and with the node selector kubernetes.io/hostname: n1",
		},
		"no claim": {
			manifests: []string{node, creating},
			sentence:  "is assigned to node n1, but does not start there",
			obstacles: []string{`ResourceClaim "c" does not exist in namespace default`},
		},
		"no template": {
			manifests: []string{node, strings.Replace(creating, "resourceClaimName: c", "resourceClaimTemplateName: t", 1)},
			sentence:  "is assigned to node n1, but does not start there",
			obstacles: []string{`ResourceClaimTemplate "t" does not exist in namespace default`},
		},
		"no template of a translation": {
			manifests: []string{node, strings.Replace(creating, "resourceClaimName: c", "resourceClaimTemplateName: numa-0123456789abcdef0123456789abcdef", 1)},
			sentence:  "is assigned to node n1, but does not start there",
			obstacles: []string{`ResourceClaimTemplate "numa-0123456789abcdef0123456789abcdef" does not exist in namespace default, and the driver's Deployment whose name ends with -templates has not made it: the pod's events and its log say why`},
		},
		"another node, and not reserved": {
			manifests: []string{strings.Replace(node, `status: "True"`, `status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.`, 1), creating, strings.Replace(allocated(strings.Replace(prepared, "CONDITION", "", 1)), "values: [n1]", "values: [n2]", 1)},
			sentence:  "is assigned to node n1, but does not start there",
			obstacles: []string{
				"node n1 is not ready: NodeStatusUnknown: Kubelet stopped posting node status.",
				`ResourceClaim "c" is allocated to a device that node n1 cannot reach`,
				`ResourceClaim "c" is not reserved for the pod, so the kubelet does not prepare it`,
			},
		},
		"no node": {
			manifests: []string{strings.Replace(creating, ", resourceClaims: [{name: cpus, resourceClaimName: c}]", "", 1)},
			sentence:  "is assigned to node n1, but does not start there",
			obstacles: []string{"there is no Node n1"},
		},
		"it runs": {
			manifests: []string{
				node, strings.NewReplacer("phase: Pending", "phase: Running", "waiting: {reason: ContainerCreating}", "running: {}").Replace(creating),
				allocated(forP + strings.Replace(prepared, "CONDITION", `{type: Exclusive, status: "False", reason: Shared, message: others run}`, 1)),
				event(aboutP, "Old", "over", "2026-01-01T00:00:00Z"),
			},
			sentence: "runs on node n1",
			note:     `ResourceClaim "c", device numa-0: condition Exclusive is false: Shared: others run`,
		},
		"it has ended": {
			manifests: []string{strings.Replace(creating, "phase: Pending", "phase: Failed", 1)},
			sentence:  "has ended on node n1: Failed",
		},
		"it ends": {
			manifests: []string{node, ends, published},
			sentence:  "is being deleted from node n1",
		},
		"it ends where no driver runs": {
			manifests: []string{node, ends, allocated(forP), strings.Replace(published, "name: n1,", "name: n2,", 1)},
			sentence:  "is being deleted from node n1",
			note:      `driver dra.numa has published nothing on node n1: while it does not run there, the pod does not end, because nothing releases ResourceClaim "c"`,
		},
		"it ends where no driver runs, with extended resources": {
			manifests: []string{
				node, allocated(forP),
				strings.Replace(strings.Replace(ends, ", resourceClaims: [{name: cpus, resourceClaimName: c}]", "", 1), "phase: Pending", "phase: Pending, extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: []}", 1),
			},
			sentence: "is being deleted from node n1",
			note:     `driver dra.numa has published nothing on node n1: while it does not run there, the pod does not end, because nothing releases ResourceClaim "c"`,
		},
		"it ends on a node that is not ready": {
			manifests: []string{strings.Replace(node, `status: "True"`, `status: "Unknown", reason: NodeStatusUnknown, message: gone`, 1), ends, allocated(forP), published},
			sentence:  "is being deleted from node n1",
			note:      "node n1 is not ready: NodeStatusUnknown: gone",
		},
		"nothing is known": {
			manifests: []string{node, strings.Replace(creating, ", resourceClaims: [{name: cpus, resourceClaimName: c}]", "", 1)},
			sentence:  "is assigned to node n1, and no object says why it would not start there",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := object.Snapshot(t, row.manifests...)
			e := Pod(s, s.Pod("default", "p"))
			var got []string
			if len(e.Nodes) > 0 {
				got = lines(e.Nodes[0].Obstacles)
			}
			if diff := cmp.Diff(row.obstacles, got); diff != "" || e.Sentence != row.sentence || e.Node != "n1" {
				t.Errorf("sentence %q, want %q; obstacles (-want +got):\n%s", e.Sentence, row.sentence, diff)
			}
			if hints := strings.Join(e.Hints, "\n"); !strings.HasPrefix(hints, row.hint) || (row.hint == "") != (hints == "") {
				t.Errorf("hints are %q, want %q", hints, row.hint)
			}
			if notes := strings.Join(e.Notes, "\n"); notes != row.note {
				t.Errorf("notes are %q, want %q", notes, row.note)
			}
		})
	}
}

// ends is the pod while it is being deleted.
var ends = strings.Replace(creating, "name: p}", "name: p, deletionTimestamp: 2026-01-01T00:00:00Z}", 1)

const (
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, uid: ud}
spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: main, resources: {limits: {cpu: 2}}}]}}}`

	set = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-1, uid: ur, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: ud, controller: true}]}
spec: {replicas: 3, selector: {matchLabels: {a: b}}}
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "web-1-" is forbidden: exceeded quota'}]}`

	job = `
apiVersion: batch/v1
kind: Job
metadata: {name: web, uid: uj}
spec: {parallelism: 2, completions: 3, template: {spec: {restartPolicy: Never, containers: [{name: main}]}}}
`
)

func owned(name, owner, status string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: ` + owner + `, controller: true}]}
spec: {containers: [{name: main}]}
status: {` + status + `}`
}

// The answer was that there is no such command.
func TestAWorkloadWithoutPods(t *testing.T) {
	for name, row := range map[string]struct {
		kind      string
		manifests []string
		sentence  string
		obstacles []string
		pod       string // that is to be explained
		made      bool
	}{
		"quota": {
			"Deployment",
			[]string{deployment, set},
			"wants 3 pods; 0 exist, 0 of them run",
			[]string{`condition ReplicaFailure: FailedCreate: pods "web-1-" is forbidden: exceeded quota`},
			"web-new", true,
		},
		"webhook": {
			"Deployment",
			[]string{deployment, strings.Replace(set, `status: "True"`, `status: "False"`, 1), event("kind: ReplicaSet, name: web-1, uid: ur", "FailedCreate", "admission webhook denied the request", "2026-01-01T00:00:00Z")},
			"wants 3 pods; 0 exist, 0 of them run",
			[]string{"event FailedCreate: admission webhook denied the request"},
			"web-new", true,
		},
		"no ReplicaSet": {
			"Deployment",
			[]string{deployment},
			"wants 3 pods; 0 exist, 0 of them run",
			[]string{"the Deployment has no ReplicaSet; kube-controller-manager creates it, unless spec.paused is true"},
			"web-new", true,
		},
		"a pod that waits": {
			"Deployment",
			[]string{deployment, set, owned("a", "ur", "phase: Running"), owned("b", "ur", "phase: Pending"), owned("c", "ur", "phase: Running"), owned("d", "un", "phase: Running")},
			"wants 3 pods; 3 exist, 2 of them run", nil, "b", false,
		},
		"all run": {
			"ReplicaSet",
			[]string{strings.Replace(strings.Replace(set, "replicas: 3", "replicas: 1", 1), "web-1", "web", 1), owned("a", "ur", "phase: Running")},
			"wants 1 pod; 1 exist, 1 of them run", nil, "", false,
		},
		"suspended": {
			"Job",
			[]string{strings.Replace(job, "{parallelism", "{suspend: true, parallelism", 1)},
			"wants 2 pods; 0 exist, 0 of them run",
			[]string{"the Job is suspended: spec.suspend is true"},
			"web-new", true,
		},
		"the last pod": {
			"Job", []string{job + "status: {succeeded: 2}", owned("a", "uj", "phase: Succeeded")}, "wants 1 pod; 0 exist, 0 of them run, and 2 have ended", nil, "web-new", true,
		},
		"failed": {
			"Job",
			[]string{job + "status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: no more}]}", event("kind: Job, name: web", "BackoffLimitExceeded", "no more", "2026-01-01T00:00:00Z")},
			"wants 0 pods; 0 exist, 0 of them run",
			[]string{"condition Failed: BackoffLimitExceeded: no more", "event BackoffLimitExceeded: no more"},
			"", false,
		},
		"stateful": {
			"StatefulSet",
			[]string{strings.NewReplacer("kind: Deployment", "kind: StatefulSet").Replace(deployment), event("kind: StatefulSet, name: web", "FailedCreate", "no", "2026-01-01T00:00:00Z")},
			"wants 3 pods; 0 exist, 0 of them run",
			[]string{"event FailedCreate: no"},
			"web-new", true,
		},
		"an event of any user": {
			"StatefulSet",
			[]string{
				strings.NewReplacer("kind: Deployment", "kind: StatefulSet").Replace(deployment),
				event("kind: StatefulSet, name: web", `"Failed\n\nweb: fits"`, strings.Repeat("x", 5000), "2026-01-01T00:00:00Z"),
			},
			"wants 3 pods; 0 exist, 0 of them run",
			[]string{"event Failed web: fits: " + message.Short(strings.Repeat("x", 5000), 1024)},
			"web-new", true,
		},
		"a manifest": {
			"Deployment", []string{strings.Replace(deployment, "uid: ud", "labels: {}", 1)}, "would create 3 pods", nil, "web-2", false,
		},
		"daemons": {
			"DaemonSet",
			[]string{strings.NewReplacer("kind: Deployment", "kind: DaemonSet", "replicas: 3, ", "").Replace(deployment) + "\nstatus: {desiredNumberScheduled: 2}"},
			"wants 2 pods; 0 exist, 0 of them run", nil, "web-new", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := object.Snapshot(t, row.manifests...)
			if err := simulate.AddPods(s); err != nil {
				t.Fatal(err)
			}
			w, pod, made := Workload(s, s.Workload(row.kind, "default", "web"))
			if diff := cmp.Diff(row.obstacles, lines(w.Obstacles)); diff != "" || w.Sentence != row.sentence || w.Kind != row.kind || w.Name != "default/web" {
				t.Errorf("%s %s %s, want %s; obstacles (-want +got):\n%s", w.Kind, w.Name, w.Sentence, row.sentence, diff)
			}
			explained := ""
			if pod != nil {
				explained = pod.Name
			}
			if explained != row.pod || made != row.made {
				t.Errorf("pod %q, made %t, want %q, %t", explained, made, row.pod, row.made)
			}
		})
	}
}
