package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Attributes of the devices of all drivers.
const (
	numaNode = "resource.kubernetes.io/numaNode"
	pcieRoot = "resource.kubernetes.io/pcieRoot"
	pciBusID = "resource.kubernetes.io/pciBusID"
)

// anyZone lets the scheduler choose.
const anyZone = -1

// someMemory is what claims with CPUs ask for unless a spec says how much: without any,
// their containers would not be bound to the NUMA node.
const someMemory = 16 << 20

// request is what a test's claim asks for. Zero amounts are left out.
type request struct {
	cpus, memoryBytes                    int64
	hugepages2MiBytes, hugepages1GiBytes int64
	zone                                 int  // NUMA node, or anyZone
	withoutMemory                        bool // not even someMemory
}

// newClaim is a claim of a share of a zone. Every claim pod has one.
func newClaim(name string, want request) *resourceapi.ResourceClaim {
	if want.cpus > 0 && want.memoryBytes == 0 && !want.withoutMemory {
		want.memoryBytes = someMemory
	}
	amounts := map[string]int64{
		"cpu": want.cpus, "memory": want.memoryBytes, "hugepages2Mi": want.hugepages2MiBytes, "hugepages1Gi": want.hugepages1GiBytes,
	}
	var where []string
	if want.zone != anyZone {
		where = append(where, fmt.Sprintf(`device.driver == %q && device.attributes["resource.kubernetes.io"].numaNode == %d`, driverName, want.zone))
	}
	return claimOfDevices(name, shareOf("zone", "zone.dra.numa", amounts, where...))
}

// claimOfDevices is a claim with requests.
func claimOfDevices(name string, requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.Devices.Requests = requests
	return claim
}

// wholeDevice asks for one device of a class, for which all expressions are true.
func wholeDevice(name, class string, where ...string) resourceapi.DeviceRequest {
	exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: class}
	for _, expression := range where {
		exactly.Selectors = append(exactly.Selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return resourceapi.DeviceRequest{Name: name, Exactly: exactly}
}

// shareOf asks for amounts of one device of a class, for which all expressions are true.
// Zero amounts are left out.
func shareOf(name, class string, amounts map[string]int64, where ...string) resourceapi.DeviceRequest {
	share := wholeDevice(name, class, where...)
	requests := map[resourceapi.QualifiedName]resource.Quantity{}
	for name, amount := range amounts {
		if amount > 0 {
			requests[resourceapi.QualifiedName(name)] = *resource.NewQuantity(amount, resource.BinarySI)
		}
	}
	share.Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: requests}
	return share
}

// alike adds requests to a claim, and the constraint that its devices agree on an
// attribute.
func alike(attribute resourceapi.FullyQualifiedName, claim *resourceapi.ResourceClaim, more ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
	devices := &claim.Spec.Devices
	devices.Requests = append(devices.Requests, more...)
	devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &attribute}}
	return claim
}

// configOf is a configuration for the driver, in JSON, with fields in JSON.
func configOf(kind, fields string) string {
	return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, %s}`, deviceclasses.APIVersion, kind, fields)
}

// parameters are a configuration for the driver of a claim or a class.
func parameters(config string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: driverName, Parameters: runtime.RawExtension{Raw: []byte(config)}}}
}

// ofRequest is a configuration for the driver of one request of a claim.
func ofRequest(request, config string) resourceapi.DeviceClaimConfiguration {
	return resourceapi.DeviceClaimConfiguration{Requests: []string{request}, DeviceConfiguration: parameters(config)}
}

// configured adds a configuration for the driver to a claim.
func configured(config string, claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	claim.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: parameters(config)}}
	return claim
}

// ofClass has the first request of a claim name another class.
func ofClass(class string, claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	claim.Spec.Devices.Requests[0].Exactly.DeviceClassName = class
	return claim
}

// createClaim creates a claim.
func createClaim(ctx context.Context, namespace string, claim *resourceapi.ResourceClaim) {
	GinkgoHelper()
	_, err := cluster.Kubernetes.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// createClaimed creates a pod and the claim it uses, of the pod's name.
func createClaimed(ctx context.Context, namespace string, pod *corev1.Pod, want request) *corev1.Pod {
	GinkgoHelper()
	createClaim(ctx, namespace, newClaim(pod.Name, want))
	return createPod(ctx, namespace, pod)
}

// readClaim reads a claim.
func readClaim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error) {
	return cluster.Kubernetes.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// claimOf returns the allocated claim of a pod made by createClaimed.
func claimOf(ctx context.Context, pod *corev1.Pod) *resourceapi.ResourceClaim {
	GinkgoHelper()
	claim, err := readClaim(ctx, pod.Namespace, pod.Name)
	Expect(err).NotTo(HaveOccurred())
	Expect(claim.Status.Allocation).NotTo(BeNil(), "claim %s is not allocated", claim.Name)
	return claim
}

// onlyClaim is the claim made from a template for a pod that has one.
func onlyClaim(ctx context.Context, pod *corev1.Pod) *resourceapi.ResourceClaim {
	GinkgoHelper()
	Expect(pod.Status.ResourceClaimStatuses).To(HaveLen(1), "claims of pod %s", pod.Name)
	name := pod.Status.ResourceClaimStatuses[0].ResourceClaimName
	Expect(name).NotTo(BeNil(), "claim of pod %s", pod.Name)
	claim, err := readClaim(ctx, pod.Namespace, *name)
	Expect(err).NotTo(HaveOccurred())
	return claim
}

// deleteClaim deletes the claim of a pod that is gone.
func deleteClaim(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	claims := cluster.Kubernetes.ResourceV1().ResourceClaims(pod.Namespace)
	Expect(claims.Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
}
