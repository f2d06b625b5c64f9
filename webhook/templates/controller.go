package templates

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

const (
	// Label is on the templates that the controller has made, with the value "true". It
	// deletes no others.
	Label = translate.Annotation
	// unusedPeriod is how long a template stays that no pod names: a workload without pods
	// may soon have some again. If that takes longer, the template is made again.
	unusedPeriod = time.Hour
	// A template that cannot be made is tried again after a while that grows from firstRetry
	// to lastRetry.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Minute
	// tellAgain is when an event is tried again that could not be created.
	tellAgain = time.Minute
)

// controller makes and deletes templates. One goroutine at a time calls settle.
type controller struct {
	Options
	pods      cache.Indexer
	templates cache.Indexer
	classes   resourcelisters.DeviceClassLister
	queue     workqueue.TypedRateLimitingInterface[types.NamespacedName]
	events    events

	states map[types.NamespacedName]*state
	twins  map[corev1.ResourceName]string // when states were last refused
}

// state is what is known of a template that pods name, or that the controller has made.
type state struct {
	checked types.UID // of the template that is as it should be: its spec cannot change
	made    types.UID // of the template that this process has made
	// unused is when it was first seen that no pod names the template. It is not stored: a
	// new process begins to count anew. That only keeps a template longer, and nobody waits
	// for its deletion.
	unused time.Time
	// refused says of pods why they do not say what their template has to be.
	refused map[types.UID]string
	// told is what the last event says, by pod.
	told map[types.UID]string
}

func keyOf(namespace, name string) string { return namespace + "/" + name }

// work makes and deletes templates until ctx ends.
func work(ctx context.Context, options Options) error {
	factory := informers.NewSharedInformerFactory(options.Client, 0)
	classes, pods, templates := factory.Resource().V1().DeviceClasses(), newPods(options.Client), newTemplates(options.Client)
	c := &controller{
		Options: options, pods: pods.GetIndexer(), templates: templates.GetIndexer(), classes: classes.Lister(),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry)),
		events: newEvents(options), states: map[types.NamespacedName]*state{},
	}
	defer c.queue.ShutDown()
	for informer, changed := range map[cache.SharedIndexInformer]func(any){pods: c.podChanged, templates: c.templateChanged, classes.Informer(): c.classChanged} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: changed, DeleteFunc: changed,
			UpdateFunc: func(before, now any) { changed(before); changed(now) }, // it may be another pod of the same name
		})
		if err != nil {
			return fmt.Errorf("watch pods, templates and classes: %w", err)
		}
	}
	running, stop := context.WithCancel(ctx)
	factory.StartWithContext(running)
	ended := make(chan struct{}, 2)
	for _, informer := range []cache.SharedIndexInformer{pods, templates} {
		go func() {
			informer.RunWithContext(running)
			ended <- struct{}{}
		}()
	}
	defer func() {
		stop()
		factory.Shutdown()
		<-ended
		<-ended
	}()
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, templates.HasSynced, classes.Informer().HasSynced) {
		return nil
	}
	klog.FromContext(ctx).Info("Working", "pods", len(c.pods.ListKeys()), "templates", len(c.templates.ListKeys()))
	c.run(ctx)
	return nil
}

func (c *controller) podChanged(object any) {
	if pod, is := last(object).(*corev1.Pod); is {
		c.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: translate.TemplateOf(pod)})
	}
}

func (c *controller) templateChanged(object any) {
	if template, is := last(object).(*resourceapi.ResourceClaimTemplate); is {
		c.queue.Add(types.NamespacedName{Namespace: template.Namespace, Name: template.Name})
	}
}

// classChanged looks at all pods again: a class may say now what an extended resource is.
func (c *controller) classChanged(any) {
	for _, object := range c.pods.List() {
		c.podChanged(object)
	}
}

// last returns the object, or what was last known of one whose deletion was missed.
func last(object any) any {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		return gone.Obj
	}
	return object
}

