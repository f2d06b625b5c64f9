package kubeletplugin

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// Reasons of the condition MemoryPolicy. It is true with the first one.
const (
	reasonPolicyRequested = "Requested"
	reasonPolicyIgnored   = "Ignored"
)

// ObserveIgnored takes the containers that run without the memory policy of their claim, and
// puts an event on the claim's pods for each new one. The next Observe reports the rest. The
// goroutine of Observe may call it.
func (p *Plugin) ObserveIgnored(ignored []pin.Ignored) {
	known := p.ignored
	p.ignored = slices.Clone(ignored)
	for _, container := range ignored {
		if slices.Contains(known, container) {
			continue
		}
		if grant, held := p.driver.Grant(types.UID(container.Claim.UID)); held {
			p.podEvents.tellIgnored(grant, container.PolicyFault, time.Now())
		}
	}
}

// withIgnored adds what containers do not have to the states of their claims.
func (s partitionStates) withIgnored(ignored []pin.Ignored) {
	for _, container := range ignored {
		claimUID := types.UID(container.Claim.UID)
		s[claimUID] = append(slices.Clone(s[claimUID]), cgroupState{partitionState: partitionState{policy: container.PolicyFault}})
	}
}

// ignoredText says what a container has, and what it should.
func ignoredText(fault pin.PolicyFault) string {
	return fmt.Sprintf("a container started with the memory policy %s, not with %s: the OCI runtime ignores linux.memoryPolicy "+
		"(use runc 1.4, crun 1.24 or newer), or the container started while the driver was not connected to the container runtime over NRI", fault.Seen, fault.Want)
}

// memoryPolicy returns the condition MemoryPolicy of a share with a memory policy.
func memoryPolicy(share ledger.Share, fault pin.PolicyFault) metav1.Condition {
	condition := metav1.Condition{
		Type: deviceclasses.ConditionMemoryPolicy, Status: metav1.ConditionTrue, Reason: reasonPolicyRequested,
		Message: "the container runtime is asked for the policy " + share.Zone().MemoryPolicy + ", and no container was seen without it",
	}
	if fault != (pin.PolicyFault{}) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reasonPolicyIgnored, ignoredText(fault)
	}
	return condition
}
