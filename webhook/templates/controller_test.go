package templates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

func options() translate.Options {
	return translate.Options{Scope: translate.ScopeContainer, Policy: translate.PolicySingleNUMANode, PartOfCore: translate.PartOfCoreRound, ThreadsPerCore: 2}
}

// cluster is a fake API server, and a controller that works.
type cluster struct {
	*testing.T
	client  *fake.Clientset
	created atomic.Int64 // objects that have a UID
}

// start runs a test in a bubble whose time is made up.
func start(t *testing.T, run func(*cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{T: t, client: fake.NewClientset()}
		// As API servers do, which fakes do not.
		c.client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			object := action.(clienttesting.CreateAction).GetObject().(metav1.Object)
			if object.GetUID() == "" {
				object.SetUID(types.UID(fmt.Sprint("uid-", c.created.Add(1))))
			}
			return false, nil, nil
		})
		run(c)
	})
}

// works is start with a controller that works.
func works(t *testing.T, run func(*cluster)) {
	t.Helper()
	start(t, func(c *cluster) {
		c.run(work)
		run(c)
	})
}

// run runs a controller until the returned function is called or the test ends.
func (c *cluster) run(run func(context.Context, Options) error) (stop func()) {
	ctx, cancel := context.WithCancel(c.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, Options{Client: c.client, Namespace: "dra-numa", Lease: "templates", Identity: fmt.Sprint(time.Now()), Translate: options()})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			c.Error(err)
		}
	})
	c.Cleanup(stop)
	c.wait(0)
	return stop
}

// wait lets time pass, and whoever does something do it.
func (c *cluster) wait(period time.Duration) {
	time.Sleep(period + time.Second) // informers and queues take their time
	synctest.Wait()
}

// pod returns a pod with so many CPUs, translated.
func (c *cluster) pod(name string, cpus int64) *corev1.Pod {
	c.Helper()
	limits := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("1Gi")}
	got, err := translate.Pod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app", Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits.DeepCopy()}}}},
	}, options())
	if err != nil {
		c.Fatal(err)
	}
	return got.Pod
}

func (c *cluster) create(pod *corev1.Pod) (template string) {
	c.Helper()
	if _, err := c.client.CoreV1().Pods("team").Create(c.Context(), pod, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	c.wait(0)
	return translate.TemplateOf(pod)
}

func (c *cluster) delete(pod string) {
	c.Helper()
	if err := c.client.CoreV1().Pods("team").Delete(c.Context(), pod, metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	c.wait(0)
}

// premade creates a template with another spec.
func (c *cluster) premade(name string, labels map[string]string) {
	c.Helper()
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: labels}}
	template.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "mine"}}
	if _, err := c.client.ResourceV1().ResourceClaimTemplates("team").Create(c.Context(), template, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	c.wait(0)
}

// template returns a template, or nil.
func (c *cluster) template(name string) *resourceapi.ResourceClaimTemplate {
	c.Helper()
	template, err := c.client.ResourceV1().ResourceClaimTemplates("team").Get(c.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.Fatal(err)
	}
	return template
}

// mustMake wants the template that the pod needs.
func (c *cluster) mustMake(pod *corev1.Pod) {
	c.Helper()
	name, spec, err := translate.Again(pod, options())
	if err != nil {
		c.Fatal(err)
	}
	got := c.template(name)
	if got == nil {
		c.Fatalf("there is no template %s: %q", name, c.events())
	}
	if diff := cmp.Diff(resourceapi.ResourceClaimTemplateSpec{Spec: spec}, got.Spec); diff != "" || got.Labels[Label] != "true" {
		c.Errorf("labels %v (-want +got):\n%s", got.Labels, diff)
	}
}

// events returns what is said on pods.
func (c *cluster) events() (notes []string) {
	c.Helper()
	list, err := c.client.EventsV1().Events("").List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	for _, event := range list.Items {
		notes = append(notes, event.Regarding.Name+": "+event.Type+" "+event.Reason+" "+event.Note)
	}
	slices.Sort(notes)
	return notes
}

func (c *cluster) mustSay(want ...string) {
	c.Helper()
	if diff := cmp.Diff(want, c.events()); diff != "" {
		c.Errorf("events (-want +got):\n%s", diff)
	}
}

