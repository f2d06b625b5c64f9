package kubeletplugin

import (
	"context"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
)

// allocatableTimeout bounds the request of CountsAllocatable. Without an answer, the
// daemon still starts.
const allocatableTimeout = 10 * time.Second

// CountsAllocatable reports whether this cluster counts claims in the node's
// allocatable resources. It sends the API server a dry-run create of a ResourceSlice
// that maps its capacity to them, and looks whether the answer still has the mapping.
func CountsAllocatable(ctx context.Context, client kubernetes.Interface, nodeName string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, allocatableTimeout)
	defer cancel()
	sample := driver.Resources(nodeName, []resourceapi.Device{zones.AllocatableSample()})
	answer, err := client.ResourceV1().ResourceSlices().Create(ctx, wantedSlices(nodeName, sample)[0], metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, fmt.Errorf("create ResourceSlice with allocatable resources (dry run): %w", err)
	}
	return len(answer.Spec.Devices) == 1 && zones.KeepsAllocatable(answer.Spec.Devices[0]), nil
}
