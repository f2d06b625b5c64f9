package scenario

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// CreateOthers creates the pods that have a node, as far as they have come. Without a kubelet,
// a pod that is being deleted stays.
func (s Scenario) CreateOthers(ctx context.Context, client kubernetes.Interface) error {
	for _, pod := range s.Others {
		if err := createOther(ctx, client, pod.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

func createOther(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	pods, phase, deleted := client.CoreV1().Pods(pod.Namespace), pod.Status.Phase, pod.DeletionTimestamp != nil
	pod.DeletionTimestamp = nil
	pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err == nil && phase != "" {
		pod.Status.Phase = phase
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	}
	if err == nil && deleted {
		err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{})
	}
	return err
}