// writes counts requests to the API server that change templates.
func (c *cluster) writes() (n int) {
	for _, action := range c.client.Actions() {
		if action.GetResource().Resource == "resourceclaimtemplates" && (action.GetVerb() == "create" || action.GetVerb() == "delete") {
			n++
		}
	}
	return n
}

func TestTemplateOfAPodIsMadeOnce(t *testing.T) {
	works(t, func(c *cluster) {
		first := c.pod("first", 4)
		name := c.create(first)
		c.mustMake(first)
		uid := c.template(name).UID
		c.create(c.pod("second", 4))
		c.create(c.pod("other", 6))
		c.mustMake(c.pod("other", 6))
		if c.template(name).UID != uid || c.writes() != 2 {
			c.Errorf("%d writes for 2 templates", c.writes())
		}
		c.mustSay()
	})
}

// A pod that was there before the controller, and one that is being deleted.
func TestPodsThatWaitAlreadyGetTheirTemplate(t *testing.T) {
	start(t, func(c *cluster) {
		first := c.pod("first", 4)
		second := c.pod("second", 6)
		second.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		if err := c.client.Tracker().Add(first); err != nil {
			c.Fatal(err)
		}
		if err := c.client.Tracker().Add(second); err != nil {
			c.Fatal(err)
		}
		c.run(work)
		c.mustMake(first)
		if name := translate.TemplateOf(second); c.template(name) != nil {
			c.Error("a pod that is being deleted has a template made")
		}
	})
}

func TestTemplateIsDeletedWhenNoPodHasNamedItForAnHour(t *testing.T) {
	works(t, func(c *cluster) {
		pod := c.pod("first", 4)
		name := c.create(pod)
		c.wait(2 * unusedPeriod)
		c.mustMake(pod)
		c.delete("first")
		c.wait(unusedPeriod - 10*time.Second)
		c.mustMake(pod)
		c.create(c.pod("second", 4)) // the hour begins again
		c.delete("second")
		c.wait(unusedPeriod - 10*time.Second)
		c.mustMake(pod)
		c.wait(10 * time.Second)
		if c.template(name) != nil {
			c.Fatal("it is still there")
		}
		c.create(c.pod("third", 4))
		c.mustMake(pod)
		c.mustSay()
	})
}

// Those of others stay.
func TestOnlyTemplatesOfTheControllerAreDeleted(t *testing.T) {
	works(t, func(c *cluster) {
		own, foreign, named := translate.TemplateOf(c.pod("p", 4)), translate.TemplateOf(c.pod("p", 6)), "mine"
		c.premade(own, map[string]string{Label: "true"})
		c.premade(foreign, nil)
		c.premade(named, map[string]string{Label: "true"})
		c.wait(2 * unusedPeriod)
		if c.template(own) != nil || c.template(foreign) == nil || c.template(named) == nil {
			c.Errorf("templates %v, %v, %v", c.template(own), c.template(foreign), c.template(named))
		}
	})
}

// It is not stored since when a template is unused.
func TestTheHourBeginsAgainWithANewProcess(t *testing.T) {
	start(t, func(c *cluster) {
		stop := c.run(work)
		pod := c.pod("first", 4)
		name := c.create(pod)
		c.delete("first")
		c.wait(unusedPeriod - 10*time.Second)
		stop()
		c.run(work)
		c.wait(unusedPeriod - 10*time.Second)
		c.mustMake(pod)
		c.wait(10 * time.Second)
		if c.template(name) != nil {
			c.Error("it is still there")
		}
	})
}

// Only one replica works. The first that stops releases the Lease, which the chart has made.
func TestAReplicaTakesOver(t *testing.T) {
	start(t, func(c *cluster) {
		if err := c.client.Tracker().Add(&coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "dra-numa", Name: "templates"}}); err != nil {
			c.Fatal(err)
		}
		stop := c.run(Run)
		c.run(Run)
		c.create(c.pod("first", 4))
		c.create(c.pod("second", 4))
		if c.writes() != 1 {
			c.Errorf("%d writes", c.writes())
		}
		stop()
		c.wait(2 * renewPeriod)
		pod := c.pod("third", 6)
		c.create(pod)
		c.mustMake(pod)
	})
}

