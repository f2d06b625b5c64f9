package kubeletplugin

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// reserved is a claim of two pods, and of something that is none.
func reserved() *resourceapi.ResourceClaim {
	claim := withShare("c", "uid-c")
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{
		{Resource: "pods", Name: "a", UID: "pod-a"},
		{Resource: "pods", Name: "b", UID: "pod-b"},
		{APIGroup: "example.com", Resource: "gangs", Name: "g", UID: "gang"},
	}
	return claim
}

// A claim is not even read for an event that is one too many.
func TestEventsOfAFlickeringPartitionAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claim := reserved()
		claim.Status.ReservedFor = claim.Status.ReservedFor[:1]
		api := fake.NewClientset(claim)
		events := newPodEvents(api, node, eventPace())
		go events.run(t.Context())
		for second := range 60 {
			events.tell(ledger.Grant{Namespace: "default", Name: "c", UID: "uid-c"}, deviceclasses.FaultPartitionInvalid, second%2 == 1, time.Now(), cpuset.New(2), "root invalid", time.Second)
			time.Sleep(time.Second)
		}
		got := verbs(api)
		if created := got["create"]; created < eventBurst || created > 2*eventBurst || got["get"] != created {
			t.Errorf("requests %v in a minute of 60 turns, want %d to %d events, and one more request for each", got, eventBurst, 2*eventBurst)
		}
	})
}

func TestPodsOfTheClaimAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(reserved())
		failed := false
		refuse(api, "create", "events", func(name string) error {
			// The answer about the second one is lost once: then both are repeated.
			if failed || !strings.HasPrefix(name, "b.") {
				return nil
			}
			failed = true
			return context.DeadlineExceeded
		})
		events := newPodEvents(api, node, eventPace())
		go events.run(t.Context())
		grant := ledger.Grant{Namespace: "default", Name: "c", UID: "uid-c"}
		events.tell(grant, deviceclasses.FaultPartitionInvalid, false, time.Unix(1000, 0), cpuset.New(2, 3), "root invalid", time.Second)
		events.tell(grant, deviceclasses.FaultPartitionInvalid, true, time.Unix(1002, 0), cpuset.New(2, 3), "root invalid", 3*time.Second)
		refusal := pin.Refusal{Claim: pin.ClaimRef{UID: "uid-c"}, Container: "abc", At: time.Unix(1004, 0), Why: "pin container abc: in use"}
		for range 2 { // the second one by a daemon that started meanwhile
			events.tell(grant, deviceclasses.FaultRefused, false, refusal.At, refusal.Why)
		}
		events.tell(ledger.Grant{Namespace: "default", Name: "c", UID: "older"}, deviceclasses.FaultPartitionInvalid, false, time.Unix(1000, 0), cpuset.New(2), "", time.Second)
		lost := "Warning NUMAExclusivityLost Other tasks may run on CPUs 2-3 of claim c: root invalid"
		restored := "Normal NUMAExclusivityRestored CPUs 2-3 of claim c are exclusive again. For at most 3s they were not: root invalid"
		refused := "Warning NUMAContainerRefused A container did not start: pin container abc: in use"
		want := []string{"a " + restored, "a " + refused, "a " + lost, "b " + restored, "b " + refused, "b " + lost}
		var got []string
		if !until(10*time.Second, func() bool {
			list, err := api.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			for _, event := range list.Items {
				about := event.Regarding
				if about.Kind != "Pod" || about.Namespace != "default" || string(about.UID) != "pod-"+about.Name || event.Related.UID != "uid-c" {
					t.Errorf("event is about %+v and %+v", about, event.Related)
				}
				got = append(got, about.Name+" "+event.Type+" "+event.Reason+" "+event.Note)
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		}) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

// A container with two claims loses both partitions in one look.
func TestFaultsOfOneMomentAreToldEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := strings.Repeat("a", 199) + "-b" // no name of an event may have a dash before the dot
		var claims []runtime.Object
		for _, of := range []string{"c", "d"} {
			claim := withShare(of, types.UID("uid-"+of))
			claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: "pod-a"}}
			claims = append(claims, claim)
		}
		api := fake.NewClientset(claims...)
		events := newPodEvents(api, node, eventPace())
		go events.run(t.Context())
		for _, of := range []string{"c", "d"} {
			grant := ledger.Grant{Namespace: "default", Name: of, UID: types.UID("uid-" + of)}
			events.tell(grant, deviceclasses.FaultPartitionInvalid, false, time.Unix(1000, 0), cpuset.New(2), "root invalid", time.Second)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		list, err := api.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 2 {
			t.Fatalf("%d events, %v, want one of each claim", len(list.Items), err)
		}
		for _, event := range list.Items {
			if faults := validation.IsDNS1123Subdomain(event.Name); len(faults) > 0 {
				t.Errorf("name %s: %s", event.Name, faults)
			}
		}
	})
}

