package accounting

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Unresolved is a claim of a pod whose amounts are not known, or count in another pod.
type Unresolved struct {
	// Index is the index in spec.resourceClaims.
	Index int
	// Why is the reason; it continues the name of the field.
	Why string
}

// counting says how to count what is not decided yet.
type counting int

const (
	// exact counts a claim in one pod. Amounts that the scheduler chooses are not known.
	exact counting = iota
	// most counts a claim in each pod that names it. Of alternatives, the largest amounts
	// count.
	most
)

// mostOfPod is more CPUs, and more bytes, than a pod can request. The scheduler computes
// with 64 bits, and CPUs in thousandths: it takes 18446744073709551716m for 100m.
const mostOfPod = 1 << 50

// CheckAmounts returns an error if the pod requests an amount with which nothing can be
// computed. Do not pass such a pod to another function of this package. An API server
// stores some of them, and webhooks see all.
func CheckAmounts(pod *corev1.Pod) error {
	requests, limits := []corev1.ResourceList{pod.Spec.Overhead}, []corev1.ResourceList{}
	add := func(of corev1.ResourceRequirements) {
		requests, limits = append(requests, of.Requests), append(limits, of.Limits)
	}
	if own := pod.Spec.Resources; own != nil {
		add(*own)
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		add(container.Resources)
	}
	return cmp.Or(checkSum(requests), checkSum(limits))
}

func checkSum(lists []corev1.ResourceList) error {
	sums := corev1.ResourceList{}
	for _, list := range lists {
		for name, amount := range list {
			if !spelling.Countable(amount) {
				return fmt.Errorf("%s %q: want an amount that a node can have", name, amount.String())
			}
			sum := sums[name]
			sum.Add(amount)
			if counted(name) && sum.CmpInt64(mostOfPod) > 0 {
				return fmt.Errorf("%s %q: want at most %d in all containers of the pod", name, amount.String(), int64(mostOfPod))
			}
			sums[name] = sum
		}
	}
	return nil
}

// SharesOf are what the claims of a pod hold, or will hold. A claim that several pods use
// counts in the first pod that it is reserved for. Claims that the scheduler counts
// itself are left out.
func SharesOf(pod *corev1.Pod, known Known) (shares []Share, unresolved []Unresolved) {
	return claimed(pod, known, exact)
}

// MostOf are the most that the claims of a pod may hold, whatever other pods do, and
// whatever the scheduler chooses. All of a claim counts in each pod that names it,
// because the claim may outlive the other pods, and a pod cannot get requests later. Of
// alternatives, the largest amount of each resource counts. A template says nothing of the
// claim that a PodGroup already has, so a claim that a pod may get from one is unresolved.
func MostOf(pod *corev1.Pod, known Known) (shares []Share, unresolved []Unresolved) {
	return claimed(pod, known, most)
}

func claimed(pod *corev1.Pod, known Known, how counting) (shares []Share, unresolved []Unresolved) {
	for i, entry := range pod.Spec.ResourceClaims {
		found, err := sharesOfEntry(pod, entry, known, how)
		if err != nil {
			unresolved = append(unresolved, Unresolved{i, err.Error()})
		}
		shares = append(shares, found...)
	}
	return shares, unresolved
}

func sharesOfEntry(pod *corev1.Pod, entry corev1.PodResourceClaim, known Known, how counting) ([]Share, error) {
	created, _, _ := resourceclaim.Name(pod, &entry)
	name := ptr.Deref(created, "")
	if name == "" && entry.ResourceClaimTemplateName != nil {
		template := known.ResourceClaimTemplate(pod.Namespace, *entry.ResourceClaimTemplateName)
		if template == nil {
			return nil, fmt.Errorf("there is no claim template %q", *entry.ResourceClaimTemplateName)
		}
		shares, err := wanted(entry.Name, template.Spec.Spec, known, how)
		if group := pod.Spec.SchedulingGroup; err == nil && how == most && group != nil {
			err = fmt.Errorf("the pod belongs to PodGroup %q, which may have a claim for this entry already: name a claim instead of a template", ptr.Deref(group.PodGroupName, ""))
		}
		return shares, err
	}
	claim := known.ResourceClaim(pod.Namespace, name)
	switch {
	case claim == nil:
		return nil, fmt.Errorf("there is no claim %q", name)
	case countedByServer(pod, name):
		return nil, nil
	}
	shares := Held(entry.Name, claim)
	// What a claim holds changes if it is allocated again for this pod.
	if claim.Status.Allocation == nil || how == most && !reservedFor(claim, pod) {
		var err error
		if shares, err = wanted(entry.Name, claim.Spec, known, how); err != nil {
			return nil, err
		}
	}
	if first := firstConsumer(claim); how == exact && len(shares) > 0 && first != nil && !isPod(first, pod) {
		return nil, fmt.Errorf("claim %q counts in pod %q, which uses it as well", name, first.Name)
	}
	return shares, nil
}

// Naming returns a copy of the pod that names the claim in each of its entries that stand
// for it: by its name or, if the claim was generated for the pod, by the template's. It
// reports whether there are any.
func Naming(pod *corev1.Pod, claim *resourceapi.ResourceClaim) (named *corev1.Pod, found bool) {
	named = pod.DeepCopy()
	for i := range named.Spec.ResourceClaims {
		entry := &named.Spec.ResourceClaims[i]
		name, _, _ := resourceclaim.Name(pod, entry)
		same := ptr.Deref(name, "") == claim.Name
		if entry.ResourceClaimTemplateName != nil {
			same = (same || claim.Annotations[resourceapi.PodResourceClaimAnnotation] == entry.Name) &&
				resourceclaim.IsForPod(pod, claim, true) == nil
		}
		if same {
			*entry = corev1.PodResourceClaim{Name: entry.Name, ResourceClaimName: &claim.Name}
			found = true
		}
	}
	return named, found
}

// countedByServer reports whether the scheduler counts the claim in addition to the pod's
// requests (KEP-5517).
func countedByServer(pod *corev1.Pod, claim string) bool {
	for _, status := range pod.Status.NodeAllocatableResourceClaimStatuses {
		if status.ResourceClaimName == claim {
			return true
		}
	}
	return false
}

func firstConsumer(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaimConsumerReference {
	for i, consumer := range claim.Status.ReservedFor {
		if consumer.APIGroup == "" && consumer.Resource == "pods" {
			return &claim.Status.ReservedFor[i]
		}
	}
	return nil
}

func reservedFor(claim *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourceapi.ResourceClaimConsumerReference) bool {
		return consumer.UID == pod.UID
	})
}

// isPod compares UIDs. A pod that is not created yet has none, so its name decides.
func isPod(consumer *resourceapi.ResourceClaimConsumerReference, pod *corev1.Pod) bool {
	return consumer.Name == pod.Name && (pod.UID == "" || consumer.UID == pod.UID)
}
