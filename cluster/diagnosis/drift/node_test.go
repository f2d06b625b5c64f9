package drift

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// objects are the objects of node n1. Claim a has a partition. Claim b has CPUs without a
// partition, a mixed share, a share of memory only, and a drive. Claim f has only a
// drive. The other claims need no record: one with admin access, one of a pod that does
// not run yet, one of another node, and one of another driver.
const objects = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a, uid: uid-a}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: zone.dra.numa}}]}}
status:
  reservedFor: [{resource: pods, name: p1, uid: uid-p1}]
  allocation:
    devices:
      results:
      - {request: r, driver: dra.numa, pool: n1, device: numa-0, shareID: s}
      - {request: gpu, driver: gpu.example.com, pool: n1, device: gpu-0}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: b-made, uid: uid-b}
spec: {devices: {requests: [{name: x, exactly: {deviceClassName: zone.dra.numa}}]}}
status:
  reservedFor: [{resource: pods, name: p2, uid: uid-p2}]
  allocation:
    devices:
      results:
      - {request: x/sub, driver: dra.numa, pool: n1, device: numa-0}
      - {request: mix, driver: dra.numa, pool: n1, device: numa-1}
      - {request: z, driver: dra.numa, pool: n1, device: numa-1}
      - {request: drive, driver: dra.numa, pool: n1, device: nvme-0000-02-00-0}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: f, uid: uid-f}
spec: {devices: {requests: [{name: drive, exactly: {deviceClassName: nvme.dra.numa}}]}}
status:
  reservedFor: [{resource: pods, name: p4, uid: uid-p4}]
  allocation: {devices: {results: [{request: drive, driver: dra.numa, pool: n1, device: nvme-0000-03-00-0}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: admin, uid: uid-admin}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: zone.dra.numa}}]}}
status:
  reservedFor: [{resource: pods, name: p1, uid: uid-p1}]
  allocation: {devices: {results: [{request: r, driver: dra.numa, pool: n1, device: numa-0, adminAccess: true}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: early, uid: uid-early}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: zone.dra.numa}}]}}
status:
  reservedFor: [{resource: pods, name: p3, uid: uid-p3}]
  allocation: {devices: {results: [{request: r, driver: dra.numa, pool: n1, device: numa-0}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: elsewhere, uid: uid-elsewhere}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: zone.dra.numa}}]}}
