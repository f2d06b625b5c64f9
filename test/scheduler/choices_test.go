package scheduler

import "github.com/dra-driver-numa/dra-driver-numa/test/object"

// choices are the cases. Nodes have 8 CPUs and 16Gi of memory unless they say something
// else.
func choices() map[string]choice {
	const (
		plain = "{}"
		small = "containers: [{name: main, image: none, resources: {requests: {cpu: 1, memory: 1Gi}}}]"
		onB   = "nodeName: NAME-b, containers: [{name: main, image: none, resources: {requests: {cpu: 4, memory: 8Gi}}}]"
	)
	pod := func(name, spec string) string {
		return "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: NAME-" + name + ", METADATA}\nspec: {SPEC, " + spec + "}"
	}
	running := func(name, labels, spec string) string {
		return "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: NAME-" + name + ", labels: {" + labels + "}}\nspec: {HERE, " + spec + "}"
	}
	template := "template: {metadata: {METADATA}, spec: {SPEC, " + small + "}}"
	const near = "labelSelector: {matchLabels: {near: NAME}}, topologyKey: kubernetes.io/hostname"
	return map[string]choice{
		"tie": {
			nodes: []string{plain, plain}, pods: 1, best: []string{"a b"},
			objects: pod("p0", small),
		},
		"least allocated": {
			nodes: []string{plain, plain, plain}, pods: 1, best: []string{"a c"},
			objects: running("here", "role: running", onB) + pod("p0", small),
		},
		"least allocated of a large node": {
			nodes: []string{plain, "{status: {allocatable: {cpu: 64, memory: 256Gi}}}"}, pods: 3, best: []string{"b", "b", "b"},
			objects: running("here", "role: running", onB) + pod("p0", small) + pod("p1", small) + pod("p2", small),
		},
		// Pods without requests count as 100m and 200Mi each.
		"no requests": {
			nodes: []string{"{status: {allocatable: {cpu: 1, memory: 2Gi}}}", "{status: {allocatable: {cpu: 1, memory: 2Gi}}}"}, pods: 2, best: []string{"a", "a"},
			objects: running("here", "role: running", "nodeName: NAME-b, containers: [{name: one, image: none}, {name: two, image: none}, {name: three, image: none}]") +
				pod("p0", "containers: [{name: main, image: none}]") + pod("p1", "containers: [{name: main, image: none}]"),
		},
		// Node a has little CPU left, node b little memory; on average, they have the same.
		"balanced": {
			nodes: []string{plain, plain}, pods: 2, best: []string{"a", "b"},
			objects: running("a", "role: running", "nodeName: NAME-a, containers: [{name: main, image: none, resources: {requests: {cpu: 4, memory: 2Gi}}}]") +
				running("b", "role: running", "nodeName: NAME-b, containers: [{name: main, image: none, resources: {requests: {cpu: 1, memory: 8Gi}}}]") +
				pod("p0", "containers: [{name: main, image: none, resources: {requests: {memory: 4Gi}}}]") +
				pod("p1", "containers: [{name: main, image: none, resources: {requests: {cpu: 2}}}]"),
		},
		"preferred node affinity": {
			nodes: []string{plain, "{metadata: {labels: {disk: fast}}}", "{metadata: {labels: {disk: slow}}}"}, pods: 2, best: []string{"b", "b"},
			objects: running("here", "role: running", onB) + pod("p0", small+", "+preferDisk) + pod("p1", small+", "+preferDisk),
		},
		"preferred taint": {
			nodes: []string{"{spec: {taints: [{key: a, effect: PreferNoSchedule}]}}", plain}, pods: 1, best: []string{"b"},
			objects: running("here", "role: running", onB) + pod("p0", small),
		},
		"images": {
			nodes: []string{plain, "{status: {images: [{names: ['registry.test/big:latest'], sizeBytes: 35184372088832}]}}"}, pods: 1, best: []string{"b"},
			objects: pod("p0", "containers: [{name: main, image: registry.test/big, resources: {requests: {cpu: 1, memory: 1Gi}}}]"),
		},
		"preferred pod affinity": {
			nodes: []string{plain, plain}, pods: 2, best: []string{"b", "a"},
			objects: running("here", "near: NAME", onB) +
				pod("p0", small+", affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, podAffinityTerm: {"+near+"}}]}}") +
				pod("p1", small+", affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, podAffinityTerm: {"+near+"}}]}}"),
		},
		"affinity of a running pod": {
			nodes: []string{plain, plain}, pods: 1, best: []string{"b"},
			objects: running("here", "role: running", onB+", affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, podAffinityTerm: "+
				"{labelSelector: {matchLabels: {scheduler.test/case: NAME}}, topologyKey: kubernetes.io/hostname}}]}}") + pod("p0", small),
		},
		"topology spread": {
			nodes: []string{"{metadata: {labels: {rack: one}}}", "{metadata: {labels: {rack: one}}}", "{metadata: {labels: {rack: two}}}"}, pods: 2, best: []string{"c", "c"},
			objects: running("here", "role: running", "nodeName: NAME-c, containers: [{name: main, image: none, resources: {requests: {cpu: 3, memory: 6Gi}}}]") +
				running("one", "near: NAME", "nodeName: NAME-a, containers: [{name: main, image: none}]") +
				running("two", "near: NAME", "nodeName: NAME-b, containers: [{name: main, image: none}]") +
				pod("p0", small+", "+spreadRacks) + pod("p1", small+", "+spreadRacks),
		},
		// Each node has another one of three devices.
		"first available": {
			nodes: []string{plain, plain, plain}, pods: 3, best: []string{"b", "c", "a"},
			objects: deviceOf("a", "third") + deviceOf("b", "first") + deviceOf("c", "second") + firstOfThree +
				pod("p0", small+", "+claims) + pod("p1", small+", "+claims) + pod("p2", small+", "+claims),
		},
		// The second alternative on an idle node is better than the first one on a busy node.
		"second available": {
			nodes: []string{plain, plain, plain}, pods: 1, best: []string{"c"},
			objects: deviceOf("a", "third") + deviceOf("b", "first") + deviceOf("c", "second") + firstOfThree +
				running("here", "role: running", onB) + pod("p0", small+", "+claims),
		},
		"deployment": {
			nodes: []string{plain, plain}, pods: 4,
			objects: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\nspec: {replicas: 4, selector: {matchLabels: {scheduler.test/case: NAME}}, " + template + "}" +
				"\n---\napiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {selector: {scheduler.test/case: NAME}, ports: [{port: 80}]}",
		},
		"deployment in zones": {
			nodes: []string{
				"{metadata: {labels: {topology.kubernetes.io/zone: z1}}}", "{metadata: {labels: {topology.kubernetes.io/zone: z1}}}",
				"{metadata: {labels: {topology.kubernetes.io/zone: z2}}, status: {allocatable: {cpu: 3}}}",
			},
			pods:    4,
			objects: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\nspec: {replicas: 4, selector: {matchLabels: {scheduler.test/case: NAME}}, " + template + "}",
		},
		"stateful set": {
			nodes: []string{plain, plain}, pods: 3,
			objects: "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: NAME}\n" +
				"spec: {replicas: 3, podManagementPolicy: Parallel, serviceName: none, selector: {matchLabels: {scheduler.test/case: NAME}}, " + template + "}",
		},
		// The pods of a Job are not spread: they go where most is left.
		"job": {
			nodes: []string{plain, "{status: {allocatable: {cpu: 64, memory: 256Gi}}}"}, pods: 3, best: []string{"b", "b", "b"},
			objects: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: NAME}\nspec: {parallelism: 3, completions: 3, " +
				"template: {metadata: {METADATA}, spec: {SPEC, restartPolicy: Never, " + small + "}}}",
		},
		// Each pod of the DaemonSet fits on its own node only. What it takes there counts.
		"daemon set": {
			nodes: []string{"{metadata: {labels: {daemon: wanted}}}", plain}, pods: 2, best: []string{"a", "b"},
			objects: "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: NAME-0}\nspec: {selector: {matchLabels: {scheduler.test/case: NAME}}, template: {metadata: {METADATA}, " +
				"spec: {SPEC, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: daemon, operator: Exists}]}]}}}, " + small + "}}}" +
				pod("p0", small),
		},
		// With 5 CPUs, the first pod fits only on a. Then a has less left than b.
		"overhead": {
			nodes: []string{plain, plain}, pods: 2, best: []string{"a", "b"},
			objects: "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: NAME}\nhandler: sandbox\noverhead: {podFixed: {cpu: 4, memory: 8Gi}}" +
				running("here", "role: running", onB) + pod("p0", "runtimeClassName: NAME, "+small) + pod("p1", small),
		},
		"ephemeral storage": {
			nodes: []string{"{status: {allocatable: {ephemeral-storage: 1Gi}}}", plain}, pods: 2, best: []string{"b", "a"},
			objects: running("here", "role: running", onB) +
				pod("p0", "containers: [{name: main, image: none, resources: {requests: {cpu: 1, memory: 1Gi, ephemeral-storage: 2Gi}}}]") +
				pod("p1", "containers: [{name: main, image: none, resources: {requests: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi}}}]"),
		},
		"restart of the scheduler": {
			nodes: []string{plain, plain, plain}, pods: 3, best: []string{"b", "c", "a"}, restart: true,
			objects: deviceOf("a", "third") + deviceOf("b", "first") + deviceOf("c", "second") + firstOfThree +
				pod("p0", small+", "+claims) + pod("p1", small+", "+claims) + pod("p2", small+", "+claims),
		},
	}
}

