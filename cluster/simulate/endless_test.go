package simulate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
)

// thirty are a node with 30 devices. Two attributes divide them into groups of at least
// five; no two devices agree in both.
func thirty() string {
	var devices []string
	for i := range 30 {
		devices = append(devices, fmt.Sprintf("{name: d-%d, attributes: {d/row: {int: %d}, d/column: {int: %d}}}", i, i/6, i%6))
	}
	return slice("d", "", devices...) + nodeWith("n1", "", "")
}

func counted(name string, count int) string {
	return requestOf(name, "d", fmt.Sprintf(", count: %d", count))
}

// To find out that 31 of 30 devices are too many, the allocator tries more combinations
// than it ever can.
func endless(name string) string {
	return claimingPod(name, "requests: ["+counted("a", 15)+","+counted("b", 16)+"]")
}

// The allocator soon says no, because no two devices agree in both attributes. Without
// the constraints it would not.
func TestReasonsAreNotSoughtForever(t *testing.T) {
	s := read(t, thirty(), claimingPod("p", "requests: ["+counted("a", 2)+","+counted("b", 29)+"], "+
		"constraints: [{requests: [a], matchAttribute: d/row}, {requests: [a], matchAttribute: d/column}]"))
	began := time.Now()
	e, err := cluster(t, s, "").ExplainPod(t.Context(), s.Pods[0])
	if err != nil {
		t.Fatal(err)
	}
	if node := e.Nodes[0]; node.Blocks != funnel.StageTogether || !strings.HasPrefix(node.Sentence, "claim devices: each request fits alone, but not all of them together: a wants 2 devices of d") {
		t.Errorf("blocks %s: %s", node.Blocks, node.Sentence)
	}
	if took := time.Since(began); took > filterTimeout {
		t.Errorf("took %s", took)
	}
}

// A tenant's claims cannot keep a command busy for filterTimeout each.
func TestSlowSearchesGetLessTime(t *testing.T) {
	const pods = 5
	manifests := []string{thirty()}
	for i := range pods {
		manifests = append(manifests, strings.Replace(endless(fmt.Sprintf("p%d", i)), "count: 16", fmt.Sprintf("count: %d", 16+i/4), 1))
	}
	s := read(t, manifests...)
	c := cluster(t, s, "")
	c.slow = slowBudget + 1
	began := time.Now()
	result, err := c.Run(t.Context(), s.Waiting(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > filterTimeout {
		t.Errorf("took %s", took)
	}
	if len(result.Aborted) != pods {
		t.Fatalf("%d pods were given up, want %d", len(result.Aborted), pods)
	}
	for _, abort := range result.Aborted {
		if !errors.Is(abort, context.DeadlineExceeded) || !strings.Contains(abort.Error(), "no answer within 100ms") {
			t.Errorf("%v", abort)
		}
	}
}

// What is quick costs nothing of the time for slow searches.
func TestOnlySlowSearchesCount(t *testing.T) {
	c := &Cluster{}
	c.spent(time.Now().Add(-shortTimeout / 2))
	if c.slow != 0 || c.atMost(filterTimeout) != filterTimeout {
		t.Errorf("slow %s, at most %s", c.slow, c.atMost(filterTimeout))
	}
	c.spent(time.Now().Add(-2 * slowBudget))
	if c.atMost(filterTimeout) != shortTimeout {
		t.Errorf("slow %s, at most %s", c.slow, c.atMost(filterTimeout))
	}
}

// Anyone can write a large number of replicas.
func TestManifestsHaveALimitedNumberOfPods(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec: {replicas: %d, template: {spec: {containers: [{name: main}]}}}\n---\n"
	for replicas, want := range map[int]string{
		100:        "",
		9_901:      "Deployment default/b would have 9901 pods: manifests may have 10000 pods together",
		2147483647: "Deployment default/b would have 2147483647 pods: manifests may have 10000 pods together",
	} {
		s := read(t, fmt.Sprintf(deployment, "a", 100), fmt.Sprintf(deployment, "b", replicas))
		err := AddPods(s)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%d replicas: %v, want %q", replicas, err, want)
		}
	}
}