// After a claim was released, others may use it, elsewhere.
func TestPodsOfOthersAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elsewhere := reserved()
		elsewhere.Status.Allocation.Devices.Results[0].Pool = "node-2"
		api := fake.NewClientset(elsewhere)
		events := newPodEvents(api, node, eventPace())
		go events.run(t.Context())
		grant := ledger.Grant{Namespace: "default", Name: "c", UID: "uid-c"}
		tell := func() {
			events.tell(grant, deviceclasses.FaultRefused, false, time.Unix(1000, 0), "in use")
			synctest.Wait()
		}
		tell()
		if got := verbs(api); got["create"] > 0 {
			t.Errorf("requests %v about a claim that is on another node by now", got)
		}
		api.ClearActions()
		grant.Unprepared = true
		if tell(); len(api.Actions()) > 0 {
			t.Errorf("requests %v about a claim that was unprepared", verbs(api))
		}
	})
}

// The note has all that is known of the fault, and nothing that is not.
func TestNotesOfFaultsOfClaims(t *testing.T) {
	events := newPodEvents(nil, node, eventPace())
	for _, row := range []struct {
		fault string
		over  bool
		known []any
		want  string
	}{
		{
			deviceclasses.FaultPartitionInvalid, false,
			[]any{cpuset.New(2, 3), "100% of it", 3 * time.Second},
			"Warning NUMAExclusivityLost Other tasks may run on CPUs 2-3 of claim c: 100% of it",
		},
		{
			deviceclasses.FaultPartitionInvalid, true,
			[]any{cpuset.New(2, 3), "root invalid", 3 * time.Second},
			"Normal NUMAExclusivityRestored CPUs 2-3 of claim c are exclusive again. For at most 3s they were not: root invalid",
		},
		{deviceclasses.FaultRefused, false, []any{"in use"}, "Warning NUMAContainerRefused A container did not start: in use"},
		{
			deviceclasses.FaultNotPinned, false,
			[]any{"main"},
			"Warning NUMAContainerNotPinned Container main runs on any CPU and any NUMA node, not on those of claim c: the container runtime has not run the driver's hook " +
				"(turn on CDI in the runtime, and use an OCI runtime that runs hooks), or pinning is stopped on the node",
		},
		{deviceclasses.FaultPolicyIgnored, false, []any{"a container has no policy"}, "Warning NUMAMemoryPolicyIgnored Of claim c, a container has no policy"},
	} {
		events.tell(ledger.Grant{Namespace: "default", Name: "c", UID: "uid-c"}, row.fault, row.over, time.Unix(1000, 0), row.known...)
		event, _ := events.queue.Get()
		if got := event.kind + " " + event.reason + " " + event.note; got != row.want {
			t.Errorf("%s: %s, want %s", row.fault, got, row.want)
		}
		events.queue.Done(event)
	}
}

func TestReadPods(t *testing.T) {
	for name, row := range map[string]struct {
		pods []runtime.Object
		want string
	}{
		"both":        {[]runtime.Object{pod("a", "pod-a"), pod("b", "pod-b")}, "a b"},
		"one is gone": {[]runtime.Object{pod("b", "pod-b")}, "b"},
		"one renewed": {[]runtime.Object{pod("a", "other"), pod("b", "pod-b")}, "b"},
		"none":        {nil, ""},
	} {
		pods, err := readPods(t.Context(), fake.NewClientset(row.pods...), reserved())
		var got []string
		for _, pod := range pods {
			got = append(got, pod.Name)
		}
		if err != nil || strings.Join(got, " ") != row.want {
			t.Errorf("%s: pods %q, %v, want %q", name, got, err, row.want)
		}
	}
}