// run settles what is queued until ctx ends.
func (c *controller) run(ctx context.Context) {
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.settle(ctx, key); err != nil {
			if ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Template is not as it should be, trying again", "template", key)
			}
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// settle does all that is necessary for a template, and may be repeated at any time.
//
// Kubernetes needs no help afterwards: its claim controller queues the pods that name a
// template again when the template appears (Controller.enqueueResourceClaimTemplate in
// pkg/controller/resourceclaim/controller.go of Kubernetes 1.36, 1.37 and 1.38), and what it
// writes to the pods has the scheduler look at them.
func (c *controller) settle(ctx context.Context, key types.NamespacedName) error {
	template, pods, err := c.known(key)
	if err != nil {
		return err
	}
	s := c.stateOf(key, pods)
	if len(pods) == 0 {
		return c.retire(ctx, key, s, template)
	}
	s.unused = time.Time{}
	// One that is being deleted comes again, as a change of it, when it is gone.
	if template != nil && (template.UID == s.checked || template.DeletionTimestamp != nil) {
		return nil
	}
	spec, is := c.specOf(ctx, s, pods, template == nil)
	switch {
	case !is: // until a class or a pod changes
		return nil
	case template == nil:
		return c.create(ctx, key, s, spec, pods)
	case equality.Semantic.DeepEqual(template.Spec, resourceapi.ResourceClaimTemplateSpec{Spec: spec}):
		s.checked = template.UID
	case template.UID == s.made: // to make it again would change nothing
		c.tell(ctx, s, pods, "the API server has stored another spec than that of the translation: does a webhook change ResourceClaimTemplates?")
	case template.Labels[Label] == "true":
		return c.delete(ctx, template, "its spec is not that of the translation")
	default:
		c.tell(ctx, s, pods, "it exists with another spec, and somebody else has made it: delete it, and it is made again")
	}
	return nil
}

// stateOf returns what is known of a template. Of pods that are gone, nothing is known.
func (c *controller) stateOf(key types.NamespacedName, pods []*corev1.Pod) *state {
	s := c.states[key]
	if s == nil {
		s = &state{refused: map[types.UID]string{}, told: map[types.UID]string{}}
		c.states[key] = s
	}
	present := map[types.UID]bool{}
	for _, pod := range pods {
		present[pod.UID] = true
	}
	maps.DeleteFunc(s.refused, func(uid types.UID, _ string) bool { return !present[uid] })
	maps.DeleteFunc(s.told, func(uid types.UID, _ string) bool { return !present[uid] })
	return s
}

// known returns the template, or nil, and the pods that need it.
func (c *controller) known(key types.NamespacedName) (*resourceapi.ResourceClaimTemplate, []*corev1.Pod, error) {
	objects, err := c.pods.ByIndex(byTemplate, keyOf(key.Namespace, key.Name))
	if err != nil {
		return nil, nil, err
	}
	var pods []*corev1.Pod
	for _, object := range objects {
		if pod := object.(*corev1.Pod); pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	object, exists, err := c.templates.GetByKey(keyOf(key.Namespace, key.Name))
	if err != nil || !exists {
		return nil, pods, err
	}
	return object.(*resourceapi.ResourceClaimTemplate), pods, nil
}

// specOf returns what the template has to be, by any of the pods: which one says so does not
// matter, because the name is made of the spec. It tells the other pods why, if the template
// is missing. What a pod says is not tried again until the classes change: it may take long,
// and a tenant can make many pods.
func (c *controller) specOf(ctx context.Context, s *state, pods []*corev1.Pod, missing bool) (spec resourceapi.ResourceClaimSpec, is bool) {
	options := c.options()
	for _, pod := range pods {
		why, refused := s.refused[pod.UID]
		if !refused {
			_, spec, err := translate.Again(pod, options)
			if err == nil {
				return spec, true
			}
			if len(pod.Spec.Containers) == 0 {
				err = fmt.Errorf("the pod has more than %d bytes of claims and amounts", mostPodBytes)
			}
			why = "it is not made: " + err.Error()
			s.refused[pod.UID] = why
		}
		if missing {
			c.tell(ctx, s, []*corev1.Pod{pod}, why)
		}
	}
	return spec, false
}

// options returns the options with the classes of extended resources as they are now. If
// these have changed, pods that were refused may be understood.
func (c *controller) options() translate.Options {
	classes, err := c.classes.List(labels.Everything())
	if err != nil {
		return c.Translate // a lister of a local store has no errors
	}
	options := c.Translate.WithTwinsOf(classes)
	if !maps.Equal(options.Twins, c.twins) {
		c.twins = options.Twins
		for _, s := range c.states {
			clear(s.refused)
		}
	}
	return options
}

func (c *controller) create(ctx context.Context, key types.NamespacedName, s *state, spec resourceapi.ResourceClaimSpec, pods []*corev1.Pod) error {
	made, err := c.Client.ResourceV1().ResourceClaimTemplates(key.Namespace).Create(ctx, &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{Label: "true"}},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: spec},
	}, metav1.CreateOptions{})
	switch {
	case err == nil:
		s.made = made.UID
		klog.FromContext(ctx).Info("Template made", "template", key)
	// The watch is behind, and says what is there.
	case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
	default:
		c.tell(ctx, s, pods, "the API server refuses it: "+message.OneLine(err.Error()))
		return fmt.Errorf("create template %s: %w", key, err)
	}
	return nil
}

// retire deletes a template of ours that no pod has named for a while.
func (c *controller) retire(ctx context.Context, key types.NamespacedName, s *state, template *resourceapi.ResourceClaimTemplate) error {
	if template == nil || template.Labels[Label] != "true" {
		delete(c.states, key)
		return nil
	}
	if template.DeletionTimestamp != nil {
		return nil
	}
	if s.unused.IsZero() {
		s.unused = time.Now()
	}
	if wait := unusedPeriod - time.Since(s.unused); wait > 0 {
		c.queue.AddAfter(key, wait)
		return nil
	}
	return c.delete(ctx, template, fmt.Sprintf("no pod has named it for %s", unusedPeriod))
}

// delete deletes the template that was looked at, and no other one of its name. If a pod that
// was created meanwhile names it, it is made again when the watch says that it is gone.
func (c *controller) delete(ctx context.Context, template *resourceapi.ResourceClaimTemplate, why string) error {
	err := c.Client.ResourceV1().ResourceClaimTemplates(template.Namespace).Delete(ctx, template.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(template.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete template %s/%s: %w", template.Namespace, template.Name, err)
	}
	klog.FromContext(ctx).Info("Template deleted", "template", klog.KObj(template), "why", why)
	return nil
}

// tell says on each pod, once, why its template is not what it should be. What cannot be said
// now is said later.
func (c *controller) tell(ctx context.Context, s *state, pods []*corev1.Pod, why string) {
	for _, pod := range pods {
		switch {
		case s.told[pod.UID] == why:
		case c.events.tell(ctx, pod, why):
			s.told[pod.UID] = why
		default:
			c.queue.AddAfter(types.NamespacedName{Namespace: pod.Namespace, Name: translate.TemplateOf(pod)}, tellAgain)
		}
	}
}
