package collect

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

// Of 5,000 nodes, every tenth does not answer. All questions together take minutes, because
// a silent node is asked once.
func TestManySilentNodesTakeMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes []string
		for i := range 5000 {
			nodes = append(nodes, fmt.Sprintf("n%d", i))
		}
		facts, begin := &diagnosis.Facts{}, time.Now()
		for range 3 {
			answers, lacking := askNodes(t.Context(), facts, nodes, "kubelet", "configz", func(ctx context.Context, node string) (bool, error) {
				if node[len(node)-1] == '0' {
					<-ctx.Done()
					return false, ctx.Err()
				}
				time.Sleep(200 * time.Millisecond)
				return true, nil
			})
			facts.Unread = append(facts.Unread, lacking...)
			if len(answers) != 4500 || len(lacking) != 500 || !lacking[0].Silent || lacking[0].Node != "n0" {
				t.Errorf("%d answers, %d lacking, the first is %+v", len(answers), len(lacking), lacking[0])
			}
		}
		if took := time.Since(begin); took > 3*time.Minute {
			t.Errorf("three questions took %s", took)
		}
	})
}

// If all nodes are slow, those at the end are not asked. They are not silent.
func TestAQuestionIsBoundedAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := make([]string, 5000)
		for i := range nodes {
			nodes[i] = fmt.Sprintf("n%d", i)
		}
		begin := time.Now()
		answers, lacking := askNodes(t.Context(), &diagnosis.Facts{}, nodes, "kubelet", "configz", func(context.Context, string) (bool, error) {
			time.Sleep(requestTimeout - time.Second)
			return true, nil
		})
		if took := time.Since(begin); took > wholeTimeout+requestTimeout || len(answers)+len(lacking) != 5000 || len(lacking) == 0 {
			t.Errorf("%d answers, %d lacking, after %s", len(answers), len(lacking), took)
		}
		if last := lacking[len(lacking)-1]; last.Why != "not asked: the other nodes took 3m0s" || last.Silent {
			t.Errorf("the last node: %+v", last)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, lacking := askNodes(cancelled, &diagnosis.Facts{}, nodes[:1], "kubelet", "configz", func(context.Context, string) (bool, error) { return false, errors.New("asked") }); lacking[0].Why != context.Canceled.Error() {
			t.Errorf("after the user has stopped: %+v", lacking)
		}
	})
}

// The driver's pods are found once, not for each node.
func TestAskingPodsIsLinear(t *testing.T) {
	took := func(count int) time.Duration {
		facts := factsOf(t, newServer())
		first := facts.DaemonPods()[0]
		var nodes []string
		for i := range count {
			pod := first.DeepCopy()
			pod.Name, pod.Spec.NodeName = fmt.Sprintf("pod-%d", i), fmt.Sprintf("n%d", i)
			facts.Objects.Pods = append(facts.Objects.Pods, pod)
			nodes = append(nodes, pod.Spec.NodeName)
		}
		shortest := time.Hour
		for range 3 {
			begin := measure.CPUTime()
			_, unread := States(t.Context(), func(context.Context, *corev1.Pod, string, []string) ([]byte, error) { return nil, errors.New("gone") }, facts, nodes)
			if shortest = min(shortest, measure.CPUTime()-begin); len(unread) != count {
				t.Fatalf("%d nodes are unread, the first is %+v", len(unread), unread[0])
			}
		}
		return shortest
	}
	if small, large := took(500), took(2000); large > 9*small {
		t.Errorf("500 nodes take %s of CPU time, and 2,000 nodes %s", small, large)
	}
}
