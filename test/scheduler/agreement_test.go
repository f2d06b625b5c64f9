package scheduler

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/scenario"
)

// seedVariable is the environment's, for the number of the first seed.
const seedVariable = "SCHEDULER_SEED"

// versionVariable is the environment's, for the version of the clusters' schedulers, which may
// be another than that of their API servers.
const versionVariable = "SCHEDULER_VERSION"

// rulesOf returns the rules of the cluster's scheduler, with these feature gates.
func rulesOf(t *testing.T, cluster kubernetes.Interface, gates string) simulate.Rules {
	t.Helper()
	version := os.Getenv(versionVariable)
	if version == "" {
		var err error
		if version, err = client.Release(cluster.Discovery()); err != nil {
			t.Fatal(err)
		}
	}
	rules, err := simulate.RulesOf(version)
	if err != nil {
		t.Fatalf("%s: %v", versionVariable, err)
	}
	if rules, err = rules.With(gates); err != nil {
		t.Fatal(err)
	}
	return rules
}

// gaveUp is for a pod on which the scheduler gives up. Because of which of several
// nodes it does so is chance.
const gaveUp = "gave up"

// trial is a scenario, in the cluster and simulated.
type trial struct {
	scenario.Scenario
	cluster *simulate.Cluster
	seed    uint64
	worse   int // feasible nodes of the last pod that did not have the highest score
}

// TestSimulateAgreesWithTheScheduler: one pod of every scenario after the other.
// A node that the scheduler chose has to be one with the highest score here too, and
// the devices have to be the same; without a node, none may be feasible here. The
// first seed can be set to try other scenarios.
func TestSimulateAgreesWithTheScheduler(t *testing.T) {
	t.Run("default gates", func(t *testing.T) {
		cluster := connect(t, "APISERVER_KUBECONFIG")
		made := scenario.New
		if isOld(t, cluster) {
			made = newScenario136
		}
		agree(t, cluster, newTrials(t, 200, made, rulesOf(t, cluster, "")))
	})
	t.Run("node allocatable resources", func(t *testing.T) {
		cluster := connect(t, "ALLOCATABLE_KUBECONFIG")
		if isOld(t, cluster) {
			t.Skip("Kubernetes 1.36 has other fields for them, which nothing here writes or reads")
		}
		agree(t, cluster, newTrials(t, 60, scenario.NewAllocatable, rulesOf(t, cluster, "DRANodeAllocatableResources=true")))
	})
	t.Run("lists", func(t *testing.T) {
		cluster := connect(t, "LISTS_KUBECONFIG")
		if isOld(t, cluster) {
			t.Skip("the allocator of Kubernetes 1.36 takes back no element of a list that a device had excluded when it tries another device")
		}
		agree(t, cluster, newTrials(t, 100, scenario.NewLists, rulesOf(t, cluster, "DRAListTypeAttributes=true")))
	})
}

