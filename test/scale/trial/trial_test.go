package trial

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// schedule gives each new pod of the fake a node, but those that fit nowhere. Before that, it makes the calls.
func schedule(ctx context.Context, t *testing.T, client kubernetes.Interface, before ...call) {
	t.Helper()
	pods := client.CoreV1().Pods(namespace)
	events, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range events.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type != "ADDED" {
				continue
			}
			pod = pod.DeepCopy()
			if pod.Labels[podLabel] == "too-much" {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "filter timed out"}}
			} else {
				pod.Spec.NodeName = "node-0"
				for _, next := range before {
					if err := next(ctx); err != nil {
						t.Error(err)
					}
				}
			}
			_, _ = pods.Update(ctx, pod, metav1.UpdateOptions{}) // a trial that ends deletes pods
		}
	}()
	t.Cleanup(events.Stop)
}

// deletesAllPods has the fake client delete all pods and claims at once, which it cannot.
func deletesAllPods(client *fake.Clientset) {
	client.PrependReactor("delete-collection", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource, tracker := action.GetResource(), client.Tracker()
		list, err := tracker.List(resource, resource.GroupVersion().WithKind("Pod"), action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		if err := meta.EachListItem(list, func(pod runtime.Object) error {
			return tracker.Delete(resource, action.GetNamespace(), pod.(*corev1.Pod).Name)
		}); err != nil {
			return true, nil, err
		}
		claims := resourceapi.SchemeGroupVersion.WithResource("resourceclaims")
		if list, err = tracker.List(claims, resourceapi.SchemeGroupVersion.WithKind("ResourceClaim"), action.GetNamespace()); err != nil {
			return true, nil, err
		}
		return true, nil, meta.EachListItem(list, func(claim runtime.Object) error {
			return tracker.Delete(claims, action.GetNamespace(), claim.(*resourceapi.ResourceClaim).Name)
		})
	})
}

func process(cpuTicks, kib int) map[string]*fstest.MapFile {
	return map[string]*fstest.MapFile{
		"stat":   {Data: fmt.Appendf(nil, "7 (kube scheduler) S 1 7 7 0 -1 4194304 1 0 0 0 %d 5 0 0 20 0 8 0 999\n", cpuTicks)},
		"status": {Data: fmt.Appendf(nil, "Name:\tkube\nVmPeak:\t 99 kB\nVmRSS:\t    %d kB\n", kib)},
	}
}

func procOf(processes map[int]map[string]*fstest.MapFile) fs.FS {
	proc := fstest.MapFS{}
	for id, files := range processes {
		for name, file := range files {
			proc[fmt.Sprintf("%d/%s", id, name)] = file
		}
	}
	return proc
}

// metrics is a page on which the PreFilter plugins take 3 s more each time.
func metrics(t *testing.T) Metrics {
	t.Helper()
	times := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		times++
		fmt.Fprintf(w, "# TYPE scheduler_framework_extension_point_duration_seconds histogram\n"+
			"scheduler_framework_extension_point_duration_seconds_sum{extension_point=\"Filter\",profile=\"a\",status=\"Success\"} 99\n"+
			"scheduler_framework_extension_point_duration_seconds_sum{extension_point=\"PreFilter\",profile=\"a\",status=\"Success\"} %d\n"+
			"scheduler_framework_extension_point_duration_seconds_sum{extension_point=\"PreFilter\",profile=\"a\",status=\"Skip\"} %de-1\n", 2*times, 10*times)
	}))
	t.Cleanup(server.Close)
	return Metrics{server.Client(), server.URL}
}

func TestPreFilterIsAnErrorWithoutItsMetric(t *testing.T) {
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, answer) }))
	t.Cleanup(server.Close)
	for text, want := range map[string]string{"scheduler_other 1": "no time of PreFilter plugins", extensionPointSum + `{extension_point="PreFilter",profile="a"} many`: "many"} {
		answer = text
		if sum, err := (Metrics{server.Client(), server.URL}).preFilter(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %q", text, sum, err, want)
		}
	}
}

func fakeCluster(t *testing.T, nodes int) (*Cluster, []shape.Shape) {
	t.Helper()
	m, err := shape.Machine()
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := shape.All(m)
	if err != nil {
		t.Fatal(err)
	}
	account := func(namespace string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}}
	}
	client := fake.NewClientset(account(namespace), account(others))
	deletesAllPods(client)
	c := &Cluster{
		Client: client, Machine: m, Stall: 20 * time.Second, Metrics: metrics(t),
		Processes: Processes{Scheduler: 1, APIServer: 2, Etcd: 3},
		Proc:      procOf(map[int]map[string]*fstest.MapFile{1: process(100, 1), 2: process(0, 2048), 3: process(0, 1024)}),
	}
	for i := range nodes {
		c.Nodes = append(c.Nodes, fmt.Sprintf("node-%d", i))
	}
	if err := c.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, shapes
}

