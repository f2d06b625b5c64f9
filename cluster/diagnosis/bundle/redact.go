package bundle

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// This file copies the fields that a diagnosis or a simulation needs. It omits all
// other fields, including new ones.

// redactedMeta keeps only our own annotations, and those that a check needs. Annotations
// of other programs may contain whole objects, or anything else.
func redactedMeta(meta metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, Labels: meta.Labels, OwnerReferences: meta.OwnerReferences,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp, Generation: meta.Generation,
	}
	for key, value := range meta.Annotations {
		if prefix, _, _ := strings.Cut(key, "/"); prefix == deviceclasses.DriverName || prefix == "resource.kubernetes.io" || diagnosis.KeepsAnnotation(key) {
			metav1.SetMetaDataAnnotation(&kept, key, value)
		}
	}
	return kept
}

// redactedNode omits addresses, and the ids of machine and boot.
func redactedNode(node *corev1.Node) *corev1.Node {
	status := node.Status
	status.NodeInfo.MachineID, status.NodeInfo.SystemUUID, status.NodeInfo.BootID = "", "", ""
	return &corev1.Node{
		ObjectMeta: redactedMeta(node.ObjectMeta),
		Spec:       corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints},
		Status: corev1.NodeStatus{
			Capacity: status.Capacity, Allocatable: status.Allocatable, Conditions: status.Conditions,
			NodeInfo: status.NodeInfo, RuntimeHandlers: status.RuntimeHandlers, Features: status.Features,
		},
	}
}

// redactedPod keeps the reasons why containers of the daemon ended, and the feature gates
// of the control plane.
func redactedPod(pod *corev1.Pod, isDaemon bool) *corev1.Pod {
	kept := &corev1.Pod{ObjectMeta: redactedMeta(pod.ObjectMeta), Spec: redactedPodSpec(pod.Spec), Status: redactedPodStatus(pod.Status)}
	for i := range kept.Spec.Containers {
		kept.Spec.Containers[i].Args = diagnosis.GateArguments(pod, &pod.Spec.Containers[i])
	}
	if isDaemon {
		kept.Status.InitContainerStatuses, kept.Status.ContainerStatuses = pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses
	}
	return kept
}

func redactedPodSpec(spec corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{
		NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
		SchedulerName: spec.SchedulerName, SchedulingGates: spec.SchedulingGates, SchedulingGroup: spec.SchedulingGroup,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, Priority: spec.Priority, PriorityClassName: spec.PriorityClassName,
		PreemptionPolicy: spec.PreemptionPolicy, Overhead: spec.Overhead, Resources: spec.Resources, ResourceClaims: spec.ResourceClaims,
		ServiceAccountName: spec.ServiceAccountName, HostNetwork: spec.HostNetwork, RestartPolicy: spec.RestartPolicy,
		Volumes: redactedVolumes(spec.Volumes), InitContainers: redactedContainers(spec.InitContainers), Containers: redactedContainers(spec.Containers),
	}
}

// redactedVolumes keeps the volumes that the scheduler considers, without their content.
func redactedVolumes(volumes []corev1.Volume) (kept []corev1.Volume) {
	for _, volume := range volumes {
		if claim := volume.PersistentVolumeClaim; claim != nil {
			kept = append(kept, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}})
		}
		if volume.Ephemeral != nil {
			kept = append(kept, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
		}
	}
	return kept
}

// redactedContainers omits environment variables and arguments.
func redactedContainers(containers []corev1.Container) (kept []corev1.Container) {
	for _, container := range containers {
		kept = append(kept, corev1.Container{
			Name: container.Name, Image: container.Image, Ports: container.Ports, Resources: container.Resources, RestartPolicy: container.RestartPolicy,
		})
	}
	return kept
}

// redactedPodStatus omits messages of containers, which may be the ends of their logs.
func redactedPodStatus(status corev1.PodStatus) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: status.Phase, Conditions: status.Conditions, Reason: status.Reason, Message: status.Message, NominatedNodeName: status.NominatedNodeName,
		QOSClass: status.QOSClass, StartTime: status.StartTime, ResourceClaimStatuses: status.ResourceClaimStatuses,
		ExtendedResourceClaimStatus: status.ExtendedResourceClaimStatus, NodeAllocatableResourceClaimStatuses: status.NodeAllocatableResourceClaimStatuses,
		Resources: status.Resources, Resize: status.Resize, ObservedGeneration: status.ObservedGeneration,
		InitContainerStatuses: redactedStatuses(status.InitContainerStatuses), ContainerStatuses: redactedStatuses(status.ContainerStatuses),
	}
}

func redactedStatuses(statuses []corev1.ContainerStatus) (kept []corev1.ContainerStatus) {
	for _, status := range statuses {
		kept = append(kept, corev1.ContainerStatus{
			Name: status.Name, Ready: status.Ready, Started: status.Started, RestartCount: status.RestartCount, Image: status.Image, ImageID: status.ImageID,
			Resources: status.Resources, AllocatedResources: status.AllocatedResources, AllocatedResourcesStatus: status.AllocatedResourcesStatus,
			State: redactedState(status.State), LastTerminationState: redactedState(status.LastTerminationState),
		})
	}
	return kept
}

func redactedState(state corev1.ContainerState) corev1.ContainerState {
	if state.Terminated != nil {
		ended := *state.Terminated
		ended.Message = ""
		state.Terminated = &ended
	}
	return state
}

