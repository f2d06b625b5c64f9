// Package translate gives a pod that was written for the kubelet's static managers a claim
// that means the same: whole CPUs of its containers become requests for zones, with their
// memory, hugepages, devices and ways of caches. It knows no cluster: the same pod always has
// the same claim, so that pods of one shape share one template.
package translate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Values of Options.Scope, those of the kubelet's topologyManagerScope.
const (
	ScopeContainer = "container" // each container has its CPUs where they fit
	ScopePod       = "pod"       // all containers have theirs at one place
)

// Values of Options.Policy, those of the kubelet's topologyManagerPolicy.
const (
	PolicySingleNUMANode = "single-numa-node" // one NUMA node, or the pod is Pending
	PolicyRestricted     = "restricted"       // one NUMA node, or parts of some nodes of one socket
	PolicyBestEffort     = "best-effort"      // one NUMA node, or one socket, or any nodes
	PolicyNone           = "none"             // as best-effort: near is never worse
)

// Values of Options.PartOfCore.
const (
	PartOfCoreRound = "round" // 3 CPUs become 4, in the claim, the request and the limit
	PartOfCoreLeave = "leave" // it is an error: the pod cannot be translated
)

// Values of Options.CPULimit.
const (
	CPULimitKeep = deviceclasses.CPUQuotaKeep // the pod stays Guaranteed, and the kernel counts the limit as a quota
	CPULimitLift = deviceclasses.CPUQuotaLift // containers with CPUs of their own have no limit of CPUs: the pod becomes Burstable
)

// Options are how an administrator wants pods translated.
type Options struct {
	Scope  string
	Policy string
	// PartOfCore says what happens to containers whose CPUs are no whole cores of
	// ThreadsPerCore threads, which is 1 or more.
	PartOfCore     string
	ThreadsPerCore int64
	// CPULimit says what happens to the limit of containers with CPUs of their own. The default
	// is CPULimitKeep.
	CPULimit string
	// Twins are DeviceClasses by the extended resource in whose place they are.
	Twins map[corev1.ResourceName]string
}

// Check refuses values that are not allowed.
func (o Options) Check() error {
	for _, one := range []struct {
		what, value string
		allowed     []string
	}{
		{"scope", o.Scope, []string{ScopeContainer, ScopePod}},
		{"policy", o.Policy, []string{PolicySingleNUMANode, PolicyRestricted, PolicyBestEffort, PolicyNone}},
		{"partOfCore", o.PartOfCore, []string{PartOfCoreRound, PartOfCoreLeave}},
		{"cpuLimit", cmp.Or(o.CPULimit, CPULimitKeep), []string{CPULimitKeep, CPULimitLift}},
	} {
		if !slices.Contains(one.allowed, one.value) {
			return fmt.Errorf("%s: %q, allowed are %s", one.what, one.value, one.allowed)
		}
	}
	if o.ThreadsPerCore < 1 {
		return fmt.Errorf("threadsPerCore: %d, allowed is 1 or more", o.ThreadsPerCore)
	}
	return nil
}

// ParseTwins reads twins such as vendor.com/gpu=gpu.vendor.com,vendor.com/nic=nic.
func ParseTwins(list string) (map[corev1.ResourceName]string, error) {
	twins := map[corev1.ResourceName]string{}
	for text := range strings.SplitSeq(list, ",") {
		resource, class, _ := strings.Cut(text, "=")
		name := corev1.ResourceName(resource)
		switch {
		case !isExtended(name) || len(validation.IsQualifiedName(resource)) > 0:
			return nil, fmt.Errorf("%q is no extended resource with its class, such as vendor.com/gpu=gpu.vendor.com", text)
		case len(validation.IsDNS1123Subdomain(class)) > 0:
			return nil, fmt.Errorf("%q is no name of a DeviceClass for %s", class, name)
		case twins[name] != "":
			return nil, fmt.Errorf("%s has two classes", name)
		}
		twins[name] = class
	}
	return twins, nil
}