// Who cannot renew the Lease stops to work, and works again when it can.
func TestLostLeaseIsWonAgain(t *testing.T) {
	start(t, func(c *cluster) {
		var broken atomic.Bool
		c.client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return broken.Load(), nil, apierrors.NewInternalError(context.DeadlineExceeded)
		})
		c.run(Run)
		broken.Store(true)
		c.wait(renewDeadline + 2*renewPeriod)
		pod := c.pod("first", 4)
		if name := c.create(pod); c.template(name) != nil {
			c.Error("it works without the Lease")
		}
		broken.Store(false)
		c.wait(2 * renewPeriod)
		c.mustMake(pod)
	})
}

func TestDeletedTemplateIsMadeAgainIfAPodNeedsIt(t *testing.T) {
	works(t, func(c *cluster) {
		pod := c.pod("first", 4)
		name := c.create(pod)
		if err := c.client.ResourceV1().ResourceClaimTemplates("team").Delete(c.Context(), name, metav1.DeleteOptions{}); err != nil {
			c.Fatal(err)
		}
		c.wait(0)
		c.mustMake(pod)
	})
}

// A tenant puts another one in the place of ours, before or after its pod, with its label.
func TestAlteredTemplateIsMadeAgain(t *testing.T) {
	for _, before := range []bool{true, false} {
		works(t, func(c *cluster) {
			pod := c.pod("first", 4)
			name := translate.TemplateOf(pod)
			if before {
				c.premade(name, map[string]string{Label: "true"})
				c.create(pod)
			} else {
				c.create(pod)
				// Faster than the controller, which would make it again.
				altered := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "tenant", Labels: map[string]string{Label: "true"}}}
				if err := c.client.Tracker().Update(resourceapi.SchemeGroupVersion.WithResource("resourceclaimtemplates"), altered, "team"); err != nil {
					c.Fatal(err)
				}
			}
			c.wait(0)
			c.mustMake(pod)
			c.mustSay()
		})
	}
}

func TestTemplateOfATenantStaysAndIsNamed(t *testing.T) {
	works(t, func(c *cluster) {
		pod := c.pod("first", 4)
		name := translate.TemplateOf(pod)
		c.premade(name, nil)
		c.create(pod)
		c.create(c.pod("second", 4))
		if c.template(name).Spec.Spec.Devices.Requests[0].Name != "mine" {
			c.Error("the template is not the tenant's")
		}
		const why = ": Warning NUMATemplateRefused ResourceClaimTemplate %s: it exists with another spec, and somebody else has made it: delete it, and it is made again"
		c.mustSay(fmt.Sprintf("first"+why, name), fmt.Sprintf("second"+why, name))
		if err := c.client.ResourceV1().ResourceClaimTemplates("team").Delete(c.Context(), name, metav1.DeleteOptions{}); err != nil {
			c.Fatal(err)
		}
		c.wait(0)
		c.mustMake(pod)
	})
}

// Another webhook changes it whenever it is made: to make it again would never end.
func TestTemplateThatIsChangedWhenItIsMadeStays(t *testing.T) {
	start(t, func(c *cluster) {
		c.client.PrependReactor("create", "resourceclaimtemplates", func(action clienttesting.Action) (bool, runtime.Object, error) {
			action.(clienttesting.CreateAction).GetObject().(*resourceapi.ResourceClaimTemplate).Spec.Annotations = map[string]string{"a": "b"}
			return false, nil, nil
		})
		c.run(work)
		name := c.create(c.pod("first", 4))
		c.wait(time.Hour)
		if c.writes() != 1 {
			c.Errorf("%d writes", c.writes())
		}
		c.mustSay("first: Warning NUMATemplateRefused ResourceClaimTemplate " + name + ": the API server has stored another spec than that of the translation: does a webhook change ResourceClaimTemplates?")
	})
}