func redactedClass(class *resourceapi.DeviceClass) *resourceapi.DeviceClass {
	kept := &resourceapi.DeviceClass{ObjectMeta: redactedMeta(class.ObjectMeta), Spec: *class.Spec.DeepCopy()}
	for i := range kept.Spec.Config {
		redactConfiguration(&kept.Spec.Config[i].DeviceConfiguration)
	}
	return kept
}

func redactedClaim(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	kept := &resourceapi.ResourceClaim{ObjectMeta: redactedMeta(claim.ObjectMeta), Spec: redactedClaimSpec(claim.Spec), Status: *claim.Status.DeepCopy()}
	if allocation := kept.Status.Allocation; allocation != nil {
		for i := range allocation.Devices.Config {
			redactConfiguration(&allocation.Devices.Config[i].DeviceConfiguration)
		}
	}
	for i := range kept.Status.Devices {
		if device := &kept.Status.Devices[i]; device.Driver != driver.Name {
			device.Data, device.NetworkData = nil, nil
		}
	}
	return kept
}

func redactedClaimSpec(spec resourceapi.ResourceClaimSpec) resourceapi.ResourceClaimSpec {
	kept := spec.DeepCopy()
	for i := range kept.Devices.Config {
		redactConfiguration(&kept.Devices.Config[i].DeviceConfiguration)
	}
	return *kept
}

// redactConfiguration removes parameters for other drivers, which may contain anything.
func redactConfiguration(config *resourceapi.DeviceConfiguration) {
	if config.Opaque != nil && config.Opaque.Driver != driver.Name {
		config.Opaque.Parameters = runtime.RawExtension{Raw: []byte("{}")}
	}
}

func redactedTemplate(template *resourceapi.ResourceClaimTemplate) *resourceapi.ResourceClaimTemplate {
	kept := &resourceapi.ResourceClaimTemplate{ObjectMeta: redactedMeta(template.ObjectMeta)}
	kept.Spec.Spec = redactedClaimSpec(template.Spec.Spec)
	kept.Spec.Labels = template.Spec.Labels
	return kept
}

func redactedRule(rule *resourceapi.DeviceTaintRule) *resourceapi.DeviceTaintRule {
	return &resourceapi.DeviceTaintRule{ObjectMeta: redactedMeta(rule.ObjectMeta), Spec: rule.Spec}
}

func redactedBudget(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: redactedMeta(budget.ObjectMeta), Spec: budget.Spec, Status: budget.Status}
}

// redactedInstallation keeps the arguments of our own containers and the NodeConfig.
// They are values of the chart and never secret.
func redactedInstallation(i diagnosis.Installation) diagnosis.Installation {
	kept := diagnosis.Installation{Namespace: i.Namespace, PodSecurity: i.PodSecurity, Refusals: i.Refusals}
	for _, set := range i.DaemonSets {
		template := corev1.PodTemplateSpec{ObjectMeta: redactedMeta(set.Spec.Template.ObjectMeta), Spec: withArguments(set.Spec.Template.Spec)}
		kept.DaemonSets = append(kept.DaemonSets, &appsv1.DaemonSet{
			ObjectMeta: redactedMeta(set.ObjectMeta), Status: set.Status,
			Spec: appsv1.DaemonSetSpec{Selector: set.Spec.Selector, UpdateStrategy: set.Spec.UpdateStrategy, Template: template},
		})
	}
	for _, deployment := range i.Deployments {
		template := corev1.PodTemplateSpec{ObjectMeta: redactedMeta(deployment.Spec.Template.ObjectMeta), Spec: withArguments(deployment.Spec.Template.Spec)}
		kept.Deployments = append(kept.Deployments, &appsv1.Deployment{
			ObjectMeta: redactedMeta(deployment.ObjectMeta), Status: deployment.Status,
			Spec: appsv1.DeploymentSpec{Replicas: deployment.Spec.Replicas, Selector: deployment.Spec.Selector, Template: template},
		})
	}
	for _, role := range i.ClusterRoles {
		role = role.DeepCopy()
		role.ObjectMeta = redactedMeta(role.ObjectMeta)
		kept.ClusterRoles = append(kept.ClusterRoles, role)
	}
	for _, binding := range i.Bindings {
		binding = binding.DeepCopy()
		binding.ObjectMeta = redactedMeta(binding.ObjectMeta)
		kept.Bindings = append(kept.Bindings, binding)
	}
	for _, config := range i.ConfigMaps {
		redacted := &corev1.ConfigMap{ObjectMeta: redactedMeta(config.ObjectMeta)}
		if text, is := config.Data[diagnosis.ConfigKey]; is {
			redacted.Data = map[string]string{diagnosis.ConfigKey: text}
		}
		kept.ConfigMaps = append(kept.ConfigMaps, redacted)
	}
	return kept
}

func withArguments(spec corev1.PodSpec) corev1.PodSpec {
	kept := redactedPodSpec(spec)
	for i := range kept.Containers {
		kept.Containers[i].Args = spec.Containers[i].Args
	}
	return kept
}

func redactedEvents(events []*corev1.Event, named addresses) (kept []*corev1.Event) {
	for _, event := range events {
		event = event.DeepCopy()
		event.ObjectMeta, event.Message = redactedMeta(event.ObjectMeta), named.inText(event.Message)
		kept = append(kept, event)
	}
	return kept
}
