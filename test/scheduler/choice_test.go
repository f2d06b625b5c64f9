package scheduler

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// caseLabel is on the nodes of a case, with its name, and on its pods that wait.
const caseLabel = "scheduler.test/case"

// turn is the gate of a pod that waits for its turn.
const turn = "scheduler.test/turn"

// choice is a case in which the scheduler chooses among a few nodes.
type choice struct {
	nodes   []string // a, b and c: YAML that is added to an empty Node
	objects string   // the rest, as YAML. It can use what manifest replaces
	pods    int      // how many pods wait for their turn
	// best are the nodes that have the highest score for each pod, such as "a b". They are
	// not given where the nodes of earlier pods are chance.
	best []string
	// restart restarts the scheduler before the second pod.
	restart bool
}

// manifest replaces in the text of a case:
//
//	NAME      the name of the case
//	METADATA  labels of a pod that waits for its turn
//	SPEC      the first fields of its spec
//	HERE      its first fields if it runs already
func manifest(name, text string) string {
	const alive = "nodeSelector: {" + caseLabel + ": NAME}, tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}, {key: node.kubernetes.io/unreachable, operator: Exists}]"
	return strings.NewReplacer("NAME", name).Replace(strings.NewReplacer(
		"METADATA", "labels: {"+caseLabel+": NAME, app: web}",
		"SPEC", "schedulingGates: [{name: "+turn+"}], "+alive,
		"HERE", alive,
	).Replace(text))
}

// TestTheSchedulerChoosesANodeWithTheHighestScore: the pods of a case are placed one after
// the other. Each has to go to a node to which we give the highest score.
func TestTheSchedulerChoosesANodeWithTheHighestScore(t *testing.T) {
	api := connect(t, "APISERVER_KUBECONFIG")
	applier, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	run := time.Now().Unix() % 100_000 // so that one cluster can have several runs
	cases := make(map[string]choice)
	for what, c := range choices() {
		cases[fmt.Sprintf("%s-%d", strings.ReplaceAll(what, " ", "-"), run)] = c
	}
	waitForAccount(t, api)
	for name, c := range cases {
		c.createNodes(t, api, name)
		files := fstest.MapFS{name + ".yaml": {Data: []byte(manifest(name, c.objects))}}
		if err := applier.Apply(t.Context(), files, namespace); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3 * time.Second) // the scheduler learns of them
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.check(t, api, name) })
	}
}

// waitForAccount waits until a new cluster has the service account that pods need.
func waitForAccount(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		_, err := api.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func (c choice) createNodes(t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	for i, more := range c.nodes {
		node := object.Parse[corev1.Node](t, more)
		node.Name = name + "-" + string(rune('a'+i))
		node.Labels = withLabels(node.Labels, caseLabel, name, corev1.LabelHostname, node.Name)
		if node.Status.Allocatable == nil {
			node.Status.Allocatable = corev1.ResourceList{}
		}
		for name, amount := range map[corev1.ResourceName]string{"cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "20"} {
			if _, has := node.Status.Allocatable[name]; !has {
				node.Status.Allocatable[name] = resource.MustParse(amount)
			}
		}
		node.Status.Capacity = node.Status.Allocatable
		if _, err := api.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func withLabels(labels map[string]string, pairs ...string) map[string]string {
	if labels == nil {
		labels = make(map[string]string)
	}
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return labels
}

func (c choice) check(t *testing.T, api kubernetes.Interface, name string) {
	names := c.waiting(t, api, name)
	objects, err := live.Source{Client: api}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := simulate.New(objects, rulesOf(t, api, ""))
	if err != nil {
		t.Fatal(err)
	}
	for i, podName := range names {
		if c.restart && i == 1 {
			restartScheduler(t)
		}
		node := c.schedule(t, api, podName)
		pod := objects.Pod(namespace, podName)
		if pod == nil {
			t.Fatalf("pod %s is not in the snapshot", podName)
		}
		pod.Spec.SchedulingGates = nil
		placement, err := cluster.Place(t.Context(), pod, simulate.Options{
			AllNodes: true,
			Choose:   func(*corev1.Pod, []string) string { return node },
		})
		if err != nil {
			t.Fatal(err)
		}
		var best []string
		for _, b := range placement.Choice.Best {
			best = append(best, strings.TrimPrefix(b, name+"-"))
		}
		if !slices.Contains(placement.Choice.Best, node) {
			t.Errorf("pod %d is on %s, simulated on %q of %q: %+v", i, node, best, placement.Feasible, placement.Choice.Scores)
		}
		if want := c.best; want != nil && want[i] != strings.Join(best, " ") {
			t.Errorf("pod %d: the highest score have %q, want %q: %+v", i, best, want[i], placement.Choice.Scores)
		}
	}
}

// waiting returns the pods that wait for their turn, sorted, once all are there.
func (c choice) waiting(t *testing.T, api kubernetes.Interface, name string) (names []string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(names) < c.pods; {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute, there are pods %q, want %d", names, c.pods)
		}
		time.Sleep(200 * time.Millisecond)
		list, err := api.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: caseLabel + "=" + name})
		if err != nil {
			t.Fatal(err)
		}
		names = sortedNames(byName(list.Items))
	}
	return names
}

// schedule lets the scheduler place a pod, and returns its node.
func (c choice) schedule(t *testing.T, api kubernetes.Interface, podName string) (node string) {
	t.Helper()
	pods := api.CoreV1().Pods(namespace)
	pod, err := pods.Get(t.Context(), podName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Spec.SchedulingGates = nil
	if _, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); pod.Spec.NodeName == ""; {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute, pod %s has no node: %s", podName, message(pod))
		}
		time.Sleep(100 * time.Millisecond)
		if pod, err = pods.Get(t.Context(), podName, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return pod.Spec.NodeName
}

// restartVariable is the environment's, for the command that restarts the scheduler.
const restartVariable = "SCHEDULER_RESTART"

func restartScheduler(t *testing.T) {
	t.Helper()
	command := os.Getenv(restartVariable)
	if command == "" {
		t.Skipf("%s names no command; make apiserver does", restartVariable)
	}
	if output, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
}
