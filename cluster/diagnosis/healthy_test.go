package diagnosis

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// healthyObjects are a node with two zones, and a pod that holds one of them and requests
// as much.
const healthyObjects = `
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  allocatable: {cpu: 8, memory: 8Gi, pods: 110}
  nodeInfo: {kubeletVersion: v1.37.1, kernelVersion: 6.12.107, containerRuntimeVersion: containerd://2.4.2}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-zones}
spec:
  driver: dra.numa
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: numa-0
    allowMultipleAllocations: true
    attributes: {exclusivity: {string: kernel}}
    capacity: {cpu: {value: 4}, memory: {value: 4Gi}}
  - name: numa-1
    allowMultipleAllocations: true
    attributes: {exclusivity: {string: kernel}}
    capacity: {cpu: {value: 4}, memory: {value: 4Gi}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-network}
spec: {driver: dra.net, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: eth0, attributes: {dra.net/numaNode: {int: 0}}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: zone
      exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}
status:
  reservedFor: [{resource: pods, name: p, uid: p}]
  allocation:
    devices:
      results:
      - request: zone
        driver: dra.numa
        pool: n1
        device: numa-0
        shareID: s
        consumedCapacity: {cpu: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: p, uid: p}
spec:
  nodeName: n1
  resourceClaims: [{name: cpus, resourceClaimName: c}]
  containers: [{name: main, resources: {claims: [{name: cpus}], requests: {cpu: 2}}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: dra-driver-numa-x
  namespace: dra-numa
  labels: {app.kubernetes.io/part-of: dra-driver-numa, app.kubernetes.io/component: daemon}
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: dra-driver-numa, uid: set, controller: true}]
spec: {nodeName: n1, containers: [{name: driver, image: "d:1"}, {name: keeper, image: "d:1"}]}
status: {conditions: [{type: Ready, status: "True"}]}
`

const healthyDaemonSet = `
metadata: {name: dra-driver-numa, namespace: dra-numa, uid: set, labels: {app.kubernetes.io/version: v1}}
spec:
  template:
    spec:
      serviceAccountName: dra-driver-numa
      containers:
      - {name: driver, image: "d:1", args: [--exclusivity=auto, --kubelet-config=/host/kubelet-config.yaml]}
      - {name: keeper, image: "d:1"}
status: {desiredNumberScheduled: 1, currentNumberScheduled: 1}
`

const healthyWebhook = `
metadata: {name: dra-driver-numa-webhook, namespace: dra-numa, labels: {app.kubernetes.io/version: v1}}
spec: {replicas: 2}
status: {availableReplicas: 2}
`

// healthy is a cluster without problems.
func healthy(t *testing.T) *Facts {
	t.Helper()
	objects := object.Snapshot(t, healthyObjects)
	classes, err := deviceclasses.All()
	if err != nil {
		t.Fatal(err)
	}
	for i := range classes {
		objects.Classes = append(objects.Classes, &classes[i])
	}
	role := &rbacv1.ClusterRole{Rules: Rights()}
	role.Name = "dra-driver-numa"
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "dra-driver-numa"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "dra-driver-numa", Namespace: "dra-numa"}},
	}
	return &Facts{
		Version: "v1.37.1",
		Gates:   map[string]bool{"DRAConsumableCapacity": true, "DRAResourceClaimDeviceStatus": true, "DRANodeAllocatableResources": false},
		Objects: objects,
		Installation: Installation{
			Namespace:  "dra-numa",
			DaemonSets: []*appsv1.DaemonSet{object.Parse[appsv1.DaemonSet](t, healthyDaemonSet)}, Deployments: []*appsv1.Deployment{object.Parse[appsv1.Deployment](t, healthyWebhook)},
			ClusterRoles: []*rbacv1.ClusterRole{role}, Bindings: []*rbacv1.ClusterRoleBinding{binding},
		},
		Kubelets: map[string]Kubelet{"n1": {CPUManagerPolicy: "none", MemoryManagerPolicy: "None", ReservedSystemCPUs: "0-1"}},
	}
}
