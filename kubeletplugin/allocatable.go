package kubeletplugin

import (
	"context"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
)

const (
	// allocatableTimeout bounds the request of CountsAllocatable. Without an answer, the
	// daemon still starts.
	allocatableTimeout = 10 * time.Second

	// allocatablePeriod is the shortest pause before AskAllocatable asks again, and half
	// of the longest: many daemons may have started at the same time.
	allocatablePeriod = 30 * time.Second
)

// AskAllocatable waits, asks CountsAllocatable, and does so again until the API server
// answers. Without an answer before the end of ctx, it returns false.
func AskAllocatable(ctx context.Context, client kubernetes.Interface, nodeName string) (counts bool) {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait.Jitter(allocatablePeriod, 1)):
		}
		if counts, err := CountsAllocatable(ctx, client, nodeName); err == nil {
			return counts
		}
	}
}

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
