package evict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// objects are nodes with two zones each, a network device that every node can see, and
// the classes of both.
func objects(nodes, cpusOfZone int) string {
	var b strings.Builder
	b.WriteString(object.ClassText("zone", `device.driver == "dra.numa"`) + object.ClassText("net", `device.driver == "net.example.com"`) + `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: net}
spec: {driver: net.example.com, allNodes: true, pool: {name: net, generation: 1, resourceSliceCount: 1}, devices: [{name: d0}]}
---`)
	for i := range nodes {
		zone := fmt.Sprintf(`allowMultipleAllocations: true, capacity: {cpu: {value: %d, requestPolicy: {default: "0", validRange: {min: "0", step: "1"}}}}`, cpusOfZone)
		fmt.Fprintf(&b, `
apiVersion: v1
kind: Node
metadata: {name: n%[1]d}
status: {allocatable: {cpu: 8, pods: 20}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n%[1]d}
spec: {driver: dra.numa, nodeName: n%[1]d, pool: {name: n%[1]d, generation: 1, resourceSliceCount: 1}, devices: [{name: z0, %[2]s}, {name: z1, %[2]s}]}
---`, i, zone)
	}
	return b.String()
}

func claimOf(kind, name, requests string) string {
	spec := "devices: {requests: [" + requests + "]}"
	if kind == "ResourceClaimTemplate" {
		spec = "spec: {" + spec + "}"
	}
	return fmt.Sprintf("\napiVersion: resource.k8s.io/v1\nkind: %s\nmetadata: {name: %s}\nspec: {%s}\n---", kind, name, spec)
}

func cpus(count int) string {
	return fmt.Sprintf("{name: cpus, exactly: {deviceClassName: zone, capacity: {requests: {cpu: %d}}}}", count)
}

const device = "{name: net, exactly: {deviceClassName: net}}"

