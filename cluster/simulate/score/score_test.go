package score

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// onNode is a node and the pods on it, as YAML.
type onNode struct {
	node string
	pods []string
}

// nodesOf returns the nodes, named n0, n1 and so on. They have 8 CPUs and 16Gi of memory.
func nodesOf(t *testing.T, list []onNode) (nodes []*Node) {
	t.Helper()
	for i, on := range list {
		node := object.Parse[corev1.Node](t, on.node)
		node.Name = fmt.Sprintf("n%d", i)
		if node.Labels == nil {
			node.Labels = make(map[string]string)
		}
		node.Labels[corev1.LabelHostname] = node.Name
		taken := make(requests.Amounts)
		n := NewNode(node, requests.Amounts{corev1.ResourceCPU: 8000, corev1.ResourceMemory: 16 << 30}, taken)
		for _, text := range on.pods {
			pod := podOf(t, text)
			for name, amount := range requests.Running(pod, false) {
				taken[name] += amount
			}
			n.Add(pod, requests.Scored(pod, false))
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func podOf(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	pod := object.Parse[corev1.Pod](t, text)
	if pod.Namespace == "" {
		pod.Namespace = "default"
	}
	return pod
}

func asks(cpu, memory string) string {
	return fmt.Sprintf("spec: {containers: [{name: main, resources: {requests: {cpu: %s, memory: %s}}}]}", cpu, memory)
}

func labelled(labels, spec string) string {
	return "{metadata: {labels: {" + labels + "}}, spec: {" + spec + "}}"
}

// The numbers are computed by hand from the plugins' code.
func TestScoresOfPlugins(t *testing.T) {
	const (
		idle    = "{}"
		noAsks  = "spec: {containers: [{name: main}]}"
		ofOwner = "{metadata: {labels: {a: b}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: %s, controller: true}]}, spec: {containers: [{name: main}]}}"
		near    = "{weight: %d, podAffinityTerm: {labelSelector: {matchLabels: {a: b}}, topologyKey: zone%s}}"
		prefer  = "affinity: {%s: {preferredDuringSchedulingIgnoredDuringExecution: [%s]}}"
	)
	spread := func(key, more string) string {
		return labelled("a: b", "containers: [{name: main}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: "+key+
			", whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}"+more+"}]")
	}
	one, two, far := "{metadata: {labels: {zone: one}}}", "{metadata: {labels: {zone: two}}}", idle
	same := labelled("a: b", "containers: [{name: main}]")
	for name, tc := range map[string]struct {
		nodes  []onNode
		pod    string
		plugin string
		want   []int64 // with the plugin's weight; nil if it gives all nodes 0
	}{
		// cpu (8-1-2)/8 = 62, memory (16-8-4)/16 = 25
		"what is left": {[]onNode{{idle, []string{asks("1", "8Gi")}}, {idle, nil}}, asks("2", "4Gi"), "NodeResourcesFit", []int64{43, 75}},
		// cpu (8000-300-100)/8000 = 95, memory (16384-600-200)/16384 = 95
		"defaults of each container": {
			[]onNode{{idle, []string{"spec: {containers: [{name: a}, {name: b}, {name: c}]}"}}, {idle, nil}},
			noAsks, "NodeResourcesFit",
			[]int64{95, 98},
		},
		"more than the node has": {[]onNode{{idle, []string{asks("8", "16Gi")}}, {idle, nil}}, asks("4", "8Gi"), "NodeResourcesFit", []int64{0, 50}},
		// shares (0.5, 0.125) become (0.5, 0.375): 50 + (50+93-81)/2; (0.125, 0.5) become
		// (0.125, 0.75): 50 + (50+68-81)/2
		"balance": {
			[]onNode{{idle, []string{asks("4", "2Gi")}}, {idle, []string{asks("1", "8Gi")}}},
			"spec: {containers: [{name: main, resources: {requests: {memory: 4Gi}}}]}",
			"NodeResourcesBalancedAllocation",
			[]int64{81, 68},
		},
		"balance without requests": {[]onNode{{idle, []string{asks("4", "2Gi")}}, {idle, nil}}, noAsks, "NodeResourcesBalancedAllocation", nil},
		"taints": {
			[]onNode{
				{"spec: {taints: [{key: a, effect: PreferNoSchedule}, {key: b, effect: PreferNoSchedule}, {key: c, effect: PreferNoSchedule}]}", nil},
				{"spec: {taints: [{key: b, effect: PreferNoSchedule}, {key: c, effect: NoSchedule}]}", nil},
				{"spec: {taints: [{key: c, effect: PreferNoSchedule}]}", nil},
			},
			"spec: {tolerations: [{key: c, operator: Exists}]}", "TaintToleration",
			[]int64{0, 150, 300},
		},
		"node affinity": {
			[]onNode{{"metadata: {labels: {disk: fast}}", nil}, {"metadata: {labels: {disk: slow}}", nil}, {idle, nil}},
			"spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [" +
				"{weight: 10, preference: {matchExpressions: [{key: disk, operator: In, values: [fast]}]}}, {weight: 1, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]}}}",
			"NodeAffinity",
			[]int64{200, 18, 0},
		},
		// half of the nodes have the image of 1000 MiB: (500-23)/(1000-23)
		"image": {
			[]onNode{{"status: {images: [{names: [x/y:latest, 'x/y@sha256:0'], sizeBytes: 1048576000}]}", nil}, {idle, nil}},
			"spec: {containers: [{name: main, image: x/y}]}", "ImageLocality",
			[]int64{48, 0},
		},
		// (5120/4-23)/(3*1000-23): init containers and volumes count, too
		"images of all kinds": {
			[]onNode{{"status: {images: [{names: ['x:1'], sizeBytes: 5368709120}]}", nil}, {idle, nil}, {idle, nil}, {idle, nil}},
			"spec: {containers: [{name: main, image: 'x:1'}], initContainers: [{name: init, image: other}], volumes: [{name: v, image: {reference: 'other:2'}}]}", "ImageLocality",
			[]int64{42, 0, 0, 0},
		},
		// zones of 2 and 0 pods: round(2*ln 4) = 3 and 0
		"spread over zones": {
			[]onNode{{one, []string{same}}, {one, []string{same}}, {two, nil}},
			spread("zone", ""), "PodTopologySpread",
			[]int64{0, 0, 200},
		},
		// 1 and 0 pods, ln 4: round(1.39) = 1
		"spread over nodes": {[]onNode{{one, []string{same}}, {two, nil}}, spread(corev1.LabelHostname, ""), "PodTopologySpread", []int64{0, 200}},
		// A node without the label gets 0. All others have as many pods.
		"spread without the label": {[]onNode{{one, nil}, {far, nil}}, spread("zone", ""), "PodTopologySpread", []int64{200, 0}},
		"spread counts only such pods": {
			[]onNode{
				{one, []string{"{metadata: {namespace: other, labels: {a: b}}}", "{metadata: {labels: {a: c}}}", "{metadata: {labels: {a: b}, deletionTimestamp: 2026-01-01T00:00:00Z}}"}},
				{two, []string{same}},
			},
			spread("zone", ""), "PodTopologySpread",
			[]int64{200, 0},
		},
		"spread by a label of the pod": {
			[]onNode{{one, []string{labelled("a: b, v: old", "")}}, {two, []string{labelled("a: b, v: new", "")}}},
			strings.Replace(spread("zone", ", matchLabelKeys: [v]"), "a: b}}, spec", "a: b, v: new}}, spec", 1), "PodTopologySpread",
			[]int64{200, 0},
		},
		// The pod of the third node counts in its zone only if its taint does not matter.
		"spread with taints that count": {
			[]onNode{{one, nil}, {two, nil}, {"{metadata: {labels: {zone: one}}, spec: {taints: [{key: a, effect: NoSchedule}]}}", []string{same}}},
			spread("zone", ", nodeTaintsPolicy: Honor"), "PodTopologySpread",
			[]int64{200, 200},
		},
		"spread with taints that do not count": {
			[]onNode{{one, nil}, {two, nil}, {"{metadata: {labels: {zone: one}}, spec: {taints: [{key: a, effect: NoSchedule}]}}", []string{same}}},
			spread("zone", ""), "PodTopologySpread",
			[]int64{0, 200},
		},
		// skew 3 and 5: without pods 2 on each; with one pod of its own 2 + ln 4
		"spread by default": {
			[]onNode{{idle, []string{fmt.Sprintf(ofOwner, "u")}}, {idle, []string{fmt.Sprintf(ofOwner, "other")}}},
			fmt.Sprintf(ofOwner, "u"), "PodTopologySpread",
			[]int64{132, 200},
		},
		"spread of a pod without such a controller": {[]onNode{{idle, []string{same}}, {idle, nil}}, same, "PodTopologySpread", nil},
		"near a pod": {
			[]onNode{{one, nil}, {two, []string{same}}, {far, nil}},
			labelled("c: d", fmt.Sprintf(prefer, "podAffinity", fmt.Sprintf(near, 5, ""))), "InterPodAffinity",
			[]int64{0, 200, 0},
		},
		"far from a pod": {
			[]onNode{{one, nil}, {two, []string{same}}, {far, nil}},
			labelled("c: d", fmt.Sprintf(prefer, "podAntiAffinity", fmt.Sprintf(near, 5, ""))), "InterPodAffinity",
			[]int64{200, 0, 200},
		},
		"a pod prefers to be near": {
			[]onNode{{one, []string{labelled("c: d", fmt.Sprintf(prefer, "podAffinity", fmt.Sprintf(near, 5, "")))}}, {two, nil}},
			same, "InterPodAffinity",
			[]int64{200, 0},
		},
		"a pod requires to be near": {
			[]onNode{
				{one, []string{labelled("c: d", "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {a: b}}, topologyKey: zone}]}}")}},
				{two, []string{labelled("c: d", fmt.Sprintf(prefer, "podAffinity", fmt.Sprintf(near, 4, "")))}},
				{far, nil},
			},
			same, "InterPodAffinity",
			[]int64{50, 200, 0},
		},
		"of another namespace": {
			[]onNode{{one, []string{"{metadata: {namespace: other, labels: {a: b}}}"}}, {two, []string{same}}},
			labelled("c: d", fmt.Sprintf(prefer, "podAffinity", fmt.Sprintf(near, 5, ", namespaces: [other]"))), "InterPodAffinity",
			[]int64{200, 0},
		},
		"of every namespace": {
			[]onNode{{one, []string{"{metadata: {namespace: other, labels: {a: b}}}", same}}, {two, []string{same}}, {far, nil}},
			labelled("c: d", fmt.Sprintf(prefer, "podAffinity", fmt.Sprintf(near, 5, ", namespaceSelector: {}"))), "InterPodAffinity",
			[]int64{200, 100, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := nodesOf(t, tc.nodes)
			var candidates []Candidate
			for _, n := range nodes {
				if !slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Effect == corev1.TaintEffectNoSchedule && taint.Key == "a" }) {
					candidates = append(candidates, Candidate{Node: n})
				}
			}
			ranking := NewCluster(nodes).Rank(podOf(t, tc.pod), candidates)
			var got []int64
			for i := range candidates {
				s := ranking.Score(i)
				if part, given := s.Plugins[tc.plugin]; given {
					got = append(got, part)
				}
				total := int64(0)
				for _, part := range s.Plugins {
					total += part
				}
				if total != s.Total || total != ranking.Totals[i] {
					t.Errorf("the total of %s is %d, want %d", candidates[i].Name, s.Total, total)
				}
			}
			if !slices.Equal(got, tc.want) || len(ranking.Unknown) > 0 {
				t.Errorf("%s gives %v, want %v; unknown is %q", tc.plugin, got, tc.want, ranking.Unknown)
			}
		})
	}
}

func TestAlternativesCountByTheirOrder(t *testing.T) {
	claim := object.Parse[resourceapi.ResourceClaim](t, `
spec:
  devices:
    requests:
    - {name: a, firstAvailable: [{name: u}, {name: v}]}
    - {name: b, exactly: {}}
    - {name: c, firstAvailable: [{name: u}, {name: v}, {name: w}]}`)
	for want, results := range map[int64]string{
		8 + 6: "[{request: a/u}, {request: b}, {request: c/w}]",
		7 + 8: "[{request: a/v}, {request: a/v}, {request: b}, {request: c/u}]",
	} {
		allocation := object.Parse[resourceapi.AllocationResult](t, "devices: {results: "+results+"}")
		if got := Alternatives([]*resourceapi.ResourceClaim{claim}, []resourceapi.AllocationResult{*allocation}); got != want {
			t.Errorf("%s is %d, want %d", results, got, want)
		}
	}
	nodes := nodesOf(t, []onNode{{"{}", nil}, {"{}", nil}, {"{}", nil}})
	ranking := NewCluster(nodes).Rank(podOf(t, "{}"), []Candidate{{nodes[0], 8}, {nodes[1], 7}, {nodes[2], 6}})
	for i, want := range []int64{200, 174, 150} {
		if got := ranking.Score(i).Plugins["DynamicResources"]; got != want {
			t.Errorf("node %d has %d, want %d", i, got, want)
		}
	}
}

// Without what is not known, the scores are those of a pod that does not ask for it.
func TestWhatIsNotKnownIsSaid(t *testing.T) {
	for want, pod := range map[string]string{
		"namespaceSelector of pod affinity": `
metadata: {labels: {a: b}}
spec:
  affinity:
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 1
        podAffinityTerm:
          topologyKey: zone
          labelSelector: {matchLabels: {a: b}}
          namespaceSelector: {matchLabels: {team: red}}`,
		"preferred node affinity that is not valid": `
spec:
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, preference: {matchExpressions: [{key: a, operator: No}]}}`,
		"a topology spread constraint whose selector is not valid": `
spec:
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchExpressions: [{key: a, operator: No}]}}`,
	} {
		nodes := nodesOf(t, []onNode{{"{metadata: {labels: {zone: one}}}", []string{"{metadata: {namespace: other, labels: {a: b}}}"}}, {"{}", nil}})
		ranking := NewCluster(nodes).Rank(podOf(t, pod), []Candidate{{Node: nodes[0]}, {Node: nodes[1]}})
		if len(ranking.Unknown) != 1 || !strings.HasPrefix(ranking.Unknown[0], want) {
			t.Errorf("unknown is %q, want %q", ranking.Unknown, want)
		}
	}
}

func TestLimitOfScoredNodes(t *testing.T) {
	for nodes, want := range map[int]int{1: 1, 99: 99, 100: 100, 101: 100, 200: 100, 300: 144, 5000: 500, 6000: 300} {
		if got := Limit(nodes); got != want {
			t.Errorf("of %d nodes, %d are scored, want %d", nodes, got, want)
		}
	}
}