status:
  reservedFor: [{resource: pods, name: p1, uid: uid-p1}]
  allocation: {devices: {results: [{request: r, driver: dra.numa, pool: n2, device: numa-0}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p1, uid: uid-p1}
spec:
  nodeName: n1
  resourceClaims:
  - {name: cpus, resourceClaimName: a}
  - {name: all, resourceClaimName: admin}
  - {name: far, resourceClaimName: elsewhere}
  containers:
  - {name: main, resources: {claims: [{name: cpus}, {name: all}, {name: far}]}}
  - {name: gpu, resources: {claims: [{name: cpus, request: gpu}]}}
status:
  containerStatuses:
  - {name: main, image: i, imageID: i, ready: true, restartCount: 0, state: {running: {}}}
  - {name: gpu, image: i, imageID: i, ready: true, restartCount: 0, state: {running: {}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p2, uid: uid-p2}
spec:
  nodeName: n1
  resourceClaims: [{name: cpus, resourceClaimTemplateName: t}]
  initContainers: [{name: sidecar, restartPolicy: Always, resources: {claims: [{name: cpus, request: x}]}}]
  containers: [{name: main}]
status:
  resourceClaimStatuses: [{name: cpus, resourceClaimName: b-made}]
  initContainerStatuses:
  - name: sidecar
    image: i
    imageID: i
    ready: true
    restartCount: 0
    state: {running: {}}
---
apiVersion: v1
kind: Pod
metadata: {name: p4, uid: uid-p4}
spec:
  nodeName: n1
  resourceClaims: [{name: drive, resourceClaimName: f}]
  containers: [{name: main, resources: {claims: [{name: drive}]}}]
status:
  containerStatuses:
  - name: main
    image: i
    imageID: i
    ready: true
    restartCount: 0
    state: {running: {}}
---
apiVersion: v1
kind: Pod
metadata: {name: p3, uid: uid-p3}
spec:
  nodeName: n1
  resourceClaims: [{name: cpus, resourceClaimName: early}]
  containers: [{name: main, resources: {claims: [{name: cpus}]}}]
status:
  containerStatuses:
  - name: main
    image: i
    imageID: i
    ready: false
    restartCount: 0
    state: {waiting: {reason: ContainerCreating}}
`

func parse(t *testing.T, list string) cpuset.Set {
	t.Helper()
	set, err := cpuset.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// node is the state of a node, with the objects of the cluster.
type node struct {
	t *testing.T
	*nodestate.State
	*snapshot.Snapshot
}

func (n *node) compare() []Finding { return Compare("n1", n.State, n.Snapshot) }

// consistent is a node on which everything agrees.
func consistent(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, State: &nodestate.State{Version: nodestate.Version, Node: "n1"}, Snapshot: &snapshot.Snapshot{}}
	if err := n.Snapshot.Read("objects", strings.NewReader(objects)); err != nil {
		t.Fatal(err)
	}
	drive := []devnode.Node{{Path: "/dev/nvme0", Type: "c", Major: 240, Minor: 0}, {Path: "/dev/nvme0n1", Type: "b", Major: 259, Minor: 0}}
	n.Checkpoint = nodestate.Checkpoint{Version: 3, Grants: []driver.Grant{
		{UID: "uid-a", Namespace: "default", Name: "a", Order: 1, Shares: []driver.Share{
			{
				Request: "r",
				Device:  "numa-0",
				ShareID: "s",
				Kind:    &driver.ZoneShare{CPUs: parse(t, "4-5"), MemoryBytes: 1 << 30, Partition: "root"},
			},
		}},
		{UID: "uid-b", Namespace: "default", Name: "b-made", Order: 2, Shares: []driver.Share{
			{
				Request: "x/sub",
				Device:  "numa-0",
				Kind:    &driver.ZoneShare{CPUs: parse(t, "6-7"), MemoryBytes: 1 << 30, IdleCPUs: parse(t, "7"), Partition: "none"},
			},
			{Request: "mix", Device: "numa-1", Kind: &driver.ZoneShare{Zone: 1, CPUs: parse(t, "8-9"), MemoryBytes: 1 << 30, Mixed: true}},
			{Request: "z", Device: "numa-1", Kind: &driver.ZoneShare{Zone: 1, MemoryBytes: 1 << 30}},
			{
				Request: "drive",
				Device:  "nvme-0000-02-00-0",
				Kind:    &driver.FunctionShare{Address: "0000:02:00.0", Nodes: drive},
			},
		}},
		{UID: "uid-f", Namespace: "default", Name: "f", Order: 3, Shares: []driver.Share{
			{Request: "drive", Device: "nvme-0000-03-00-0", Kind: &driver.FunctionShare{Address: "0000:03:00.0"}},
		}},
	}}
	specs := fstest.MapFS{}
	for _, claim := range []cdi.Claim{
		{UID: "uid-a", Namespace: "default", Name: "a", Shares: []cdi.Share{
			{
				Request: "r",
				Device:  "numa-0",
				Kind:    &cdi.Zone{CPUs: parse(t, "4-5"), Mems: parse(t, "0"), Partition: "root", Scope: "container"},
			},
		}},
		{UID: "uid-b", Namespace: "default", Name: "b-made", Shares: []cdi.Share{
			{
				Request: "x/sub",
				Device:  "numa-0",
				Kind:    &cdi.Zone{CPUs: parse(t, "6-7"), IdleCPUs: parse(t, "7"), Mems: parse(t, "0"), Partition: "none", Scope: "container"},
			},
			{
				Request: "mix",
				Device:  "numa-1",
				Kind:    &cdi.Zone{CPUs: parse(t, "8-9"), Mems: parse(t, "1"), Mixed: true, Partition: "none", Scope: "container"},
			},
			{Request: "z", Device: "numa-1", Kind: &cdi.Zone{Mems: parse(t, "1"), Partition: "none", Scope: "container"}},
			{Request: "drive", Device: "nvme-0000-02-00-0", Kind: &cdi.Function{PCI: "0000:02:00.0", Nodes: drive}},
		}},
		{
			UID:       "uid-f",
			Namespace: "default",
			Name:      "f",
			Shares:    []cdi.Share{{Request: "drive", Device: "nvme-0000-03-00-0", Kind: &cdi.Function{PCI: "0000:03:00.0"}}},
		},
	} {
		text, err := cdi.Encode(claim, cdi.Hook{})
		if err != nil {
			t.Fatal(err)
		}
		specs["dra.numa-claim_"+claim.UID+".json"] = &fstest.MapFile{Data: text}
	}
	var err error
	if n.Specs, err = cdi.ReadSpecs(specs); err != nil {
		t.Fatal(err)
	}
	n.Partitions = []nodestate.Partition{{Cgroup: "pods/p1/main", CPUs: parse(t, "4-5"), State: "root"}, {Cgroup: "pods/p1/main/own", CPUs: parse(t, "5"), State: "root"}}
	n.Pins = []nodestate.Pin{
		{
			Cgroup:    "pods/p1/main",
			Claims:    []nodestate.Claim{{UID: "uid-a", Name: "default/a"}},
			CPUs:      parse(t, "4-5"),
			Mems:      parse(t, "0"),
			Partition: "root",
		},
		{
			Cgroup:    "pods/p2/sidecar",
			Claims:    []nodestate.Claim{{UID: "uid-b", Name: "default/b-made"}},
			CPUs:      parse(t, "6"),
			Mems:      parse(t, "0"),
			Partition: "none",
		},
	}
	return n
}