// WithTwinsOf returns the options with more twins: classes that name an extended resource
// themselves. Those of the options count more. Of several classes of one resource, it is the
// one that the scheduler takes: the newest or, of those that are as new, the first by name.
func (o Options) WithTwinsOf(classes []*resourceapi.DeviceClass) Options {
	newest := map[corev1.ResourceName]*resourceapi.DeviceClass{}
	for _, class := range classes {
		if class.Spec.ExtendedResourceName == nil {
			continue
		}
		name := corev1.ResourceName(*class.Spec.ExtendedResourceName)
		if other := newest[name]; other == nil ||
			cmp.Or(class.CreationTimestamp.Compare(other.CreationTimestamp.Time), cmp.Compare(other.Name, class.Name)) > 0 {
			newest[name] = class
		}
	}
	twins := map[corev1.ResourceName]string{}
	for name, class := range newest {
		twins[name] = class.Name
	}
	maps.Copy(twins, o.Twins)
	o.Twins = twins
	return o
}

// Label is the label by which a Namespace or a Pod asks for translation.
const Label = deviceclasses.DriverName + "/translate"

// Values of Label.
const (
	LabelOn   = "true"
	LabelOff  = "false" // of a pod in a namespace that asks for it
	LabelPods = "pods"  // of a namespace whose pods may ask for it
)

// Annotation is the annotation of a translated pod. It says, by container, which requests
// of the claim it uses, and what it no longer asks for otherwise. It is for people: no
// program reads it.
const Annotation = deviceclasses.DriverName + "/translated"

// claimName is the name of the claim in the pod.
const claimName = "numa"

// templatePrefix begins the names of templates.
const templatePrefix = "numa-"

// Translated is a pod with a claim.
type Translated struct {
	// Pod is a copy that has the claim.
	Pod *corev1.Pod
	// Template is the name of the ResourceClaimTemplate that the pod names, and Spec is what
	// it has to say. The name is made of the spec.
	Template string
	Spec     resourceapi.ResourceClaimSpec
	// Notes say what the pod no longer has or has otherwise, in one sentence each.
	Notes []string
}

// NotStaticError says why a static manager would give a pod nothing of its own. Such a pod
// needs no claim. Any other error of Pod is about a pod that would lose something.
type NotStaticError struct{ Why string }

func (e NotStaticError) Error() string { return e.Why }

// Pod gives a pod a claim for what the kubelet's static managers would give it. The error is
// a [NotStaticError] or says what cannot be translated, in one line.
//
// A webhook sees pods that no API server would store. So a pod of very many containers, or
// whose claim would be too large, is refused early. So is one of which [Again] could not make
// the template, because such a pod would wait for it forever.
func Pod(pod *corev1.Pod, options Options) (Translated, error) {
	result, err := unchecked(pod, options)
	if err != nil {
		return Translated{}, err
	}
	if _, _, err := Again(result.Pod, options); err != nil {
		return Translated{}, errors.New("its template could not be made from what the pod says then: do many containers use devices whose classes begin with the same word?")
	}
	return result, nil
}

// unchecked is Pod without asking Again.
func unchecked(pod *corev1.Pod, options Options) (Translated, error) {
	if err := options.Check(); err != nil {
		return Translated{}, err
	}
	if err := checkAmounts(pod); err != nil {
		return Translated{}, err
	}
	if err := isStatic(pod); err != nil {
		return Translated{}, err
	}
	if count := len(pod.Spec.InitContainers) + len(pod.Spec.Containers); count > mostContainers {
		return Translated{}, fmt.Errorf("the pod has %d containers, allowed are %d", count, mostContainers)
	}
	t := translation{options: options, pod: pod.DeepCopy(), uses: map[string][]string{}}
	for _, step := range []func() error{t.addContainers, t.addInitContainers, t.alignPod, t.checkSize, t.liftLimits} {
		if err := step(); err != nil {
			return Translated{}, err
		}
	}
	result := Translated{Pod: t.pod, Template: templateName(t.spec), Spec: t.spec, Notes: t.notes}
	t.pod.Spec.ResourceClaims = append(t.pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claimName, ResourceClaimTemplateName: &result.Template})
	return result, t.annotate()
}

// mostContainers is more than pods that a node can run have.
const mostContainers = 128

// isStatic says why the static managers would give the pod nothing, or why it cannot have
// a claim.
func isStatic(pod *corev1.Pod) error {
	switch {
	case pod.Spec.NodeName != "":
		return NotStaticError{"the pod is bound to node " + pod.Spec.NodeName + ", and Kubernetes allocates claims when it binds"}
	case pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows:
		return NotStaticError{"the pod is for Windows, and only nodes of Linux have zones"}
	case len(pod.Spec.ResourceClaims) > 0:
		return NotStaticError{"the pod has claims of its own"}
	case pod.Spec.Resources != nil:
		return NotStaticError{"the pod itself has requests or limits"}
	}
	whole := false
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if err := isGuaranteed(container); err != nil {
			return err
		}
	}
	for _, container := range ofPod(pod) {
		whole = whole || wholeCPUs(container) > 0
	}
	if !whole {
		return NotStaticError{"no container has whole CPUs"}
	}
	return nil
}

