package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// Limits of the pods that are read. Which claims a pod names is in its spec, so metadata
// says too little; but tenants can make pods of a megabyte. One with 700,000 empty terms of
// an affinity was seen to take 164 MiB to decode. So few are read at a time, only one page
// in the whole program, and of each pod only what counts is decoded.
const (
	podsOfPage = 32
	mostPages  = 128
	// mostPageBytes is how much JSON a page may have, in which a pod has a few kilobytes.
	mostPageBytes = 8 << 20
	// mostPodBytes is how much of a pod is kept, in the encoding of protobuf: names, claims
	// and amounts. A container needs about 200 bytes.
	mostPodBytes = 32 << 10
)

// errTooMuchWaits means that more waits than is read.
var errTooMuchWaits = errors.New("too much waits in the namespace")

// Waiting implements Known. It asks the API server: a watch of all pods would cost more
// memory than everything else, and would be late.
func (r reviewLookups) Waiting(namespace, name string, each func(*corev1.Pod) (more bool)) error {
	selected := fields.Set{"status.phase": string(corev1.PodPending)}
	if name != "" {
		selected["metadata.name"] = name
	}
	options := metav1.ListOptions{FieldSelector: selected.String(), Limit: podsOfPage}
	for range mostPages {
		pods, next, err := r.page(namespace, options)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if !each(pod) {
				return nil
			}
		}
		if options.Continue = next; next == "" {
			return nil
		}
	}
	return fmt.Errorf("%w: more than %d pods", errTooMuchWaits, podsOfPage*mostPages)
}

// page returns what counts of the pods of a page that name claims.
func (r reviewLookups) page(namespace string, options metav1.ListOptions) (pods []*corev1.Pod, next string, err error) {
	select {
	case r.pages <- struct{}{}:
		defer func() { <-r.pages }()
	case <-r.ctx.Done():
		return nil, "", r.ctx.Err()
	}
	ctx, cancel := context.WithTimeout(r.ctx, getTimeout)
	defer cancel()
	body, err := r.openPods(ctx, namespace, options)
	if err != nil {
		return nil, "", err
	}
	defer body.Close()
	text := &io.LimitedReader{R: body, N: mostPageBytes}
	next, err = readPods(json.NewDecoder(text), func(part countedPart) error {
		if len(part.Spec.ResourceClaims) == 0 {
			return nil
		}
		pod := part.pod()
		if size := pod.Size(); size > mostPodBytes {
			return fmt.Errorf("%w: pod %q has %d bytes of claims and amounts, allowed are %d", errTooMuchWaits, pod.Name, size, mostPodBytes)
		}
		pods = append(pods, pod)
		return nil
	})
	if err != nil && text.N == 0 {
		return nil, "", fmt.Errorf("%w: %d pods have more than %d bytes", errTooMuchWaits, podsOfPage, mostPageBytes)
	}
	return pods, next, err
}

// openPods has the API server send pods as JSON. The caller closes it.
func openPods(client kubernetes.Interface) func(ctx context.Context, namespace string, options metav1.ListOptions) (io.ReadCloser, error) {
	return func(ctx context.Context, namespace string, options metav1.ListOptions) (io.ReadCloser, error) {
		return client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").
			VersionedParams(&options, scheme.ParameterCodec).SetHeader("Accept", "application/json").Stream(ctx)
	}
}

// readPods reads a list of pods, one after the other.
func readPods(from *json.Decoder, each func(countedPart) error) (next string, err error) {
	var list metav1.ListMeta
	err = readParts(from, '{', func() error {
		field, err := from.Token()
		switch {
		case err != nil:
			return err
		case field == "metadata":
			return from.Decode(&list)
		case field == "items":
			return readParts(from, '[', func() error {
				var part countedPart
				if err := from.Decode(&part); err != nil {
					return err
				}
				return each(part)
			})
		}
		return from.Decode(new(json.RawMessage))
	})
	return list.Continue, err
}

// readParts calls each for the fields of an object, or for the items of a list.
func readParts(from *json.Decoder, open json.Delim, each func() error) error {
	switch token, err := from.Token(); {
	case err != nil || token == nil: // which is null, an empty list
		return err
	case token != open:
		return fmt.Errorf("read pods: %v, want %s", token, open)
	}
	for from.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err := from.Token()
	return err
}

// countedPart is what package accounting reads of a pod that waits. Nothing else is decoded.
type countedPart struct {
	Metadata struct {
		Namespace         string       `json:"namespace"`
		Name              string       `json:"name"`
		UID               types.UID    `json:"uid"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		ResourceClaims  []corev1.PodResourceClaim    `json:"resourceClaims"`
		SchedulingGroup *corev1.PodSchedulingGroup   `json:"schedulingGroup"`
		Overhead        corev1.ResourceList          `json:"overhead"`
		Resources       *corev1.ResourceRequirements `json:"resources"`
		InitContainers  []countedContainer           `json:"initContainers"`
		Containers      []countedContainer           `json:"containers"`
	} `json:"spec"`
	Status struct {
		ResourceClaimStatuses                []corev1.PodResourceClaimStatus             `json:"resourceClaimStatuses"`
		NodeAllocatableResourceClaimStatuses []corev1.NodeAllocatableResourceClaimStatus `json:"nodeAllocatableResourceClaimStatuses"`
	} `json:"status"`
}

type countedContainer struct {
	Name          string                         `json:"name"`
	Resources     corev1.ResourceRequirements    `json:"resources"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
}

func (p countedPart) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID, pod.DeletionTimestamp = p.Metadata.Namespace, p.Metadata.Name, p.Metadata.UID, p.Metadata.DeletionTimestamp
	pod.Spec.ResourceClaims, pod.Spec.SchedulingGroup = p.Spec.ResourceClaims, p.Spec.SchedulingGroup
	pod.Spec.Overhead, pod.Spec.Resources = p.Spec.Overhead, p.Spec.Resources
	pod.Spec.InitContainers, pod.Spec.Containers = containersOf(p.Spec.InitContainers), containersOf(p.Spec.Containers)
	pod.Status.ResourceClaimStatuses = p.Status.ResourceClaimStatuses
	pod.Status.NodeAllocatableResourceClaimStatuses = p.Status.NodeAllocatableResourceClaimStatuses
	return pod
}

func containersOf(parts []countedContainer) (containers []corev1.Container) {
	for _, part := range parts {
		containers = append(containers, corev1.Container{Name: part.Name, Resources: part.Resources, RestartPolicy: part.RestartPolicy})
	}
	return containers
}
