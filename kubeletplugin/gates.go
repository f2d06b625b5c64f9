package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
)

const (
	// gateTimeout bounds a request of Ask. Without an answer, the daemon still starts.
	gateTimeout = 10 * time.Second

	// gatePeriod is the shortest pause before Learn asks again, and half of the longest: many
	// daemons may have started at the same time.
	gatePeriod = 30 * time.Second
)

// Gate is a feature gate of the API server, of which only a dry run tells whether it is on. It
// sends a made-up device, and looks what the API server would store.
type Gate struct {
	what    string // the sample, in errors
	sample  resourceapi.Device
	keeps   func(stored resourceapi.Device) bool
	refuses bool // without the gate, the sample is not valid
	set     func(gates *driver.Gates, on bool)
}

// NodeAllocatable is the gate DRANodeAllocatableResources: this cluster counts claims in the
// allocatable resources of the node.
func NodeAllocatable() Gate {
	return Gate{
		what: "allocatable resources", sample: zones.AllocatableSample(), keeps: zones.KeepsAllocatable,
		set: func(gates *driver.Gates, on bool) { gates.NodeAllocatable = on },
	}
}

// NUMANodeLists is the gate DRAListTypeAttributes: this cluster stores lists. The scheduler has
// a gate of the same name, which the daemon cannot ask for.
func NUMANodeLists() Gate {
	return Gate{
		what: "a list", sample: zones.ListSample(), keeps: zones.KeepsList, refuses: true,
		set: func(gates *driver.Gates, on bool) { gates.NUMANodeLists = on },
	}
}

// Ask reports whether the gate is on.
func (g Gate) Ask(ctx context.Context, client kubernetes.Interface, nodeName string) (on bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	sample := driver.Resources(nodeName, []resourceapi.Device{g.sample})
	answer, err := client.ResourceV1().ResourceSlices().Create(ctx, wantedSlices(nodeName, sample)[0], metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case g.refuses && apierrors.IsInvalid(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("create ResourceSlice with %s (dry run): %w", g.what, err)
	}
	return len(answer.Spec.Devices) == 1 && g.keeps(answer.Spec.Devices[0]), nil
}

// Learn asks for each gate, and has tell, which is Driver.SetGates, set what it hears. The error
// says why there is no answer to some. Later then asks for these again, after a pause each time,
// until there is one or ctx ends.
func Learn(ctx context.Context, client kubernetes.Interface, nodeName string, tell func(change func(*driver.Gates)), gates ...Gate) (later func(context.Context), err error) {
	open, err := learn(ctx, client, nodeName, tell, gates)
	return func(ctx context.Context) {
		for len(open) > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait.Jitter(gatePeriod, 1)):
			}
			open, _ = learn(ctx, client, nodeName, tell, open)
		}
	}, err
}

// learn returns the gates without an answer.
func learn(ctx context.Context, client kubernetes.Interface, nodeName string, tell func(change func(*driver.Gates)), gates []Gate) (open []Gate, err error) {
	for _, gate := range gates {
		on, unknown := gate.Ask(ctx, client, nodeName)
		if unknown != nil {
			open, err = append(open, gate), errors.Join(err, unknown)
			continue
		}
		tell(func(gates *driver.Gates) { gate.set(gates, on) })
	}
	return open, err
}
