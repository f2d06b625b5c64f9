package diagnosis

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// prepareTime is how long the driver may take to prepare a claim of a pod that has a node,
// before that is a finding.
const prepareTime = 10 * time.Minute

// ours reports whether the claim has devices of this driver.
func ours(claim *resourceapi.ResourceClaim) bool {
	return claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
		func(result resourceapi.DeviceRequestAllocationResult) bool { return result.Driver == driver.Name })
}

// users returns the claims that are reserved for each pod, by its UID.
func (f *Facts) users() map[types.UID][]*resourceapi.ResourceClaim {
	claims := make(map[types.UID][]*resourceapi.ResourceClaim)
	for _, claim := range f.Objects.Claims {
		for _, user := range claim.Status.ReservedFor {
			claims[user.UID] = append(claims[user.UID], claim)
		}
	}
	return claims
}

// tunings returns what the shares of a claim on a node set of their CPUs, as the driver has
// written it to the claim's status.
func tunings(claim *resourceapi.ResourceClaim, node string) (settings []deviceclasses.PerformanceSettings) {
	for i := range claim.Status.Devices {
		device := &claim.Status.Devices[i]
		if device.Driver != driver.Name || device.Pool != node || device.Data == nil {
			continue
		}
		share, err := deviceclasses.ReadShareStatus(device.Data.Raw)
		if err == nil && share.Zone != nil && share.Zone.Performance != nil {
			settings = append(settings, share.Zone.Performance.Asked)
		}
	}
	return settings
}

// tuningClaims returns the claims that set something of their CPUs, by node.
func (f *Facts) tuningClaims() map[string][]string {
	names := make(map[string][]string)
	for _, claim := range f.Objects.Claims {
		var node string // all devices of a claim are on one node
		for _, device := range claim.Status.Devices {
			if device.Driver == driver.Name {
				node = device.Pool
			}
		}
		if len(tunings(claim, node)) > 0 {
			names[node] = append(names[node], claim.Namespace+"/"+claim.Name)
		}
	}
	return names
}

// unpreparedClaim finds claims of pods that have had a node for long, and for which the
// driver has written no device to the status.
func unpreparedClaim(f *Facts) (findings []Finding) {
	pods := make(map[types.UID]*corev1.Pod, len(f.Objects.Pods))
	for _, pod := range f.Objects.Pods {
		pods[pod.UID] = pod
	}
	for _, claim := range f.Objects.Claims {
		if !ours(claim) || slices.ContainsFunc(claim.Status.Devices, func(d resourceapi.AllocatedDeviceStatus) bool { return d.Driver == driver.Name }) {
			continue
		}
		for _, user := range claim.Status.ReservedFor {
			pod := pods[user.UID]
			if pod == nil || pod.Namespace != claim.Namespace || pod.Spec.NodeName == "" || snapshot.Finished(pod) || pod.Status.StartTime == nil {
				continue
			}
			if waits := f.Time.Sub(pod.Status.StartTime.Time); waits >= prepareTime {
				findings = append(findings, Finding{
					Node: pod.Spec.NodeName, Component: "ResourceClaim " + claim.Namespace + "/" + claim.Name, Setting: "status.devices",
					Expected: fmt.Sprintf("devices of %s, at the latest %d minutes after a pod has a node", driver.Name, int(prepareTime.Minutes())),
					Detected: fmt.Sprintf("none after %s; kubectl numa explain pod %s says why", waits.Round(time.Minute), pod.Name),
				})
				break
			}
		}
	}
	return findings
}

// notPinned finds claims whose containers run without the driver's hook.
func notPinned(f *Facts) []Finding {
	return f.faulty(deviceclasses.FaultNotPinned, func(condition *metav1.Condition) string { return condition.Reason },
		"containers that start with the driver's hook: CDI on in the container runtime, an OCI runtime that runs hooks, and no file stop-pinning")
}

// policyIgnored finds claims with a container that runs without their memory policy.
func policyIgnored(f *Facts) []Finding {
	return f.faulty(deviceclasses.FaultPolicyIgnored, func(condition *metav1.Condition) string { return condition.Message },
		"containers with the memoryPolicy of the claim: an OCI runtime that sets it, such as runc 1.4 or crun 1.24")
}

// faulty finds claims with a condition that is false because of a fault.
func (f *Facts) faulty(name string, detected func(*metav1.Condition) string, expected string) (findings []Finding) {
	fault := deviceclasses.FaultOf(name)
	for _, claim := range f.Objects.Claims {
		for i := range claim.Status.Devices {
			device := &claim.Status.Devices[i]
			condition := meta.FindStatusCondition(device.Conditions, fault.Condition)
			if device.Driver == driver.Name && condition != nil && condition.Reason == fault.Reason {
				findings = append(findings, Finding{
					Node: device.Pool, Component: "ResourceClaim " + claim.Namespace + "/" + claim.Name, Setting: "condition " + fault.Condition,
					Expected: expected, Detected: detected(condition),
				})
				break
			}
		}
	}
	return findings
}
