package accounting

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestMirror(t *testing.T) {
	lines := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return r == ';' })
	}
	for name, row := range map[string]struct {
		pod, shares string
		want        string // requests afterwards
		short       string
	}{
		"one container":                                           {"main a uses=c", "c cpu=4 memory=1Gi", "a: cpu 4, memory 1Gi", ""},
		"requests of its own include the claim":                   {"main a cpu=500m memory=2Gi uses=c", "c cpu=4 memory=1Gi", "a: cpu 4, memory 2Gi", ""},
		"repeated by hand":                                        {"main a cpu=4 memory=1Gi uses=c", "c cpu=4 memory=1Gi", "a: cpu 4, memory 1Gi", ""},
		"two claims of one container add up":                      {"main a uses=c uses=d", "c cpu=4; d cpu=2", "a: cpu 6", ""},
		"two requests of one claim":                               {"main a uses=c", "c/x cpu=4; c/y cpu=2", "a: cpu 6", ""},
		"a container each for the requests of a claim":            {"main a uses=c/x; main b uses=c/y", "c/x cpu=4; c/y cpu=2", "a: cpu 4; b: cpu 2", ""},
		"a claim that two containers share counts once":           {"main a uses=c; main b uses=c", "c cpu=4", "a: cpu 4; b: ", ""},
		"split by hand":                                           {"main a cpu=1 uses=c; main b cpu=3 uses=c", "c cpu=4", "a: cpu 1; b: cpu 3", ""},
		"split by hand, too little":                               {"main a cpu=1 uses=c; main b cpu=1 uses=c", "c cpu=4", "a: cpu 3; b: cpu 1", ""},
		"own claim before a shared one":                           {"main a cpu=2 uses=c uses=d; main b cpu=4 uses=c", "c cpu=4; d cpu=2", "a: cpu 2; b: cpu 4", ""},
		"containers without a claim stay":                         {"main a cpu=3; main b uses=c", "c cpu=4", "a: cpu 3; b: cpu 4", ""},
		"an init container's claim is the main one's too":         {"init i uses=c; main a uses=c", "c cpu=4", "i: cpu 4; a: cpu 4", ""},
		"an init container's own claim is held to the end":        {"init i uses=d; main a uses=c", "c cpu=4; d cpu=2", "i: cpu 2; a: cpu 6", ""},
		"two init containers with a claim each":                   {"init i uses=c; init j uses=d; main a", "c cpu=4; d cpu=2", "i: cpu 4; j: cpu 2; a: cpu 6", ""},
		"an init container while other containers' claim is held": {"init i cpu=8; main a cpu=4 uses=c", "c cpu=4", "i: cpu 8; a: cpu 12", ""},
		"an init container that needs more than its claim":        {"init i cpu=8 uses=c; main a uses=c", "c cpu=4", "i: cpu 8; a: cpu 4", ""},
		"a sidecar's claim":                                       {"side s uses=c; init i; main a uses=d", "c cpu=4; d cpu=2", "s: cpu 4; i: ; a: cpu 2", ""},
		"a sidecar and an init container share a claim":           {"side s uses=c; init i uses=c; main a", "c cpu=4", "s: cpu 4; i: ; a: ", ""},
		"a sidecar shares with a main container, which counts it": {"side s uses=c; init i uses=c; main a uses=c", "c cpu=4", "s: ; i: cpu 4; a: cpu 4", ""},
		"no container uses the claim":                             {"main a; main b", "c cpu=4", "a: cpu 4; b: ", ""},
		"hugepages":                                               {"main a uses=c", "c hugepages-2Mi=4Mi", "a: hugepages-2Mi 4Mi", ""},
		"hugepages, limits only":                                  {"main a limit:hugepages-2Mi=4Mi uses=c", "c hugepages-2Mi=4Mi", "a: ", ""},
		"a CPU limit is not exceeded":                             {"main a limit:cpu=3 uses=c", "c cpu=4", "a: ", "cpu 1"},
		"what one's limit forbids is the other's":                 {"main a cpu=1 limit:cpu=3 uses=c; main b uses=c", "c cpu=4", "a: cpu 3; b: cpu 1", ""},
		"a memory limit is not exceeded":                          {"main a memory=1Mi limit:memory=64Mi uses=c", "c memory=1Gi", "a: memory 64Mi", "memory 960Mi"},
		"the pod's own requests":                                  {"pod cpu=2; main a uses=c; main b cpu=1", "c cpu=4 memory=1Gi", "a: memory 1Gi; b: cpu 1; pod: cpu 5", ""},
		"the pod's own limit":                                     {"pod cpu=2 limit:cpu=3; main a uses=c", "c cpu=4", "a: ; pod: cpu 3", "cpu 1"},
		"the pod's own requests, and a container's limit":         {"pod cpu=1; main a limit:cpu=1 uses=c", "c cpu=8", "a: ; pod: cpu 8", ""},
		"both limits":                                             {"pod cpu=1 limit:cpu=2; main a limit:cpu=1 uses=c", "c cpu=8", "a: ; pod: cpu 2", "cpu 6"},
		"the pod's own requests of another resource":              {"pod memory=1Gi; main a limit:cpu=1 uses=c", "c cpu=8", "a: ; pod: memory 1Gi", "cpu 7"},
		"no shares": {"main a cpu=1", "", "a: cpu 1", ""},
	} {
		pod := podOf(lines(row.pod)...)
		got := Mirror(pod, sharesOf(lines(row.shares)...))
		if diff := cmp.Diff(row.want, requestsOf(got.Pod)); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", name, diff)
		}
		if Text(got.Short) != row.short {
			t.Errorf("%s: short %q, want %q", name, Text(got.Short), row.short)
		}
		if changed := requestsOf(pod) != requestsOf(got.Pod); got.Changed != changed {
			t.Errorf("%s: changed %t", name, got.Changed)
		}
		for i, container := range got.Pod.Spec.Containers {
			_, before := pod.Spec.Containers[i].Resources.Limits[corev1.ResourceCPU]
			if _, after := container.Resources.Limits[corev1.ResourceCPU]; after && !before {
				t.Errorf("%s: a CPU limit", name)
			}
		}
	}
}

