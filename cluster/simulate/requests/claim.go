package requests

import (
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Claim returns a claim without requests, as it is made for a pod: by the controller
// for a template, or by the scheduler for extended resources. An API server ends the
// name with random letters. Here the letters follow from the name of the pod.
func Claim(pod *corev1.Pod, suffix string) *resourceapi.ResourceClaim {
	name := fmt.Sprintf("%s-%s-%s", pod.Name, suffix, letters(pod.Namespace+"/"+pod.Name+"/"+suffix))
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace:       pod.Namespace,
		Name:            name,
		UID:             uid("ResourceClaim " + pod.Namespace + "/" + name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}},
	}}
}

// nameLetters are the letters that an API server uses in names.
const nameLetters = "bcdfghjklmnpqrstvwxz2456789"

// letters returns five letters that follow from the text.
func letters(text string) string {
	var b strings.Builder
	sum := sha256.Sum256([]byte(text))
	for _, octet := range sum[:5] {
		b.WriteByte(nameLetters[int(octet)%len(nameLetters)])
	}
	return b.String()
}

// uid returns a UUID that follows from the text. Its version is 8, for custom contents.
func uid(text string) types.UID {
	hex := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	return types.UID(hex[:8] + "-" + hex[8:12] + "-8" + hex[13:16] + "-8" + hex[17:20] + "-" + hex[20:32])
}

// Settle replaces the allocator's random share ids with ids that follow from the claim,
// so that the same files give the same answer.
func Settle(claim *resourceapi.ResourceClaim, allocation *resourceapi.AllocationResult) {
	for i := range allocation.Devices.Results {
		if result := &allocation.Devices.Results[i]; result.ShareID != nil {
			id := uid(fmt.Sprintf("%s/%d", claim.UID, i))
			result.ShareID = &id
		}
	}
}
