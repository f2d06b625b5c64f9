package trial

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

const claimCPUs = 2

func small(t *testing.T, c *Cluster) shape.Shape {
	t.Helper()
	s, err := shape.WithCPUs(c.Machine, claimCPUs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// on is a claim that has CPUs of a zone.
func on(name, node, zone string) *resourceapi.ResourceClaim {
	claim := shape.Allocated(name, node, []shape.Held{{Driver: "dra.numa", Device: zone, Consumed: map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse(fmt.Sprint(claimCPUs))}}})
	claim.UID = types.UID(name)
	return claim
}

func TestSlicesAreWrittenAfterSoManyClaims(t *testing.T) {
	c, _ := fakeCluster(t, 3)
	s := small(t, c)
	load := Load{Pods: 1}
	if err := c.publish(t.Context(), s, load); err != nil {
		t.Fatal(err)
	}
	for every, want := range map[int]string{
		0: "", 9: "",
		1: "a: node-0 numa-1; b: node-0 numa-2; d: node-1 numa-1; ",
		2: "b: node-0 numa-2; d: node-1 numa-1; ",
		3: "c: node-0 numa-2; ",
	} {
		w, _, err := c.orders(t.Context(), s, every)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, claim := range []*resourceapi.ResourceClaim{
			on("a", "node-0", "numa-0"), on("a", "node-0", "numa-0"),
			{ObjectMeta: metav1.ObjectMeta{UID: "pending"}},
			on("b", "node-0", "numa-1"), on("c", "node-0", "numa-3"), on("d", "node-1", "numa-0"),
		} {
			nodes, _ := w.note(claim)
			for _, node := range nodes {
				if slice := w.next(node); slice != nil {
					got += fmt.Sprintf("%s: %s %s; ", claim.UID, node, slice.Spec.Devices[0].Name)
					w.slices[node] = slice
				}
			}
		}
		if got != want {
			t.Errorf("every %d: %q, want %q", every, got, want)
		}
	}
}

func TestNodesDoNotWaitForEachOthersWrites(t *testing.T) {
	c, _ := fakeCluster(t, 2)
	s := small(t, c)
	if err := c.publish(t.Context(), s, Load{Pods: 1}); err != nil {
		t.Fatal(err)
	}
	resources := c.Client.ResourceV1()
	first := func(node string) string {
		slice, err := resources.ResourceSlices().Get(t.Context(), s.Slices(node)[0].Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slice.Spec.Devices[0].Name
	}
	synctest.Test(t, func(t *testing.T) {
		w, version, err := c.orders(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		w.writing["node-0"] <- struct{}{} // its write takes long
		done := make(chan error, 1)
		go func() { done <- w.follow(t.Context(), version, 3) }()
		synctest.Wait()
		for _, claim := range []*resourceapi.ResourceClaim{on("a", "node-0", "numa-0"), on("b", "node-0", "numa-1"), on("c", "node-1", "numa-0")} {
			if err := creation(resources.ResourceClaims(namespace), claim)(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if zero, one := first("node-0"), first("node-1"); zero != "numa-0" || one != "numa-1" {
			t.Errorf("while node-0 writes: its first zone is %s, and that of node-1 %s; want numa-0 and numa-1", zero, one)
		}
		<-w.writing["node-0"]
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if zero := first("node-0"); zero != "numa-2" || w.writes != 2 {
			t.Errorf("then: the first zone of node-0 is %s, after %d writes in all; want numa-2 and 2: a write has what is known by then", zero, w.writes)
		}
	})
}

func TestEvennessIsThatOfTheZonesOfANode(t *testing.T) {
	c, _ := fakeCluster(t, 1)
	w, _, err := c.orders(t.Context(), small(t, c), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.evenness(); got != (Evenness{}) {
		t.Errorf("without claims: %+v", got)
	}
	for i, text := range []string{"one numa-0", "two numa-0", "two numa-1", "same numa-3", "same numa-3", "all numa-0", "all numa-1", "all numa-2", "all numa-3", "all numa-3"} {
		node, zone, _ := strings.Cut(text, " ")
		w.note(on(fmt.Sprint(i), node, zone))
	}
	if got, want := w.evenness(), (Evenness{Several: 3, OneZone: 1, Difference: (2 + 2 + 4 + 2) / 4.0}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The fake gives each pod a claim on the first zone of its node before the node.
func TestTrialOfOrderCountsItsWrites(t *testing.T) {
	c, _ := fakeCluster(t, 1)
	resources, given := c.Client.ResourceV1(), 0
	schedule(t.Context(), t, c.Client, func(ctx context.Context) error {
		given++
		list, err := resources.ResourceSlices().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		return creation(resources.ResourceClaims(namespace), on(fmt.Sprintf("claim-%d", given), "node-0", list.Items[0].Spec.Devices[0].Name))(ctx)
	})
	s := small(t, c)
	for _, every := range []int{0, 4} {
		o, err := c.Order(t.Context(), s, Load{Pods: 8}, every)
		if err != nil {
			t.Fatal(err)
		}
		if o.Every != every || o.PodsPerSecond <= 0 || o.Several != 1 || (every == 0) != (o.Writes == 0) || every == 0 && o.Evenness != (Evenness{1, 1, 8 * claimCPUs}) {
			t.Errorf("a write after every %d claims: %+v", every, o)
		}
	}
}

// queues are the metrics of a scheduler that tries each pod at once, and all Pending ones again after
// each write of a slice.
type queues struct{ cluster *Cluster }

func (q queues) RoundTrip(*http.Request) (*http.Response, error) {
	pods, err := q.cluster.Client.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: podLabel + "=too-much"})
	if err != nil {
		return nil, err
	}
	writes := 0
	for _, action := range q.cluster.Client.(interface{ Actions() []clienttesting.Action }).Actions() {
		if action.Matches("update", "resourceslices") {
			writes++
		}
	}
	text := fmt.Sprintf(`scheduler_schedule_attempts_total{profile="a",result="scheduled"} 7
scheduler_schedule_attempts_total{profile="a",result="unschedulable"} %d
scheduler_pending_pods{queue="active"} 0
scheduler_pending_pods{queue="unschedulable"} %d
`, len(pods.Items)*(1+writes), len(pods.Items))
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
}

func TestWriteWakesPendingPods(t *testing.T) {
	c, _ := fakeCluster(t, 2)
	s := small(t, c)
	c.Metrics = Metrics{&http.Client{Transport: queues{c}}, "http://scheduler/metrics"}
	synctest.Test(t, func(t *testing.T) {
		schedule(t.Context(), t, c.Client)
		for _, writeFirst := range []bool{false, true} {
			list, err := c.Wake(t.Context(), s, 5, writeFirst)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range list {
				want := Woken{Nodes: 2, Pending: 5, Write: (i == 0) == writeFirst, Wait: w.Wait}
				if want.Write {
					want.Attempts = 5
				}
				if w != want {
					t.Errorf("%+v, want %+v", w, want)
				}
			}
			if len(list) != 2 {
				t.Errorf("%d measurements, want 2", len(list))
			}
		}
	})
}

func TestWakeFailsIfPodsStayInTheQueue(t *testing.T) {
	c, _ := fakeCluster(t, 1)
	c.Metrics = Metrics{&http.Client{Transport: queues{c}}, "http://scheduler/metrics"}
	synctest.Test(t, func(t *testing.T) {
		if _, err := c.tried(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "0 of 3 pods are Pending, 0 are to be tried") {
			t.Errorf("error %v", err)
		}
	})
}