func TestTrialMeasuresEachShapeAndLeavesNothing(t *testing.T) {
	c, shapes := fakeCluster(t, 3)
	schedule(t.Context(), t, c.Client)
	for _, s := range shapes {
		load := Load{Pods: 20}
		if s.TooMuch != nil {
			load.TooMuch, load.Fill, load.Left = 2, 3, 2
		}
		r, err := c.Run(t.Context(), s, load)
		if err != nil {
			t.Fatal(err)
		}
		if r.Shape != s.Name || r.Nodes != 3 || r.Load != load || r.PodsPerSecond <= 0 || r.P50 <= 0 || r.P99 < r.P50 ||
			r.APIServerBytes != 2<<20 || r.EtcdBytes != 1<<20 || r.PreFilter != 3*time.Second/20 || r.Timeouts > load.TooMuch {
			t.Errorf("%+v", r)
		}
	}
	resources := c.Client.ResourceV1()
	slices, err1 := resources.ResourceSlices().List(t.Context(), metav1.ListOptions{})
	templates, err2 := resources.ResourceClaimTemplates("").List(t.Context(), metav1.ListOptions{})
	classes, err3 := resources.DeviceClasses().List(t.Context(), metav1.ListOptions{})
	pods, err4 := c.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if left := len(slices.Items) + len(templates.Items) + len(classes.Items) + len(pods.Items); left > 0 {
		t.Errorf("%d objects are left: %d slices, %d templates, %d classes, %d pods", left, len(slices.Items), len(templates.Items), len(classes.Items), len(pods.Items))
	}
}

func TestOthersHoldTheFirstNUMANodes(t *testing.T) {
	c, shapes := fakeCluster(t, 3)
	for _, s := range shapes {
		if s.Name == shape.Beside {
			continue
		}
		load := Load{Fill: 7}
		if err := c.publish(t.Context(), s, load); err != nil {
			t.Fatal(err)
		}
		claims, err := c.Client.ResourceV1().ResourceClaims(others).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods, err := c.Client.CoreV1().Pods(others).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cpus := map[string]int64{}
		for _, pod := range pods.Items {
			cpus[pod.Spec.NodeName] = pod.Spec.Containers[0].Resources.Requests.Cpu().Value()
		}
		if want := map[string]int64{"node-0": 48, "node-1": 32, "node-2": 32}; !maps.Equal(cpus, want) {
			t.Errorf("%s: others have %v, want %v", s.Name, cpus, want)
		}
		for _, claim := range claims.Items {
			if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) == 0 {
				t.Errorf("%s: claim %s holds nothing", s.Name, claim.Name)
			}
		}
		if want := 7; s.Claim != nil && len(claims.Items) != want {
			t.Errorf("%s: %d claims, want %d", s.Name, len(claims.Items), want)
		}
		if err := c.withdraw(t.Context(), s, load); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClaimsOfAnotherDriverStayAsLongAsTrialsHaveThem(t *testing.T) {
	c, shapes := fakeCluster(t, 1)
	schedule(t.Context(), t, c.Client)
	for _, foreign := range []int{0, 30, 30, 5, 0} {
		if _, err := c.Run(t.Context(), shapes[0], Load{Pods: 2, Foreign: foreign}); err != nil {
			t.Fatal(err)
		}
		claims, err := c.Client.ResourceV1().ResourceClaims(others).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pools := map[string]int{}
		for _, claim := range claims.Items {
			pools[claim.Status.Allocation.Devices.Results[0].Pool]++
		}
		if want := map[int]map[string]int{0: {}, 5: {"other-0": 5}, 30: {"other-0": 20, "other-1": 10}}[foreign]; !maps.Equal(pools, want) {
			t.Errorf("claims by pool: %v, want %v", pools, want)
		}
	}
}

func TestTrialFailsIfNothingHappens(t *testing.T) {
	c, shapes := fakeCluster(t, 1)
	c.Stall = 50 * time.Millisecond
	_, err := c.Run(t.Context(), shapes[0], Load{Pods: 10})
	if want := "0 of 10 pods have a node, and nothing happens for 50ms"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestResultIsOfThePodsThatFit(t *testing.T) {
	began := time.Now()
	p := placed{created: map[string]time.Time{}, bound: map[string]time.Time{}, timedOut: map[string]bool{"too-much-0": true}}
	for i := range 100 {
		name := fmt.Sprint(i)
		p.created[name] = began.Add(time.Duration(i) * time.Millisecond)
		p.bound[name] = began.Add(time.Duration(20*(i+1)) * time.Millisecond)
	}
	got := p.result()
	want := Result{PodsPerSecond: 50, P50: (20*50 - 49) * time.Millisecond, P99: (20*99 - 98) * time.Millisecond, Timeouts: 1}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