// More than a number can have is the most that it can have, and not little.
func TestMirrorSaturates(t *testing.T) {
	for name, row := range map[string]struct{ pod, shares string }{
		"shares that add up":               {"main a uses=c", strings.Repeat("c/a cpu=2000000000000000;c/b cpu=2000000000000000;", 8)},
		"one share":                        {"main a uses=c", "c cpu=18446744073709551716m"},
		"shares of several containers":     {"init i uses=d; side s uses=e; main a uses=c", "c cpu=2000000000000000; d cpu=2000000000000000; e cpu=2000000000000000"},
		"shares of a pod with own request": {"pod cpu=1; main a uses=c; main b uses=d; main e uses=e", "c cpu=2000000000000000; d cpu=2000000000000000; e cpu=2000000000000000"},
	} {
		lines := func(text string) []string { return strings.FieldsFunc(text, func(r rune) bool { return r == ';' }) }
		got := Mirror(podOf(lines(row.pod)...), sharesOf(lines(row.shares)...))
		lacks := got.Uncounted[corev1.ResourceCPU]
		if lacks.CmpInt64(1e15) < 0 {
			t.Errorf("%s: lacks %s", name, Text(got.Uncounted))
		}
	}
}

// The scheduler computes with 64 bits, and 18446744073709551716m are 100m then.
func TestCheckAmounts(t *testing.T) {
	for pod, wrong := range map[string]bool{
		"main a cpu=1000 memory=100Ti example.com/gpu=9000000000000000000": false,
		"main a cpu=18446744073709551716m":                                 true,
		"main a limit:cpu=18446744073709551716m":                           true,
		"init a memory=8Ei":                                                true,
		"pod cpu=9000000000000000":                                         true,
		"main a cpu=600000000000000;main b cpu=600000000000000":            true,
		"main a cpu=600000000000000;init b limit:cpu=600000000000000":      false,
	} {
		err := CheckAmounts(podOf(strings.Split(pod, ";")...))
		if (err != nil) != wrong {
			t.Errorf("%s: %v", pod, err)
		}
	}
}