// Nothing is made for a pod that says something else than the name of its template.
func TestPodThatNoTranslationHasMadeIsToldWhy(t *testing.T) {
	works(t, func(c *cluster) {
		pod := c.pod("first", 4)
		pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("64")
		name := c.create(pod)
		large := c.pod("large", 6)
		large.Spec.Containers[0].Resources.Limits["example.com/"+corev1.ResourceName(strings.Repeat("a", mostPodBytes))] = resource.MustParse("1")
		c.create(large)
		if c.writes() > 0 {
			c.Errorf("%d writes", c.writes())
		}
		c.mustSay(
			"first: Warning NUMATemplateRefused ResourceClaimTemplate "+name+": it is not made: template "+name+" is not what a translation of the pod asks for: the pod or the options have changed since",
			"large: Warning NUMATemplateRefused ResourceClaimTemplate "+translate.TemplateOf(large)+": it is not made: the pod has more than 32768 bytes of claims and amounts",
		)
		// The next one that names it is another one.
		c.create(c.pod("second", 4))
		c.mustMake(c.pod("second", 4))
	})
}

// A class that names an extended resource arrives after the pod.
func TestPodsAreLookedAtAgainWhenClassesChange(t *testing.T) {
	works(t, func(c *cluster) {
		o := options()
		o.Twins = map[corev1.ResourceName]string{"example.com/gpu": "gpu.example.com"}
		pod := c.pod("first", 4)
		pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources.Claims = nil, nil
		pod.Spec.Containers[0].Resources.Limits["example.com/gpu"] = resource.MustParse("1")
		got, err := translate.Pod(pod, o)
		if err != nil {
			c.Fatal(err)
		}
		c.create(got.Pod)
		if c.writes() > 0 || len(c.events()) != 1 {
			c.Errorf("%d writes, events %q", c.writes(), c.events())
		}
		name := "example.com/gpu"
		class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.example.com"}, Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: &name}}
		if _, err := c.client.ResourceV1().DeviceClasses().Create(c.Context(), class, metav1.CreateOptions{}); err != nil {
			c.Fatal(err)
		}
		c.wait(0)
		if template := c.template(got.Template); template == nil || cmp.Diff(got.Spec, template.Spec.Spec) != "" {
			c.Errorf("template %+v", template)
		}
	})
}

// What the API server refuses is tried again, ever more rarely, and said once.
func TestWhatIsRefusedIsTriedAgain(t *testing.T) {
	start(t, func(c *cluster) {
		var refuses atomic.Bool
		refuses.Store(true)
		c.client.PrependReactor("create", "resourceclaimtemplates", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refuses.Load(), nil, apierrors.NewForbidden(resourceapi.Resource("resourceclaimtemplates"), "t", fmt.Errorf("exceeded quota: templates"))
		})
		c.run(work)
		pod := c.pod("first", 4)
		name := c.create(pod)
		c.wait(time.Hour)
		if n := c.writes(); n < 15 || n > 40 {
			c.Errorf("%d tries in an hour", n)
		}
		c.mustSay("first: Warning NUMATemplateRefused ResourceClaimTemplate " + name + `: the API server refuses it: resourceclaimtemplates.resource.k8s.io "t" is forbidden: exceeded quota: templates`)
		refuses.Store(false)
		c.wait(lastRetry)
		c.mustMake(pod)
	})
}

// The namespace ends with its pods.
func TestNamespaceThatEndsIsLeftAlone(t *testing.T) {
	start(t, func(c *cluster) {
		c.client.PrependReactor("create", "resourceclaimtemplates", func(clienttesting.Action) (bool, runtime.Object, error) {
			err := apierrors.NewForbidden(resourceapi.Resource("resourceclaimtemplates"), "t", fmt.Errorf("it ends"))
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
			return true, nil, err
		})
		c.run(work)
		c.create(c.pod("first", 4))
		c.wait(time.Hour)
		if c.writes() != 1 {
			c.Errorf("%d tries", c.writes())
		}
		c.mustSay()
	})
}

// A finalizer keeps it, and there is nothing to do until it is gone.
func TestTemplateThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	works(t, func(c *cluster) {
		pod := c.pod("first", 4)
		name := translate.TemplateOf(pod)
		now := metav1.Now()
		ending := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, DeletionTimestamp: &now, Finalizers: []string{"a/b"}, Labels: map[string]string{Label: "true"}}}
		if err := c.client.Tracker().Add(ending); err != nil {
			c.Fatal(err)
		}
		c.wait(0)
		c.create(pod)
		c.delete("first")
		c.wait(2 * unusedPeriod)
		if c.writes() > 0 {
			c.Errorf("%d writes", c.writes())
		}
	})
}

