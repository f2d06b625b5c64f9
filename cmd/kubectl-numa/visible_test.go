package main

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// tenantCluster has a pod that waits, and a pod whose claim nobody allocates.
const tenantCluster = `
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: team}
spec: {containers: [{name: main}], resourceClaims: [{name: cpus, resourceClaimName: cpus}]}
status:
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 cannot allocate all claims."}]
---
apiVersion: v1
kind: Pod
metadata: {name: lost, namespace: team}
spec: {containers: [{name: main}], resourceClaims: [{name: cpus, resourceClaimTemplateName: none}]}
---
apiVersion: v1
kind: Pod
metadata: {name: last, namespace: team, creationTimestamp: 2026-01-01T00:00:00Z}
spec: {containers: [{name: main}], resourceClaims: [{name: cpus, resourceClaimName: cpus}]}
`

// namespaceOnly is what a user sees who may read only the objects of namespace team, and
// of all namespaces those at the given paths.
func namespaceOnly(t *testing.T, paths ...string) (kubeconfig string) {
	t.Helper()
	dir := clusterFolder(t)
	testfiles.Write(t, filepath.Join(dir, "starting.yaml"), startingCluster)
	testfiles.Write(t, filepath.Join(dir, "tenant.yaml"), tenantCluster)
	all := objectAnswers(t, dir)
	seen := answers{
		"/metrics": gatesOn,
		"/apis/resource.k8s.io/v1/namespaces/team/resourceclaimtemplates": all["/apis/resource.k8s.io/v1/resourceclaimtemplates"],
		"/apis/resource.k8s.io/v1/namespaces/team/resourceclaims":         all["/apis/resource.k8s.io/v1/resourceclaims"],
		"/api/v1/namespaces/team/pods":                                    all["/api/v1/pods"],
		"/api/v1/namespaces/team/events":                                  listOf("EventList", "v1", []any{}),
	}
	maps.DeleteFunc(all, func(path string, _ any) bool { return !strings.Contains(strings.Join(paths, " "), filepath.Base(path)) })
	maps.Copy(seen, all)
	return seen.serve(t)
}

const (
	allUnseen  = "there may be more obstacles, because you may not list: Nodes, DeviceClasses, ResourceSlices, DeviceTaintRules, ResourceClaims, ResourceClaimTemplates and Pods of other namespaces than team\n"
	podsUnseen = "there may be more obstacles, because you may not list: ResourceClaims, ResourceClaimTemplates and Pods of other namespaces than team\n"
	said       = "the scheduler says: 0/1 nodes are available: 1 cannot allocate all claims.\n"
)

// A user who may read one namespace gets the answers that its objects have. What the user
// may not see is named, and never said not to exist.
func TestExplainForThoseWhoSeeOneNamespace(t *testing.T) {
	const unknown = "it is not known on which nodes it fits, because you may not list Nodes, DeviceClasses, ResourceSlices\n"
	kubeconfig := namespaceOnly(t)
	for args, want := range map[string]string{
		"pod waits":  "team/waits: " + unknown + said + allUnseen,
		"pod lost":   `team/lost: ResourceClaimTemplate "none" does not exist in namespace team` + "\n" + allUnseen,
		"claim cpus": "team/cpus: " + unknown + allUnseen,
		"pod stuck": "team/stuck: is assigned to node worker-1, but does not start there\n" + allUnseen + "\nworker-1: " +
			`ResourceClaim "cpus" is not allocated: the pod got its node without the scheduler, which alone allocates claims` +
			"\n\nhint: create the pod without spec.nodeName, and with the node selector kubernetes.io/hostname: worker-1, so that the scheduler allocates its claims\n",
	} {
		text, document := explained(t, append(strings.Fields(args), "--kubeconfig", kubeconfig)...)
		if diff := cmp.Diff(want, text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
		if len(document.Unseen) != 5 {
			t.Errorf("%s: unseen is %q", args, document.Unseen)
		}
	}
}

// The claims and pods of others may hold what seems to be free.
func TestWhatFitsOnlyMayFitForThoseWhoDoNotSeeAll(t *testing.T) {
	kubeconfig := namespaceOnly(t, "nodes", "deviceclasses", "resourceslices", "devicetaintrules")
	text, document := explained(t, "pod", "waits", "--kubeconfig", kubeconfig)
	want := "team/waits: may fit on 1 of 1 nodes: worker-1\n" + said + podsUnseen + "\nworker-1: may fit\n"
	if !strings.HasPrefix(text, want) || document.Node != "worker-1" || len(document.Hints) > 0 {
		t.Errorf("explain says\n%swant\n%s", text, want)
	}
}

// Without one of these kinds, nobody can say where a pod fits, also not for the pods before it.
func TestExplainWithoutOneKind(t *testing.T) {
	kinds := map[string]string{"nodes": "Nodes", "deviceclasses": "DeviceClasses", "resourceslices": "ResourceSlices"}
	for path, kind := range kinds {
		paths := []string{"devicetaintrules"}
		for other := range kinds {
			if other != path {
				paths = append(paths, other)
			}
		}
		kubeconfig := namespaceOnly(t, paths...)
		for _, args := range []string{"pod waits", "pod last", "claim cpus"} {
			text, document := explained(t, append(strings.Fields(args), "--kubeconfig", kubeconfig)...)
			want := ": it is not known on which nodes it fits, because you may not list " + kind + "\n"
			if !strings.Contains(text, want) || document.Blocked || len(document.Assumed) > 0 {
				t.Errorf("without %s, explain %s says\n%s", kind, args, text)
			}
		}
	}
}

// Who may not read the namespace itself gets an error that says so.
func TestExplainNeedsTheNamespaceItself(t *testing.T) {
	exitCode, _, stderr := call("explain", "pod", "waits", "-n", "other", "--kubeconfig", namespaceOnly(t))
	if exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: read the cluster: list ResourceClaims: forbidden: ") {
		t.Errorf("exit code %d, stderr %q", exitCode, stderr)
	}
	// The other commands would be wrong without all objects.
	for _, args := range []string{"simulate", "suggest-evictions pod waits", "status"} {
		exitCode, _, stderr := call(append(strings.Fields(args), "--kubeconfig", namespaceOnly(t))...)
		if exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: read the cluster: list Nodes: forbidden: ") {
			t.Errorf("%s: exit code %d, stderr %q", args, exitCode, stderr)
		}
	}
}
