package kubeletplugin

import (
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// toldFaults returns the faults that the daemon of before has told of, as the statuses of the
// claims have them. They count until this one has looked.
func toldFaults(claims map[types.UID]*resourceapi.ResourceClaim, grants []ledger.Grant, pool string) partitionStates {
	told := make(partitionStates)
	for _, grant := range grants {
		claim := claims[grant.UID]
		if claim == nil || claim.UID != grant.UID {
			continue
		}
		for _, share := range grant.Shares {
			status := findStatus(claim.Status.Devices, statusOf(share, pool))
			if status == nil || share.Zone() == nil {
				continue
			}
			condition := meta.FindStatusCondition(status.Conditions, deviceclasses.ConditionExclusive)
			if condition == nil || condition.Status != metav1.ConditionFalse {
				continue
			}
			for _, name := range []string{deviceclasses.FaultPartitionInvalid, deviceclasses.FaultNotPinned} {
				fault := deviceclasses.FaultOf(name)
				if condition.Reason != fault.Reason {
					continue
				}
				before, _, _ := strings.Cut(fault.Message, "%s")
				told[grant.UID] = append(told[grant.UID], cgroupState{
					given: pin.Pinning{CPUs: share.CPUs(), Mems: share.Binds()},
					fault: name, why: strings.TrimPrefix(condition.Message, before), since: condition.LastTransitionTime.Time,
				})
			}
		}
	}
	return told
}

// toldIgnored returns the claims whose statuses say that a container ignores the memory policy.
func toldIgnored(claims map[types.UID]*resourceapi.ResourceClaim) map[types.UID]bool {
	told := make(map[types.UID]bool)
	for claimUID, claim := range claims {
		told[claimUID] = claim != nil && claim.UID == claimUID && slices.ContainsFunc(claim.Status.Devices, func(device resourceapi.AllocatedDeviceStatus) bool {
			condition := meta.FindStatusCondition(device.Conditions, deviceclasses.ConditionMemoryPolicy)
			return device.Driver == driver.Name && condition != nil && condition.Reason == deviceclasses.FaultOf(deviceclasses.FaultPolicyIgnored).Reason
		})
	}
	return told
}

// toldOf reports whether the states have a partition with CPUs of the cgroup that is invalid,
// and since when.
func (s partitionStates) toldOf(cgroup pin.Live) (since time.Time, told bool) {
	for _, claim := range cgroup.Claims {
		for _, state := range s[types.UID(claim.UID)] {
			if state.fault == deviceclasses.FaultPartitionInvalid && state.given.CPUs.Overlaps(claim.Pinning.CPUs) {
				return state.since, true
			}
		}
	}
	return since, false
}