// isGuaranteed compares requests and limits as Kubernetes does for the QoS class.
func isGuaranteed(container corev1.Container) error {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := container.Resources.Limits[name]
		request, requested := container.Resources.Requests[name]
		if !limited || limit.IsZero() || requested && request.Cmp(limit) != 0 {
			return NotStaticError{fmt.Sprintf("the pod is not Guaranteed: container %q has no limit of %s that equals its request", container.Name, name)}
		}
	}
	return nil
}

// ofPod returns the containers that run at the same time: sidecars and main containers.
func ofPod(pod *corev1.Pod) (list []*corev1.Container) {
	for i := range pod.Spec.InitContainers {
		if isSidecar(pod.Spec.InitContainers[i]) {
			list = append(list, &pod.Spec.InitContainers[i])
		}
	}
	for i := range pod.Spec.Containers {
		list = append(list, &pod.Spec.Containers[i])
	}
	return list
}

func isSidecar(container corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// wholeCPUs returns the container's CPUs if they are whole ones, else 0: then it runs on
// the shared CPUs.
func wholeCPUs(container *corev1.Container) int64 {
	limit := container.Resources.Limits[corev1.ResourceCPU]
	if limit.MilliValue()%1000 != 0 {
		return 0
	}
	return limit.Value()
}

// templateName is made of all that the template says: 128 bits, so that nobody finds another
// spec of the same name by chance.
func templateName(spec resourceapi.ResourceClaimSpec) string {
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err) // impossible: the spec has only strings, numbers and valid JSON
	}
	sum := sha256.Sum256(text)
	return templatePrefix + hex.EncodeToString(sum[:16])
}

func (t *translation) annotate() error {
	text, err := json.Marshal(t.uses)
	if err != nil {
		return fmt.Errorf("render annotation %s: %w", Annotation, err)
	}
	if t.pod.Annotations == nil {
		t.pod.Annotations = map[string]string{}
	}
	t.pod.Annotations[Annotation] = string(text)
	return nil
}

// liftLimits takes the limit of CPUs from containers on CPUs of their own, if that is wanted: the kernel lets them run on no others anyway.
func (t *translation) liftLimits() error {
	if t.options.CPULimit != CPULimitLift {
		return nil
	}
	own := slices.ContainsFunc(t.pod.Spec.Containers, func(c corev1.Container) bool { return wholeCPUs(&c) > 0 })
	for i := range t.pod.Spec.InitContainers {
		if container := &t.pod.Spec.InitContainers[i]; own && !isSidecar(*container) { // it uses those of main containers
			delete(container.Resources.Limits, corev1.ResourceCPU)
		}
	}
	for _, container := range ofPod(t.pod) {
		if wholeCPUs(container) > 0 {
			delete(container.Resources.Limits, corev1.ResourceCPU)
			t.note(container, "has no limit of CPUs, so the pod is Burstable")
		}
	}
	return nil
}

// checkSize refuses a claim that Kubernetes would refuse.
func (t *translation) checkSize() error {
	if count := len(t.spec.Devices.Requests); count > resourceapi.DeviceRequestsMaxSize {
		return fmt.Errorf("the claim would have %d requests, allowed are %d", count, resourceapi.DeviceRequestsMaxSize)
	}
	if count := len(t.spec.Devices.Constraints); count > resourceapi.DeviceConstraintsMaxSize {
		return fmt.Errorf("the claim would have %d constraints, allowed are %d", count, resourceapi.DeviceConstraintsMaxSize)
	}
	for _, constraint := range t.spec.Devices.Constraints {
		if count := len(constraint.Requests); count > resourceapi.DeviceRequestsMaxSize {
			return fmt.Errorf("a constraint of the claim would name %d alternatives, allowed are %d", count, resourceapi.DeviceRequestsMaxSize)
		}
	}
	if count := len(t.spec.Devices.Config); count > resourceapi.DeviceConfigMaxSize {
		return fmt.Errorf("the claim would have %d configurations, allowed are %d", count, resourceapi.DeviceConfigMaxSize)
	}
	return nil
}