const preferDisk = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [" +
	"{weight: 10, preference: {matchExpressions: [{key: disk, operator: In, values: [fast]}]}}, " +
	"{weight: 1, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]}}"

const spreadRacks = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {near: NAME}}}]"

// claims is the field of a pod with a claim of the template below.
const claims = "resourceClaims: [{name: devices, resourceClaimTemplateName: NAME}]"

// firstOfThree is a template that wants one of three devices, and its class.
var firstOfThree = "\n---" + object.ClassText("NAME", `device.driver == "NAME.test"`) + `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: NAME}
spec:
  spec:
    devices:
      requests:
      - name: one
        firstAvailable:
        - {name: first, deviceClassName: NAME, selectors: [{cel: {expression: 'device.attributes["NAME.test"].kind == "first"'}}]}
        - {name: second, deviceClassName: NAME, selectors: [{cel: {expression: 'device.attributes["NAME.test"].kind == "second"'}}]}
        - {name: third, deviceClassName: NAME, selectors: [{cel: {expression: 'device.attributes["NAME.test"].kind == "third"'}}]}`

// deviceOf is the slice of a node with one device.
func deviceOf(node, kind string) string {
	return `
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: NAME-` + node + `}
spec:
  driver: NAME.test
  nodeName: NAME-` + node + `
  pool: {name: NAME-` + node + `, generation: 1, resourceSliceCount: 1}
  devices: [{name: one, attributes: {kind: {string: ` + kind + `}}}]`
}
