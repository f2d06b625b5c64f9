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

// allocatableTimeout bounds the question, without whose answer the daemon starts
// all the same.
const allocatableTimeout = 10 * time.Second

// CountsAllocatable reports whether this API server has claims counted in the
// node's allocatable, by what it would store of a slice that says how.
func CountsAllocatable(ctx context.Context, client kubernetes.Interface, nodeName string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, allocatableTimeout)
	defer cancel()
	sample := driver.Resources(nodeName, []resourceapi.Device{zones.AllocatableSample()})
	answer, err := client.ResourceV1().ResourceSlices().Create(ctx, wantedSlices(nodeName, sample)[0], metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, fmt.Errorf("rehearse publishing allocatable resources: %w", err)
	}
	return len(answer.Spec.Devices) == 1 && zones.KeepsAllocatable(answer.Spec.Devices[0]), nil
}