// What the watch cache has of a pod is enough if it shows that the pod was bound with the claim.
func TestAPodThatStartsIsReadFromTheWatchCache(t *testing.T) {
	const cached, asked = "resource version 0", "none"
	bound := func(change func(*corev1.Pod)) *corev1.Pod {
		p := pod("a", "pod-a")
		p.Spec.NodeName = "node"
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: new("c")}}
		change(p)
		return p
	}
	other := resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "b", UID: "pod-b"}
	for name, row := range map[string]struct {
		old  *corev1.Pod // nil: the cache has none
		also []resourceapi.ResourceClaimConsumerReference
		want []string
	}{
		"by name": {bound(func(*corev1.Pod) {}), nil, []string{cached}},
		"of a template": {bound(func(p *corev1.Pod) {
			p.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "zone", ResourceClaimTemplateName: new("t")}
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "zone", ResourceClaimName: new("c")}}
		}), nil, []string{cached}},
		"missing":                 {nil, nil, []string{cached, asked}},
		"another":                 {bound(func(p *corev1.Pod) { p.UID = "other" }), nil, []string{cached, asked}},
		"on no node":              {bound(func(p *corev1.Pod) { p.Spec.NodeName = "" }), nil, []string{cached, asked}},
		"does not name the claim": {bound(func(p *corev1.Pod) { p.Spec.ResourceClaims[0].ResourceClaimName = new("d") }), nil, []string{cached, asked}},
		"not yet named in the status": {bound(func(p *corev1.Pod) {
			p.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "zone", ResourceClaimTemplateName: new("t")}
		}), nil, []string{cached, asked}},
		"several pods": {bound(func(*corev1.Pod) {}), []resourceapi.ResourceClaimConsumerReference{other}, []string{asked, asked}},
	} {
		current := bound(func(p *corev1.Pod) { p.Labels = map[string]string{"current": "yes"} })
		api := fake.NewClientset(current)
		var versions []string
		api.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.(clienttesting.GetActionImpl).GetOptions.ResourceVersion == "" {
				versions = append(versions, asked)
				return false, nil, nil
			}
			versions = append(versions, cached)
			if row.old == nil {
				return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), "a")
			}
			return true, row.old, nil
		})
		reserved := claim("c", "uid-c")
		reserved.Status.ReservedFor = append([]resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "a", UID: "pod-a"}}, row.also...)
		pods, err := readStarting(t.Context(), api, reserved)
		if err != nil || len(pods) != 1 || !slices.Equal(versions, row.want) {
			t.Errorf("%s: %d pods, reads %q, %v, want one pod and %q", name, len(pods), versions, err, row.want)
			continue
		}
		if current := pods[0].Labels["current"] != ""; current != slices.Contains(row.want, asked) {
			t.Errorf("%s: the current pod: %t", name, current)
		}
	}
}

// Who uses a claim decides who may have its CPUs: not knowing is no answer.
func TestPodsThatCannotBeReadHoldUpTheClaim(t *testing.T) {
	api := fake.NewClientset()
	refuse(api, "get", "pods", func(string) error { return context.DeadlineExceeded })
	_, err := readPods(t.Context(), api, reserved())
	if want := "read pod default/a, which the claim is reserved for: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// The pods of a PodGroup are not known, so nothing of what depends on them would hold.
func TestAClaimOfAPodGroupIsNotPrepared(t *testing.T) {
	for name, others := range map[string][]resourceapi.ResourceClaimConsumerReference{
		"alone":      nil,
		"with a pod": {{Resource: "pods", Name: "a", UID: "pod-a"}},
	} {
		s := startServing(t)
		claim := allocated("c", "uid-c")
		claim.Status.ReservedFor = append(others, resourceapi.ResourceClaimConsumerReference{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gang", UID: "group"})
		_, _, err := s.prepare(t.Context(), claim)
		if want := "the claim is reserved for podgroups gang, whose pods the driver does not know: name the claim in pods only"; err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
		if _, held := s.driver.Grant("uid-c"); held {
			t.Errorf("%s: the claim holds something", name)
		}
	}
}

func TestPodsAreBounded(t *testing.T) {
	var objects []runtime.Object
	claim := claim("c", "uid-c")
	for i := range 3 * maxPods {
		name := "p" + strings.Repeat("x", i)
		objects = append(objects, pod(name, types.UID(name)))
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: types.UID(name)})
	}
	api := fake.NewClientset(objects...)
	if pods, err := readPods(t.Context(), api, claim); err != nil || len(pods) != maxPods || len(api.Actions()) != maxPods {
		t.Errorf("%d pods by %d requests, %v, want %d of both", len(pods), len(api.Actions()), err, maxPods)
	}
}
