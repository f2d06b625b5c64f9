package kubeletplugin

import (
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// unpinnedFixture is a pod whose container main uses a claim, and the claim's grant.
type unpinnedFixture struct {
	*unpinned
	t      *testing.T
	api    *fake.Clientset
	pod    *corev1.Pod
	grants []ledger.Grant
	clock  time.Time
	told   []string // the containers of events
}

func newUnpinnedFixture(t *testing.T) *unpinnedFixture {
	f := &unpinnedFixture{t: t, clock: time.Unix(1000, 0), pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "pod-a"},
		Spec: corev1.PodSpec{
			ResourceClaims: []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: ptr.To("c")}},
			Containers: []corev1.Container{
				{Name: "other"},
				{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "zone", Request: "cpus"}}}},
			},
		},
	}}
	f.api = fake.NewClientset(reserved(), f.pod)
	f.unpinned = newUnpinned(f.api, node, func(_ ledger.Grant, container string, _ time.Time) { f.told = append(f.told, container) })
	f.now = func() time.Time { return f.clock }
	share := ledger.Share{Request: "cpus/small", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(2, 3), Partition: "root"}}
	f.grants = []ledger.Grant{
		{Namespace: "default", Name: "c", UID: "uid-c", Shares: []ledger.Share{share}},
		{Namespace: "default", Name: "function", UID: "uid-f", Shares: []ledger.Share{{Kind: &ledger.FunctionShare{}}}},
	}
	return f
}

// running has the pod's status say that these containers run since then.
func (f *unpinnedFixture) running(since time.Time, names ...string) {
	f.t.Helper()
	f.pod.Status.ContainerStatuses = nil
	for _, name := range names {
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
		f.pod.Status.ContainerStatuses = append(f.pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
	}
	if _, err := f.api.CoreV1().Pods("default").UpdateStatus(f.t.Context(), f.pod, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// step observes after a time, and looks at the claims that are queued then.
func (f *unpinnedFixture) step(after time.Duration, recorded partitionStates) (found []types.UID, looked int) {
	f.t.Helper()
	f.clock = f.clock.Add(after)
	found = f.observe(f.grants, recorded)
	for f.queue.Len() > 0 {
		looked++
		uid, _ := f.queue.Get()
		if err := f.look(f.t.Context(), uid); err != nil {
			f.t.Error(err)
		}
		f.queue.Done(uid)
	}
	return found, looked
}

// pinnedClaim is what the hook records for the fixture's claim.
var pinnedClaim = partitionStates{"uid-c": {{}}}

func TestContainersThatNoHookHasPinned(t *testing.T) {
	f := newUnpinnedFixture(t)
	begin := f.clock
	f.running(begin, "other")
	looks := 0
	for range 600 {
		found, looked := f.step(time.Second, nil)
		looks += looked
		if len(found)+len(f.told) > 0 {
			t.Fatalf("found %v, told %v while only another container runs", found, f.told)
		}
	}
	if looks != 5 { // after 30 s, 60 s, 2 min, 4 min, 8 min
		t.Errorf("looked %d times in ten minutes, want 5", looks)
	}
	f.running(begin, "other", "main")
	f.step(lastUnseen, nil)
	if found, _ := f.step(time.Second, nil); !slices.Equal(found, []types.UID{"uid-c"}) || !slices.Equal(f.told, []string{"main"}) {
		t.Errorf("found %v, told %v, want the claim and container main", found, f.told)
	}
	if found, _ := f.step(time.Second, pinnedClaim); len(found) > 0 {
		t.Errorf("found %v although the hook has pinned it", found)
	}
	if found, _ := f.step(time.Second, nil); len(found) > 0 || len(f.told) != 1 {
		t.Errorf("found %v, told %v, want that it begins again", found, f.told)
	}
}

// A kubelet that is away does not report that a container has ended.
func TestPinnedContainerThatHasEndedCountsAsPinned(t *testing.T) {
	f := newUnpinnedFixture(t)
	f.running(f.clock, "main")
	f.step(time.Minute, pinnedClaim)
	for range 1200 {
		if found, _ := f.step(time.Second, nil); len(found)+len(f.told) > 0 {
			t.Fatalf("%s after its record went: found %v, told %v, want nothing of a container that was pinned", f.clock.Sub(time.Unix(1000, 0)), found, f.told)
		}
	}
}

// The hook may have been taken away between two starts of a container.
func TestContainerThatRestartsWithoutTheHook(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, time.Minute} {
		f := newUnpinnedFixture(t)
		f.running(f.clock, "main")
		f.step(time.Minute, pinnedClaim)
		f.step(700*time.Millisecond, nil)
		f.running(f.clock.Add(after).Truncate(time.Second), "main") // the API server keeps whole seconds
		for range 300 {
			f.step(time.Second, nil)
		}
		if !slices.Equal(f.told, []string{"main"}) {
			t.Errorf("started again %s after its record went: told %v, want main", after, f.told)
		}
	}
}

// A claim that was abandoned may be allocated elsewhere, where its containers are pinned.
func TestContainersOfOtherNodesAreNotLookedAt(t *testing.T) {
	for name, change := range map[string]func(*unpinnedFixture){
		"unprepared": func(f *unpinnedFixture) { f.grants[0].Unprepared = true },
		"elsewhere": func(f *unpinnedFixture) {
			claim := reserved()
			claim.Status.Allocation.Devices.Results[0].Pool = "node-2"
			if _, err := f.api.ResourceV1().ResourceClaims("default").UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		f := newUnpinnedFixture(t)
		f.running(f.clock, "main")
		change(f)
		for range 3 {
			if found, _ := f.step(time.Minute, nil); len(found)+len(f.told) > 0 {
				t.Errorf("%s: found %v, told %v, want nothing", name, found, f.told)
			}
		}
	}
}

// What the daemon of before has found stays, without another event, until a hook has pinned it.
func TestUnpinnedContainersOfBefore(t *testing.T) {
	f := newUnpinnedFixture(t)
	f.resume(partitionStates{"uid-c": {{fault: deviceclasses.FaultNotPinned}}, "uid-f": {{fault: deviceclasses.FaultPartitionInvalid}}})
	for range 3 {
		if found, looked := f.step(time.Minute, nil); !slices.Equal(found, []types.UID{"uid-c"}) || looked > 0 || len(f.told) > 0 {
			t.Errorf("found %v after %d looks, told %v, want the claim and no event", found, looked, f.told)
		}
	}
	for range 2 {
		if found, _ := f.step(time.Second, pinnedClaim); len(found) > 0 {
			t.Errorf("found %v although the hook has pinned it", found)
		}
	}
}

// The grants are observed each second while pods are read. This one is for the race detector.
func TestGrantsAreObservedWhilePodsAreRead(t *testing.T) {
	f := newUnpinnedFixture(t)
	f.running(f.clock, "main")
	f.observe(f.grants, nil)
	var done sync.WaitGroup
	done.Go(func() { f.observe(f.grants, nil) })
	done.Go(func() {
		if err := f.look(t.Context(), "uid-c"); err != nil {
			t.Error(err)
		}
	})
	done.Wait()
}