func isOld(t *testing.T, cluster kubernetes.Interface) bool {
	t.Helper()
	release, err := client.Release(cluster.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	return release == client.Release136
}

// newScenario136 has no taint rules, and no slice of a pool is missing: the scheduler
// of 1.36 then gives up on every claim of all devices, on whatever node.
func newScenario136(name string, seed uint64) scenario.Scenario {
	made := scenario.New(name, seed)
	made.TaintRules = nil
	type pool struct {
		driver, name string
		generation   int64
	}
	key := func(slice *resourceapi.ResourceSlice) pool {
		return pool{slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Pool.Generation}
	}
	counts := make(map[pool]int64)
	for _, slice := range made.Slices {
		counts[key(slice)]++
	}
	for _, slice := range made.Slices {
		slice.Spec.Pool.ResourceSliceCount = counts[key(slice)]
	}
	return made
}

func agree(t *testing.T, client kubernetes.Interface, trials []*trial) {
	t.Helper()
	create(t, client, trials)
	placed, worse, unplaced, aborted, late := 0, 0, 0, 0, 0
	for step := range 5 {
		pods := createPods(t, client, trials, step)
		outcomes := waitForScheduler(t, client, pods)
		claims := listClaims(t, client)
		for _, trial := range trials {
			if step >= len(trial.Pods) {
				continue
			}
			pod := trial.Pods[step]
			outcome := outcomes[pod.Name]
			if strings.Contains(message(outcome), "timed out") {
				trial.Pods = trial.Pods[:step] // how long is too long is the machine's matter
				late++
				continue
			}
			got := trial.place(t, pod, outcome.Spec.NodeName)
			want := describe(outcome, claims)
			if got != want {
				t.Errorf("seed %d, pod %s:\nsimulated %s\nscheduled %s\n(%s)", trial.seed, pod.Name, got, want, message(outcome))
			}
			switch {
			case outcome.Spec.NodeName != "":
				placed, worse = placed+1, worse+trial.worse
			case want == gaveUp:
				aborted++
			default:
				unplaced++
			}
		}
		if t.Failed() {
			return // what follows differs because of it
		}
	}
	t.Logf("%d scenarios: the scheduler placed %d pods and left out %d nodes with lower scores, did not place %d, gave up on %d, and on %d for lack of time",
		len(trials), placed, worse, unplaced, aborted, late)
	if worse == 0 {
		t.Error("all feasible nodes had the same score, so the scenarios prove nothing about scores")
	}
	if late > len(trials)/20 {
		t.Errorf("the scheduler ran out of time with %d scenarios, so they prove little", late)
	}
}

func connect(t *testing.T, variable string) kubernetes.Interface {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s names no cluster; make apiserver starts one", variable)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newTrials(t *testing.T, count uint64, newScenario func(name string, seed uint64) scenario.Scenario, rules simulate.Rules) (trials []*trial) {
	t.Helper()
	first := uint64(1)
	if text := os.Getenv(seedVariable); text != "" {
		if _, err := fmt.Sscan(text, &first); err != nil {
			t.Fatalf("%s=%q: %v", seedVariable, text, err)
		}
	}
	run := time.Now().Unix() % 100_000 // so that one cluster can have several runs
	for i := range count {
		made := newScenario(fmt.Sprintf("r%d-%d", run, i), first+i)
		objects, err := made.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := simulate.New(objects, rules)
		if err != nil {
			t.Fatal(err)
		}
		trials = append(trials, &trial{Scenario: made, cluster: cluster, seed: first + i})
	}
	return trials
}

// place simulates the pod; if the node that the scheduler chose is feasible, it
// is chosen here too.
func (tr *trial) place(t *testing.T, pod *corev1.Pod, node string) string {
	t.Helper()
	objects, err := scenario.Scenario{Pods: []*corev1.Pod{pod}}.Snapshot() // with its defaults
	if err != nil {
		t.Fatal(err)
	}
	placement, err := tr.cluster.Place(t.Context(), objects.Pods[0], simulate.Options{
		AllNodes: true,
		Choose:   func(*corev1.Pod, []string) string { return node },
	})
	switch {
	case err != nil:
		t.Fatal(err)
	case placement.Aborted != nil:
		return gaveUp
	case placement.Node == "":
		return "nowhere"
	}
	if best := placement.Choice.Best; placement.Node == node && !slices.Contains(best, node) {
		return fmt.Sprintf("on one of %q: %+v", best, placement.Choice.Scores)
	}
	tr.worse = max(placement.Choice.Among-len(placement.Choice.Best), 0)
	var parts []string
	for _, placed := range placement.Claims {
		parts = append(parts, placed.Entry+": "+devices(placed.Claim))
	}
	return strings.Join(append([]string{placement.Node}, parts...), "; ")
}

// describe is what became of the pod in the words of place.
func describe(pod *corev1.Pod, claims map[string]*resourceapi.ResourceClaim) string {
	condition := scheduled(pod)
	switch {
	case pod.Spec.NodeName == "" && condition.Reason == corev1.PodReasonSchedulerError:
		return gaveUp
	case pod.Spec.NodeName == "":
		return "nowhere"
	}
	var parts []string
	for _, entry := range pod.Spec.ResourceClaims {
		name := ""
		if entry.ResourceClaimName != nil {
			name = *entry.ResourceClaimName
		}
		for _, status := range pod.Status.ResourceClaimStatuses {
			if status.Name == entry.Name && status.ResourceClaimName != nil {
				name = *status.ResourceClaimName
			}
		}
		parts = append(parts, entry.Name+": "+devices(claims[name]))
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		parts = append(parts, ": "+devices(claims[extended.ResourceClaimName]))
	}
	return strings.Join(append([]string{pod.Spec.NodeName}, parts...), "; ")
}

// devices are the claim's, but for the ids of shares, which are random.
func devices(claim *resourceapi.ResourceClaim) string {
	if claim == nil || claim.Status.Allocation == nil {
		return "not allocated"
	}
	var parts []string
	for _, r := range claim.Status.Allocation.Devices.Results {
		part := fmt.Sprintf("%s=%s/%s/%s", r.Request, r.Driver, r.Pool, r.Device)
		for _, name := range sortedNames(r.ConsumedCapacity) {
			amount := r.ConsumedCapacity[name]
			part += fmt.Sprintf(" %s:%s", name, amount.String())
		}
		if (r.ShareID != nil) != (len(r.ConsumedCapacity) > 0) {
			part += fmt.Sprintf(" shared:%t", r.ShareID != nil)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
