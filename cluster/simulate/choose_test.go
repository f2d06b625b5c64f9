package simulate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const roomy = "cpu: 8, memory: 16Gi, pods: 100"

// placedOn places the only waiting pod.
func placedOn(t *testing.T, o Options, manifests ...string) Placed {
	t.Helper()
	result := runWith(t, o, "", manifests...)
	if len(result.Pods) != 1 {
		t.Fatalf("placed\n%s", where(result))
	}
	return result.Pods[0]
}

// wantChoice wants that the pod goes to a node, and that the scheduler may choose each of
// the nodes in best.
func wantChoice(t *testing.T, pod Placed, node, best string) {
	t.Helper()
	if got := strings.Join(pod.Best, " "); pod.Node != node || got != best {
		t.Errorf("placed on %s, the scheduler may choose %q, want %s and %q: %+v", pod.Node, got, node, best, pod.Scores)
	}
}

func TestAPodGoesToTheNodeWithTheHighestScore(t *testing.T) {
	busy := podWith("busy", "nodeName: n1, containers: ["+container("main", "cpu: 4, memory: 8Gi")+"]")
	pod := podWith("p", "containers: ["+container("main", "cpu: 1, memory: 1Gi")+"]")
	nodes := nodeWith("n1", "", roomy) + nodeWith("n2", "", roomy) + nodeWith("n3", "", roomy)
	wantChoice(t, placedOn(t, Options{}, nodes, pod), "n1", "n1 n2 n3")
	placed := placedOn(t, Options{}, nodes, busy, pod)
	wantChoice(t, placed, "n2", "n2 n3")
	// n1: least allocated (37 + 43) / 2, balanced 50 + (50+96-100)/2; the others (87 + 93) / 2
	// and 50 + (50+96-100)/2. No node has a taint that is only preferred: 3*100.
	text, err := json.Marshal(placed.Choice)
	if err != nil {
		t.Fatal(err)
	}
	const parts = `"plugins":{"NodeResourcesBalancedAllocation":73,"NodeResourcesFit":%d,"TaintToleration":300}}`
	want := fmt.Sprintf(`{"among":3,"scores":[{"node":"n2","best":true,"total":463,`+parts+`,{"node":"n3","best":true,"total":463,`+parts+`,{"node":"n1","best":false,"total":413,`+parts+`]}`, 90, 90, 40)
	if string(text) != want {
		t.Errorf("the choice is\n%s\nwant\n%s", text, want)
	}
	// A node that is the only one is not scored.
	placed = placedOn(t, Options{Node: "n1"}, nodes, busy, pod)
	if wantChoice(t, placed, "n1", "n1"); len(placed.Scores) > 0 {
		t.Errorf("the only node has the score %+v", placed.Scores)
	}
}

// A pod that was placed counts for the next, like one that runs.
func TestPodsThatWerePlacedCountForScores(t *testing.T) {
	pods := ""
	for i := range 4 {
		pods += podWith(fmt.Sprintf("p%d", i), "containers: ["+container("main", "cpu: 1, memory: 1Gi")+"]")
	}
	var nodes []string
	for _, pod := range run(t, nodeWith("n1", "", roomy), nodeWith("n2", "", roomy), pods).Pods {
		nodes = append(nodes, pod.Node)
	}
	if got := strings.Join(nodes, " "); got != "n1 n2 n1 n2" {
		t.Errorf("placed on %s", got)
	}
}

// Each node has one alternative. The pods are alike, so the nodes are asked only once.
func TestTheFirstAvailableAlternativeIsPreferred(t *testing.T) {
	device := func(kind string) string { return strings.Replace(wholeDevice("d", 0, "r"), "gpu", kind, 1) }
	request := "requests: [{name: one, firstAvailable: ["
	for _, kind := range []string{"red", "green", "blue"} {
		request += fmt.Sprintf("{name: %[1]s, deviceClassName: any, selectors: [{cel: {expression: 'device.attributes[\"dra.numa\"].kind == \"%[1]s\"'}}]},", kind)
	}
	request += "]}]"
	class := strings.NewReplacer("gpu.dra.numa", "any", `kind == "gpu"`, `kind != "zone"`).Replace(gpuClass)
	manifests := []string{
		class, zonedNode("n1", nil, device("blue")), zonedNode("n2", nil, device("green")), zonedNode("n3", nil, device("red"), strings.Replace(device("red"), "name: d,", "name: e,", 1)),
		claimingPod("a", request), claimingPod("b", request), claimingPod("c", request), claimingPod("d", request),
	}
	var nodes []string
	for _, pod := range run(t, manifests...).Pods {
		nodes = append(nodes, pod.Node)
	}
	if got := strings.Join(nodes, " "); got != "n3 n3 n2 n1" {
		t.Errorf("placed on %s", got)
	}
}