func TestMirrorOfHugepagesSetsTheLimit(t *testing.T) {
	got := Mirror(podOf("main a uses=c"), sharesOf("c hugepages-2Mi=4Mi hugepages-1Gi=1Gi cpu=2")).Pod
	if limits := Text(got.Spec.Containers[0].Resources.Limits); limits != "hugepages-1Gi 1Gi, hugepages-2Mi 4Mi" {
		t.Errorf("limits %s", limits)
	}
	want := `{"a":{"cpu":"2","hugepages-1Gi":"1Gi","hugepages-2Mi":"4Mi"}}`
	if got.Annotations[Annotation] != want {
		t.Errorf("annotation %s, want %s", got.Annotations[Annotation], want)
	}
}

func TestMirrorSaysWhatWasNotCounted(t *testing.T) {
	got := Mirror(podOf("main a cpu=1 limit:cpu=3 uses=c"), sharesOf("c cpu=4 memory=1Gi"))
	if Text(got.Uncounted) != "cpu 3, memory 1Gi" || Text(got.Short) != "cpu 1" {
		t.Errorf("uncounted %s, short %s", Text(got.Uncounted), Text(got.Short))
	}
}

// For any pod, mirroring again changes nothing, and no request gets smaller. A pod
// without requests requests exactly what it holds.
func TestMirrorProperties(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		pod, shares := randomPod(random)
		first := Mirror(pod, shares)
		second := Mirror(first.Pod, shares)
		if second.Changed || requestsOf(second.Pod) != requestsOf(first.Pod) || len(second.Uncounted) != 0 {
			t.Fatalf("seed %d: %s is mirrored as %s, then as %s", seed, requestsOf(pod), requestsOf(first.Pod), requestsOf(second.Pod))
		}
		if less := excess(requested(pod), requested(first.Pod)); len(less) != 0 {
			t.Fatalf("seed %d: %s became %s", seed, requestsOf(pod), requestsOf(first.Pod))
		}
		held := corev1.ResourceList{}
		for _, share := range shares {
			add(held, share.Amounts)
		}
		if missing := excess(held, requested(first.Pod)); len(missing) != 0 {
			t.Fatalf("seed %d: %s holds %s, requests %s less", seed, requestsOf(first.Pod), Text(held), Text(missing))
		}
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				list[i].Resources.Requests = nil
			}
		}
		bare := Mirror(pod, shares)
		if more := excess(requested(bare.Pod), held); len(more) != 0 {
			t.Fatalf("seed %d: %s holds %s, requests %s more", seed, requestsOf(bare.Pod), Text(held), Text(more))
		}
	}
}

func randomPod(random *rand.Rand) (*corev1.Pod, []Share) {
	claims := []string{"c", "d", "e"}[:1+random.IntN(3)]
	var lines, shares []string
	for _, claim := range claims {
		shares = append(shares, claim+[]string{" cpu=4", " cpu=2 memory=1Gi", " cpu=1"}[random.IntN(3)])
	}
	kinds := []string{"main", "init", "side"}
	for i := range 1 + random.IntN(5) {
		line := kinds[random.IntN(3)] + " " + string(rune('a'+i))
		if i == 0 {
			line = "main a"
		}
		line += []string{"", " cpu=1", " cpu=5 memory=3Gi"}[random.IntN(3)]
		for _, claim := range claims {
			if random.IntN(2) == 0 {
				line += " uses=" + claim
			}
		}
		lines = append(lines, line)
	}
	return podOf(lines...), sharesOf(shares...)
}

// The rows of the table in docs/accounting.md are correct.
func TestArithmeticOfTheDocs(t *testing.T) {
	page := files.Read(t, "../../docs/accounting.md")
	code := regexp.MustCompile("`([^`]*)`")
	texts := func(cell string) (list []string) {
		for _, match := range code.FindAllStringSubmatch(cell, -1) {
			list = append(list, match[1])
		}
		return list
	}
	rows := 0
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "uses=") {
			continue
		}
		rows++
		got := Mirror(podOf(texts(cells[1])...), sharesOf(texts(cells[2])...))
		want := append(texts(cells[3]), "")
		if requestsOf(got.Pod) != want[0] || Text(got.Short) != want[1] {
			t.Errorf("requests %q, short %q, the page says %s", requestsOf(got.Pod), Text(got.Short), line)
		}
	}
	if rows != 11 {
		t.Errorf("the page has %d rows", rows)
	}
}
