package simulate_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// manifests are what kubectl get -o yaml prints of a cluster: one node with a zone
// of 8 CPUs, and two pods, each with a claim of CPUs.
const manifests = `
apiVersion: v1
kind: Node
metadata: {name: worker-1}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 110}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: worker-1-dra.numa}
spec:
  driver: dra.numa
  nodeName: worker-1
  pool: {name: worker-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: numa-0
    allowMultipleAllocations: true
    attributes: {kind: {string: zone}}
    capacity:
      cpu: {value: "8", requestPolicy: {default: "0", validRange: {min: "0", step: "2"}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: zone.dra.numa}
spec: {selectors: [{cel: {expression: device.driver == "dra.numa"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: six}
spec:
  devices:
    requests:
    - name: zone
      exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 6}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: four}
spec:
  devices:
    requests:
    - name: zone
      exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4}}}
---
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  resourceClaims: [{name: cpus, resourceClaimName: six}]
  containers: [{name: main, image: trainer, resources: {claims: [{name: cpus}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: server}
spec:
  resourceClaims: [{name: cpus, resourceClaimName: four}]
  containers: [{name: main, image: server, resources: {claims: [{name: cpus}]}}]
`

// load makes a cluster of the manifests.
func load() (*snapshot.Snapshot, *simulate.Cluster) {
	objects := &snapshot.Snapshot{}
	if err := objects.Read("manifests", strings.NewReader(manifests)); err != nil {
		log.Fatal(err)
	}
	cluster, err := simulate.New(objects, simulate.DefaultRules())
	if err != nil {
		log.Fatal(err)
	}
	return objects, cluster
}

// Run places the pods that wait, one after the other.
func ExampleCluster_Run() {
	objects, cluster := load()
	result, err := cluster.Run(context.Background(), objects.Waiting(), simulate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, pod := range result.Pods {
		device := pod.Claims[0].Allocations[0]
		cpus := device.ConsumedCapacity["cpu"]
		fmt.Printf("%s on %s: %s CPUs of %s\n", pod.Pod, pod.Node, cpus.String(), device.Device)
	}
	for _, pod := range result.Unschedulable {
		fmt.Printf("%s has no node: %s\n", pod.Pod, pod.Reasons[0].Reason)
	}
	// Output:
	// default/trainer on worker-1: 6 CPUs of numa-0
	// default/server has no node: request zone: asks for 4 cpu of one device: numa-0 has 2 of 8 left
}

// ExplainPod says what rules out each node for one pod. Blocks is the first thing
// that does.
func ExampleCluster_ExplainPod() {
	objects, cluster := load()
	waiting := objects.Waiting()
	if _, err := cluster.Run(context.Background(), waiting[:1], simulate.Options{}); err != nil {
		log.Fatal(err)
	}
	why, err := cluster.ExplainPod(context.Background(), waiting[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", why.Pod, why.Sentence)
	for _, node := range why.Nodes {
		fmt.Printf("%s (%s): %s\n", node.Node, node.Blocks, node.Sentence)
	}
	// Output:
	// default/server: does not fit on the only node
	// worker-1 (capacity): request zone: asks for 4 cpu of one device: numa-0 has 2 of 8 left
}