// podOf is a pod with an entry for its claim, "" for no claim.
func podOf(name string, priority, requests int, claim string) string {
	if claim != "" {
		claim = "resourceClaims: [{name: c, " + claim + "}], "
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {priority: %d, %scontainers: [{name: main, resources: {requests: {cpu: %d}}}]}
---`, name, priority, claim, requests)
}

func own(name, requests string) (template, entry string) {
	return claimOf("ResourceClaimTemplate", name, requests), "resourceClaimTemplateName: " + name
}

func read(t *testing.T, text string) *snapshot.Snapshot {
	t.Helper()
	return object.Snapshot(t, text)
}

func clusterOf(t *testing.T, s *snapshot.Snapshot) *simulate.Cluster {
	t.Helper()
	c, err := simulate.New(s, simulate.DefaultRules())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// started is the snapshot after all pods but p were placed.
func started(t *testing.T, s *snapshot.Snapshot) *snapshot.Snapshot {
	t.Helper()
	c := clusterOf(t, s)
	after := *s
	for i, pod := range s.Pods {
		if pod.Name == "p" {
			continue
		}
		placement, err := c.Place(t.Context(), pod, simulate.Options{Strategy: simulate.Spread})
		if err != nil {
			t.Fatal(err)
		}
		s.Pods[i].Spec.NodeName = placement.Node
		for _, placed := range placement.Claims {
			after.Claims = slices.DeleteFunc(after.Claims, func(claim *resourceapi.ResourceClaim) bool { return claim.Name == placed.Claim.Name })
			after.Claims = append(after.Claims, placed.Claim)
			for j := range pod.Spec.ResourceClaims {
				pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{
					Name: pod.Spec.ResourceClaims[j].Name, ResourceClaimName: &placed.Claim.Name,
				})
			}
		}
	}
	after.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return pod.Name != "p" && pod.Spec.NodeName == "" })
	return &after
}

// suggest is the answer for p after all other pods were placed.
func suggest(t *testing.T, o Options, change func(*snapshot.Snapshot), manifests ...string) Suggestion {
	t.Helper()
	s := started(t, read(t, strings.Join(manifests, "\n")))
	if change != nil {
		change(s)
	}
	got, err := Suggest(t.Context(), clusterOf(t, s), s, s.Pod("default", "p"), o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func want(t *testing.T, got Suggestion, node string, method Method, pods string, sentence string) {
	t.Helper()
	var names []string
	for _, e := range got.Evictions {
		names = append(names, strings.TrimPrefix(e.Pod, "default/"))
	}
	if got.Node != node || got.Method != method || strings.Join(names, " ") != pods || !strings.Contains(got.Sentence, sentence) {
		t.Errorf("suggested %+v\nwant node %q, %s, %s: %s", got, node, method, pods, sentence)
	}
}

// ownPod is a pod with a claim of its own for CPUs of a zone.
func ownPod(name string, priority, count int) string {
	template, entry := own(name, cpus(count))
	return template + podOf(name, priority, 1, entry)
}

func TestClaimIsFreeOnlyWithoutAllItsUsers(t *testing.T) {
	shared := claimOf("ResourceClaim", "shared", cpus(4)) + podOf("a", 1, 1, "resourceClaimName: shared") + podOf("b", 2, 1, "resourceClaimName: shared")
	got := suggest(t, Options{}, nil, objects(1, 4), shared, ownPod("c", 7, 4), ownPod("p", 9, 3))
	want(t, got, "n0", Exact, "c", "the pod fits on n0 if 1 pod is deleted; fewer are not enough")
	got = suggest(t, Options{}, nil, objects(1, 4), shared, ownPod("c", 9, 4), ownPod("p", 9, 3))
	want(t, got, "n0", Exact, "a b", "the pod fits on n0 if 2 pods are deleted")
	if claims := got.Evictions[0].Claims; len(claims) != 1 || claims[0] != "shared" {
		t.Errorf("claims of a are %q", claims)
	}
	got = suggest(t, Options{}, nil, objects(1, 4), strings.Replace(shared, "priority: 2", "priority: 10", 1), ownPod("c", 9, 4), ownPod("p", 9, 3))
	want(t, got, "", "", "", "no eviction helps: the pod fits on no node even if all running pods with a priority below 9 are deleted")
}

// The pod that holds the device runs on a node on which p does not fit.
func TestDeviceThatAllNodesSeeIsHeldByAPodElsewhere(t *testing.T) {
	holder, entry := own("holder", device)
	mine, my := own("p", device)
	got := suggest(t, Options{}, func(s *snapshot.Snapshot) { s.Nodes[0].Spec.Unschedulable = true },
		objects(2, 4), holder, podOf("holder", 0, 1, entry), mine, podOf("p", 1, 1, my))
	want(t, got, "n1", Exact, "holder", "the pod fits on n1 if 1 pod is deleted")
	if got.Evictions[0].Node != "n0" {
		t.Errorf("the holder is on %s", got.Evictions[0].Node)
	}
}

func TestTiesAreBrokenByPriorityThenClaimsThenAge(t *testing.T) {
	old := func(name string) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) {
			for _, pod := range s.Pods {
				pod.CreationTimestamp = metav1.Unix(2, 0)
			}
			s.Pod("default", name).CreationTimestamp = metav1.Unix(1, 0)
		}
	}
	big := func(name string, priority int) string { return podOf(name, priority, 4, "") }
	none := podOf("p", 9, 4, "")
	want(t, suggest(t, Options{}, old("b"), objects(1, 4), big("a", 3), big("b", 2), none), "n0", Exact, "b", "")
	template, entry := own("a", cpus(1))
	want(t, suggest(t, Options{}, old("b"), objects(1, 4), template, podOf("a", 2, 4, entry), big("b", 2), none), "n0", Exact, "b", "")
	want(t, suggest(t, Options{}, old("a"), objects(1, 4), big("a", 2), big("b", 2), none), "n0", Exact, "b", "")
}

// A large set is not called exact, but none of its pods can stay.
func TestLargeSetsAreNotCalledSmallest(t *testing.T) {
	var small []string
	for i := range 8 {
		small = append(small, podOf(fmt.Sprintf("v%d", i), i%2, 1, ""))
	}
	manifests := append(small, objects(1, 4))
	want(t, suggest(t, Options{}, nil, append(manifests, podOf("p", 9, 4, ""))...), "n0", Exact, "v0 v2 v4 v6", "fewer are not enough")
	want(t, suggest(t, Options{}, nil, append(manifests, podOf("p", 9, 5, ""))...), "n0", Greedy, "v0 v2 v4 v6 v1", "fewer may be enough, but none of these can stay")
	want(t, suggest(t, Options{Trials: 10}, nil, append(manifests, podOf("p", 9, 3, ""))...), "n0", Greedy, "v0 v2 v4", "fewer may be enough")
	looked := 0
	suggest(t, Options{Progress: func(done, total int) { looked += done * total }}, nil, append(manifests, podOf("p", 9, 3, ""))...)
	if looked != 1 {
		t.Errorf("progress was told %d, want that of 1 node", looked)
	}
}

func TestPodsThatComeBackAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"of a DaemonSet": func(pod *corev1.Pod) { pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}} },
		"of the kubelet": func(pod *corev1.Pod) { pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
		"terminating":    func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} },
	} {
		got := suggest(t, Options{}, func(s *snapshot.Snapshot) { change(s.Pod("default", "v")) }, objects(1, 4), podOf("v", 1, 6, ""), podOf("p", 9, 4, ""))
		if got.Sentence != "no eviction helps: no running pod has a priority below 9, except pods that would come back" || len(got.Evictions) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Deleting a pod frees nothing if its controller makes a pod that takes the same claim.
func TestPodsThatComeBackWithTheirClaimAreNotSuggested(t *testing.T) {
	of := func(s *snapshot.Snapshot) {
		for _, name := range []string{"named", "own"} {
			if pod := s.Pod("default", name); pod != nil {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: name, Controller: new(true)}}
			}
		}
	}
	named := claimOf("ResourceClaim", "data", cpus(4)) + podOf("named", 0, 1, "resourceClaimName: data")
	got := suggest(t, Options{}, of, objects(1, 4), named, ownPod("own", 1, 4), ownPod("p", 9, 3))
	want(t, got, "n0", Exact, "own", "the pod fits on n0 if 1 pod is deleted")
	if len(got.Protected) != 1 || got.Protected[0].Pod != "default/named" ||
		got.Protected[0].Why != "ReplicaSet named would create it again, with the same ResourceClaim data: scale it down instead" {
		t.Errorf("left out are %+v", got.Protected)
	}
	got = suggest(t, Options{}, of, objects(1, 4), named, ownPod("p", 9, 4), ownPod("q", 9, 4))
	want(t, got, "", "", "", "even if all running pods with a priority below 9 are deleted that do not come back with their claims")
	// A pod without a controller does not come back.
	want(t, suggest(t, Options{}, nil, objects(1, 4), named, ownPod("p", 9, 4), ownPod("q", 9, 4)), "n0", Exact, "named", "")
}

func TestNothingToDelete(t *testing.T) {
	want(t, suggest(t, Options{}, nil, objects(1, 4), podOf("p", 9, 4, "")), "n0", "", "", "nothing has to be deleted: the pod fits on n0 now")
	want(t, suggest(t, Options{}, nil, objects(1, 4), podOf("p", 9, 4, "resourceClaimName: gone")), "", "", "", `no eviction helps: ResourceClaim "gone" does not exist`)
}

func TestSchedulerThatGivesUpIsAnError(t *testing.T) {
	class := strings.Replace(objects(1, 4), `device.driver == "dra.numa"`, `device.attributes["a"].b`, 1)
	s := started(t, read(t, class+ownPod("p", 9, 1)))
	_, err := Suggest(t.Context(), clusterOf(t, s), s, s.Pod("default", "p"), Options{})
	var abort *simulate.AbortError
	if !errors.As(err, &abort) {
		t.Errorf("error %v", err)
	}
}
