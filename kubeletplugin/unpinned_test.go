package kubeletplugin

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestContainersThatNoHookHasPinned(t *testing.T) {
	begin := time.Unix(1000, 0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "pod-a"},
		Spec: corev1.PodSpec{
			ResourceClaims: []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: ptr.To("c")}},
			Containers: []corev1.Container{
				{Name: "other"},
				{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "zone", Request: "cpus"}}}},
			},
		},
	}
	api := fake.NewClientset(reserved(), pod)
	running := func(names ...string) {
		pod.Status.ContainerStatuses = nil
		for _, name := range names {
			state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(begin)}}
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
		}
		if _, err := api.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	now := begin
	u := newUnpinned(api, func(_ driver.Grant, container string, _ time.Time) { told = append(told, container) })
	u.now = func() time.Time { return now }
	share := driver.Share{Request: "cpus/small", Kind: &driver.ZoneShare{CPUs: cpuset.New(2, 3)}}
	grants := []driver.Grant{
		{Namespace: "default", Name: "c", UID: "uid-c", Shares: []driver.Share{share}},
		{Namespace: "default", Name: "function", UID: "uid-f", Shares: []driver.Share{{Kind: &driver.FunctionShare{}}}},
	}
	// step observes after a time, and looks at the claims that are queued then.
	step := func(after time.Duration, recorded partitionStates) (found []types.UID, looked int) {
		t.Helper()
		now = now.Add(after)
		found = u.observe(grants, recorded)
		for u.queue.Len() > 0 {
			looked++
			uid, _ := u.queue.Get()
			if err := u.look(t.Context(), uid); err != nil {
				t.Error(err)
			}
			u.queue.Done(uid)
		}
		return found, looked
	}
	running("other")
	looks := 0
	for range 600 {
		found, looked := step(time.Second, nil)
		looks += looked
		if len(found)+len(told) > 0 {
			t.Fatalf("found %v, told %v while only another container runs", found, told)
		}
	}
	if looks != 5 { // after 30 s, 60 s, 2 min, 4 min, 8 min
		t.Errorf("looked %d times in ten minutes, want 5", looks)
	}
	running("other", "main")
	step(lastUnseen, nil)
	if found, _ := step(time.Second, nil); !slices.Equal(found, []types.UID{"uid-c"}) || !slices.Equal(told, []string{"main"}) {
		t.Errorf("found %v, told %v, want the claim and container main", found, told)
	}
	if found, _ := step(time.Second, partitionStates{"uid-c": {{}}}); len(found) > 0 {
		t.Errorf("found %v although the hook has pinned it", found)
	}
	if found, _ := step(time.Second, nil); len(found) > 0 || len(told) != 1 {
		t.Errorf("found %v, told %v, want that it begins again", found, told)
	}
}