func TestTheChoiceIsNotCertain(t *testing.T) {
	nodes := nodeWith("n1", "", roomy) + nodeWith("n2", "", "cpu: 64, memory: 128Gi, pods: 100")
	for name, tc := range map[string]struct{ pod, unknown string }{
		"another scheduler": {"schedulerName: other", "spec.schedulerName other"},
		"spread":            {"topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]", "spec.topologySpreadConstraints with DoNotSchedule"},
		"pod affinity":      {"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}}", "required spec.affinity.podAntiAffinity"},
	} {
		pod := podWith("p", tc.pod+", containers: ["+container("main", "cpu: 1")+"]")
		placed := placedOn(t, Options{}, nodes, pod)
		wantChoice(t, placed, "n2", "n1 n2")
		if !slices.Equal(placed.Unknown, []string{tc.unknown}) {
			t.Errorf("%s: unknown is %q", name, placed.Unknown)
		}
		s := read(t, nodes, pod)
		e, err := cluster(t, s, "").ExplainPod(t.Context(), s.Waiting()[0])
		if err != nil {
			t.Fatal(err)
		}
		want := "fits on 2 of 2 nodes; n2 has the highest score, but the scheduler may choose another of these nodes, because of what is not simulated: " + tc.unknown
		if e.Sentence != want || e.Node != "n2" {
			t.Errorf("%s: node %s, %q, want %q", name, e.Node, e.Sentence, want)
		}
	}
}

// Of 120 nodes, the scheduler scores 100, and it is not known which.
func TestOfManyNodesTheSchedulerScoresOnlySome(t *testing.T) {
	nodes := nodeWith("z", "", "cpu: 64, memory: 128Gi, pods: 100")
	for i := range 119 {
		nodes += nodeWith(fmt.Sprintf("n%03d", i), "", roomy)
	}
	pod := podWith("p", "containers: ["+container("main", "cpu: 1, memory: 2Gi")+"]")
	placed := placedOn(t, Options{}, nodes, pod)
	if placed.Node != "z" || placed.Scored != 100 || len(placed.Best) != 120 || placed.Among != 120 || len(placed.Scores) != maxScores {
		t.Errorf("placed on %s, %d of %d are scored, may be any of %d, and %d have a score", placed.Node, placed.Scored, placed.Among, len(placed.Best), len(placed.Scores))
	}
	if all := placedOn(t, Options{AllNodes: true}, nodes, pod); len(all.Scores) != 120 || all.Scores[0].Node != "z" || !all.Scores[119].Best {
		t.Errorf("with all nodes, the scores are %+v", all.Scores)
	}
	s := read(t, nodes, pod)
	e, err := cluster(t, s, "").ExplainPod(t.Context(), s.Waiting()[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := "fits on 120 of 120 nodes; the scheduler scores only 100 of them, so it may choose any of them"; e.Sentence != want {
		t.Errorf("explained: %s, want %s", e.Sentence, want)
	}
}

// Which node a claim gets depends on the pod that uses it.
func TestAClaimWithoutItsPodHasNoScores(t *testing.T) {
	s := read(t, gpuClass, gpuNode("n1", 1), gpuNode("n2", 1), claim("c", gpuRequest, ""))
	e, err := cluster(t, s, "").ExplainClaim(t.Context(), s.Claims[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := "fits on 2 of 2 nodes; n1 is the first by name"; e.Sentence != want || len(e.Scores) > 0 {
		t.Errorf("%q, scores %+v, want %q", e.Sentence, e.Scores, want)
	}
}
