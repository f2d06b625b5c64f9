package diagnosis

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

// many is the healthy cluster with a number of nodes, each with the pods and claims of the
// first.
func many(t *testing.T, count int) *Facts {
	t.Helper()
	facts := healthy(t)
	s := facts.Objects
	node, zones, claim, pod, daemon := s.Nodes[0], s.Slices[0], s.Claims[0], s.Pod("default", "p"), facts.daemonPod()
	kubelet := facts.Kubelets["n1"]
	facts.States = make(map[string]*nodestate.State)
	for i := 2; i <= count; i++ {
		name := fmt.Sprintf("n%d", i)
		n, z, c, p, d := node.DeepCopy(), zones.DeepCopy(), claim.DeepCopy(), pod.DeepCopy(), daemon.DeepCopy()
		n.Name, z.Name, c.Name, p.Name, d.Name = name, name, name, name, name
		z.Spec.NodeName, z.Spec.Pool.Name, c.Status.Allocation.Devices.Results[0].Pool = &name, name, name
		p.Spec.NodeName, d.Spec.NodeName = name, name
		p.UID, c.Status.ReservedFor[0].UID, c.Status.ReservedFor[0].Name = types.UID(name), types.UID(name), name
		p.Spec.ResourceClaims[0].ResourceClaimName = &name
		s.Nodes, s.Slices, s.Claims, s.Pods = append(s.Nodes, n), append(s.Slices, z), append(s.Claims, c), append(s.Pods, p, d)
		facts.Kubelets[name] = kubelet
		facts.States[name] = &nodestate.State{Host: &nodestate.Host{Services: []string{"tuned"}}}
	}
	return facts
}

// Four times as many nodes take about four times as long, not sixteen times.
func TestValidateIsLinear(t *testing.T) {
	took := func(nodes int) time.Duration {
		facts, shortest := many(t, nodes), time.Hour
		for range 3 {
			begin := measure.CPUTime()
			if findings := Validate(facts); len(findings) != 0 {
				t.Fatalf("findings are %+v", findings[0])
			}
			shortest = min(shortest, measure.CPUTime()-begin)
		}
		return shortest
	}
	small, large := took(500), took(2000)
	if large > 9*small {
		t.Errorf("500 nodes take %s of CPU time, and 2,000 nodes %s", small, large)
	}
	t.Logf("500 nodes take %s of CPU time, and 2,000 nodes %s", small, large)
}