// A tenant can make many pods, and each has an event of its own.
func TestEventsAreBounded(t *testing.T) {
	works(t, func(c *cluster) {
		for i := range 4 * eventsAtOnce {
			pod := c.pod(fmt.Sprint("pod-", i), 4)
			pod.UID = types.UID(pod.Name)
			pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("64")
			if err := c.client.Tracker().Add(pod); err != nil {
				c.Fatal(err)
			}
			synctest.Wait()
		}
		c.wait(0)
		if n := len(c.events()); n < eventsAtOnce || n > 2*eventsAtOnce {
			c.Errorf("%d events", n)
		}
	})
}

// Whoever waits for a template is told why, however many pods others make, and whatever the
// API server says to events meanwhile.
func TestEventThatCannotBeCreatedComesLater(t *testing.T) {
	start(t, func(c *cluster) {
		var refuses atomic.Bool
		refuses.Store(true)
		c.client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refuses.Load(), nil, apierrors.NewTooManyRequests("later", 1)
		})
		c.run(work)
		pod := c.pod("first", 4)
		pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("64")
		name := c.create(pod)
		c.wait(time.Minute)
		c.mustSay()
		refuses.Store(false)
		c.wait(tellAgain)
		const why = ": Warning NUMATemplateRefused ResourceClaimTemplate %s: it is not made: template %[1]s is not what a translation of the pod asks for: the pod or the options have changed since"
		c.mustSay(fmt.Sprintf("first"+why, name))

		var want []string
		for i := range 2 * eventsAtOnce {
			next := pod.DeepCopy()
			next.Name, next.UID = fmt.Sprintf("next-%03d", i), types.UID(fmt.Sprint("next-", i))
			if err := c.client.Tracker().Add(next); err != nil {
				c.Fatal(err)
			}
			want = append(want, fmt.Sprintf(next.Name+why, name))
		}
		c.wait(3 * tellAgain)
		c.mustSay(append([]string{fmt.Sprintf("first"+why, name)}, want...)...)
	})
}

// Names of pods have up to 253 characters, and those of events have to be names, too.
func TestEventsOfPodsWithLongNames(t *testing.T) {
	works(t, func(c *cluster) {
		pod := c.pod(strings.Repeat("a", 199)+"-b", 4)
		pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("64")
		c.create(pod)
		list, err := c.client.EventsV1().Events("team").List(c.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			c.Fatalf("%d events, %v", len(list.Items), err)
		}
		if faults := validation.IsDNS1123Subdomain(list.Items[0].Name); len(faults) > 0 {
			c.Errorf("name %s: %s", list.Items[0].Name, faults)
		}
	})
}

// What is kept of pods has no images, volumes or labels.
func TestOnlyWhatIsNeededOfPodsIsKept(t *testing.T) {
	c := &cluster{T: t}
	pod := c.pod("first", 4)
	pod.Labels, pod.ResourceVersion = map[string]string{"a": "b"}, "7"
	kept := keptPod(pod).(*corev1.Pod)
	if kept.Labels != nil || kept.Annotations != nil || kept.Spec.Containers[0].Image != "" || kept.ResourceVersion != "7" {
		t.Errorf("kept: %+v", kept)
	}
	if _, _, err := translate.Again(kept, options()); err != nil {
		t.Error(err)
	}
	pod.Spec.ResourceClaims = nil
	if kept := keptPod(pod); kept != nil {
		t.Errorf("kept: %+v", kept)
	}
	status := &metav1.Status{}
	if keptPod(status) != runtime.Object(status) {
		t.Error("errors of the watch are dropped")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if err := Run(t.Context(), Options{}); err == nil || !strings.HasPrefix(err.Error(), "scope: ") {
		t.Error(err)
	}
	if err := Run(t.Context(), Options{Client: fake.NewClientset(), Namespace: "ns", Lease: "l", Translate: options()}); err == nil || err.Error() != "elect a leader: Lock identity is empty" {
		t.Error(err)
	}
}
