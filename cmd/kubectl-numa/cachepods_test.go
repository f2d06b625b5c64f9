package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// cachePods is a class of caches, a template and a Deployment whose pods use it: CPUs and
// ways of the cache next to them.
func cachePods(replicas, cpus, ways int) string {
	return object.ClassText("gold", `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "cache" && device.attributes["dra.numa"].pool == "guaranteed"`) + fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: cached}
spec:
  spec:
    devices:
      requests:
      - {name: cpus, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: %d}}}}
      - {name: cache, exactly: {deviceClassName: gold, capacity: {requests: {ways: %d}}}}
      constraints: [{requests: [cpus, cache], matchAttribute: dra.numa/l3}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: p}
spec:
  replicas: %d
  template: {spec: {resourceClaims: [{name: c, resourceClaimTemplateName: cached}], containers: [{name: main, resources: {claims: [{name: c}]}}]}}
`, cpus, ways, replicas)
}

func TestExplainSaysThatNoNodeDividesItsCaches(t *testing.T) {
	dir := clusterFolder(t)
	testfiles.Write(t, filepath.Join(dir, "pods.yaml"), cachePods(1, 2, 4))
	text := mustCall(t, "explain", "pod", "p-0", "-f", dir)
	testfiles.Contains(t, text,
		"does not fit on the only node\n", "hint: no node divides its level-3 caches: ", "hint: no node has a device whose dra.numa/kind is cache, which class gold requires\n",
		"worker-1: request cache: 4 devices are not of class gold\n",
	)
}

// dividedFolder is the folder of a cluster with divided caches, and with pods that wait.
func dividedFolder(t *testing.T, pods string) (dir string) {
	t.Helper()
	dir = folderOf(t, occupied.Divided(t))
	testfiles.Write(t, filepath.Join(dir, "class.yaml"), testfiles.Read(t, "../../deviceclasses/zone.dra.numa.yaml"))
	testfiles.Write(t, filepath.Join(dir, "pods.yaml"), pods)
	return dir
}

// How many more claims fit is how many pods of a large Deployment have a node: of cache 0,
// 4 ways are left.
func TestSimulateSaysHowManyMoreClaimsFit(t *testing.T) {
	dir := dividedFolder(t, cachePods(5, 1, 2))
	exitCode, stdout, stderr := call("simulate", "-f", dir, "-o", `jsonpath={range .pods[*]}{.node} {.claims[0].allocations[1].device}{"\n"}{end}`)
	const want = "worker-1 cache-0-guaranteed\nworker-1 cache-0-guaranteed\n"
	if exitCode != exitFailed || stdout != want || !strings.Contains(stderr, "3 of 5 pods have no node") {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", exitCode, stderr, stdout)
	}
}

func TestExplainNamesWhoHoldsWays(t *testing.T) {
	dir := dividedFolder(t, cachePods(1, 2, 6))
	text := mustCall(t, "explain", "pod", "p-0", "-f", dir)
	testfiles.Contains(t, text,
		"worker-1: request cache: asks for 6 ways of one device: cache-0-guaranteed has 4 of 10 left, cache-1-guaranteed has 0 of 10 left\n",
		"  pod prod/gold-a holds 4 ways of cache-0-guaranteed through claim prod/gold-a\n",
		"  pod prod/gold-b holds 2 ways of cache-0-guaranteed through claim prod/gold-b\n",
		"  pod prod/gold-c holds 10 ways of cache-1-guaranteed through claim prod/gold-c\n",
	)
	if strings.Contains(text, "no node divides") {
		t.Errorf("a node divides its caches, but explain says\n%s", text)
	}
}

// prod/silver holds 2 to 5 of the 7 ways of cache 0, so that 3 more are shared.
func TestSimulateSaysHowFarAClaimGrows(t *testing.T) {
	pods := strings.ReplaceAll(strings.ReplaceAll(cachePods(1, 1, 2), "gold", "silver"), `"guaranteed"`, `"besteffort"`)
	dir := dividedFolder(t, pods)
	testfiles.Contains(t, mustCall(t, "simulate", "-f", dir), "/cache-0-besteffort  bandwidthPercent 100, classes 1, ways 2 (reaches 3, at most 5)\n")
	testfiles.Contains(t, mustCall(t, "simulate", "-f", dir, "-o", "jsonpath={.pods[*].claims[0].allocations[1].ways}"), `{"max":5,"min":2,"reachable":3}`)
}
