package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// zoneClass selects the zones of the test nodes.
var zoneClass = object.ClassText("zone.dra.numa", `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"`)

// zone is a shared device as the driver publishes it, with cpu in steps.
type zone struct {
	cpu, step int
	memory    string
}

// zonedNode is a Node and the slice of its zones, named numa-0, numa-1, …; more are
// further devices, each YAML in one line.
func zonedNode(name string, zones []zone, more ...string) string {
	var b strings.Builder
	total := 0
	for _, z := range zones {
		total += z.cpu
	}
	fmt.Fprintf(&b, `
apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s}}
status: {allocatable: {cpu: %[2]d, memory: 1Ti, pods: 110}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s-slice}
spec:
  driver: dra.numa
  nodeName: %[1]s
  pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}
  devices:
`, name, total)
	for i, z := range zones {
		fmt.Fprintf(&b, `  - name: numa-%[1]d
    allowMultipleAllocations: true
    attributes: {kind: {string: zone}, resource.kubernetes.io/numaNode: {int: %[1]d}, socket: {int: %[2]d}}
    capacity:
      cpu: {value: "%[3]d", requestPolicy: {default: "0", validRange: {min: "0", step: "%[4]d"}}}
      memory: {value: "%[5]s", requestPolicy: {default: "0", validRange: {min: "0", step: 1Mi}}}
`, i, i/2, z.cpu, max(z.step, 1), z.memory)
	}
	for _, device := range more {
		fmt.Fprintf(&b, "  - %s\n", device)
	}
	return b.String() + "---"
}

// claimingPod is a pod with a template of its own and a claim from it.
func claimingPod(name string, requests string) string {
	return template(name, requests) + fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  resourceClaims: [{name: devices, resourceClaimTemplateName: %[1]s}]
  containers: [{name: main, resources: {claims: [{name: devices}]}}]
---`, name)
}

func template(name, requests string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec:
  spec:
    devices: {%s}
---`, name, strings.TrimSpace(requests))
}

// zoneRequest asks for a share of a zone.
func zoneRequest(name, capacity string) string {
	return fmt.Sprintf("{name: %s, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {%s}}}}", name, capacity)
}

func read(t testing.TB, manifests ...string) *snapshot.Snapshot {
	t.Helper()
	return object.Snapshot(t, manifests...)
}

func cluster(t testing.TB, s *snapshot.Snapshot, gates string) *Cluster {
	t.Helper()
	rules, err := DefaultRules().With(gates)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(s, rules)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run places all pods that wait, with the feature gates of 1.37.
func run(t testing.TB, manifests ...string) Result {
	t.Helper()
	return runWith(t, Options{AllNodes: true}, "", manifests...)
}

func runWith(t testing.TB, o Options, gates string, manifests ...string) Result {
	t.Helper()
	s := read(t, manifests...)
	result, err := cluster(t, s, gates).Run(t.Context(), s.Waiting(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// where has a line for each pod: its node and devices, or the reasons.
func where(result Result) string {
	var b strings.Builder
	for _, pod := range result.Pods {
		fmt.Fprintf(&b, "%s on %s of %s:", strings.TrimPrefix(pod.Pod, "default/"), pod.Node, strings.Join(pod.FeasibleNodes, " "))
		for _, claim := range pod.Claims {
			for _, a := range claim.Allocations {
				fmt.Fprintf(&b, " %s=%s/%s", a.Request, a.Pool, a.Device)
				if cpu, ok := a.ConsumedCapacity["cpu"]; ok {
					fmt.Fprintf(&b, "(%s)", cpu.String())
				}
			}
		}
		b.WriteString("\n")
	}
	for _, pod := range result.Unschedulable {
		fmt.Fprintf(&b, "%s nowhere:", strings.TrimPrefix(pod.Pod, "default/"))
		for _, r := range pod.Reasons {
			fmt.Fprintf(&b, " [%s] %s", r.Node, r.Reason)
		}
		b.WriteString("\n")
	}
	return b.String()
}
