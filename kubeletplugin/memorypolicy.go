package kubeletplugin

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// reasonPolicyRequested is the reason of the condition MemoryPolicy if it is true.
const reasonPolicyRequested = "Requested"

// withIgnored adds what containers do not have to the states of their claims.
func (s partitionStates) withIgnored(ignored []pin.Ignored) {
	for _, container := range ignored {
		claimUID := types.UID(container.Claim.UID)
		s[claimUID] = append(slices.Clone(s[claimUID]), cgroupState{ofAll: true, fault: deviceclasses.FaultPolicyIgnored, why: ignoredText(container.PolicyFault)})
	}
}

// ignoredText says what a container has, and what it should.
func ignoredText(fault pin.PolicyFault) string {
	return fmt.Sprintf("a container started with the memory policy %s, not with %s: the OCI runtime ignores linux.memoryPolicy "+
		"(use runc 1.4, crun 1.24 or newer), or the container started while the driver was not connected to the container runtime over NRI", fault.Seen, fault.Want)
}

// memoryPolicy returns the condition MemoryPolicy of a share with a memory policy.
func memoryPolicy(share ledger.Share, state partitionState) metav1.Condition {
	condition := metav1.Condition{
		Type: deviceclasses.ConditionMemoryPolicy, Status: metav1.ConditionTrue, Reason: reasonPolicyRequested,
		Message: "the container runtime is asked for the policy " + share.Zone().MemoryPolicy + ", and no container was seen without it",
	}
	if state.whys[deviceclasses.FaultPolicyIgnored] != "" {
		condition.Status = metav1.ConditionFalse
		condition.Reason, condition.Message = state.because(deviceclasses.FaultPolicyIgnored)
	}
	return condition
}
