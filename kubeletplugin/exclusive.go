package kubeletplugin

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// Reasons of the condition Exclusive, besides those of faults. The condition is true with the
// first two reasons.
const (
	reasonKernelPartition = "KernelPartition"
	reasonSharedPool      = "SharedPool"
	reasonNoCPUs          = "NoCPUs"
	reasonNotSupported    = "NotSupported"
	reasonShared          = "Shared"
	reasonMixed           = "Mixed"
	reasonPartitionNone   = "PartitionNone"
	reasonRuntimeRefused  = "RuntimeRefused"
)

// sharedPoolState says whether the container runtime keeps other containers off the CPUs of
// claims, where the kernel does not.
type sharedPoolState string

const (
	sharedPoolAway    sharedPoolState = ""        // the runtime is not connected, or not asked
	sharedPoolKept    sharedPoolState = "kept"    // it has carried out the last update
	sharedPoolRefused sharedPoolState = "refused" // it has not
)

// keeping describes what can keep other tasks off the CPUs of a share now.
type keeping struct {
	node      driver.Exclusivity
	others    sharedPoolState
	partition partitionState
}

// exclusive returns the condition Exclusive of a share of a zone.
func exclusive(share ledger.Share, by keeping) metav1.Condition {
	condition := metav1.Condition{Type: deviceclasses.ConditionExclusive, Status: metav1.ConditionFalse}
	condition.Reason, condition.Message = whyExclusive(share, by)
	if condition.Reason == reasonKernelPartition || condition.Reason == reasonSharedPool {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

func whyExclusive(share ledger.Share, by keeping) (reason, message string) {
	kernel := by.node == driver.ExclusivityKernel
	partitioned := kernel && share.KernelExclusive()
	switch {
	case share.CPUs().IsEmpty():
		return reasonNoCPUs, "the claim has no CPUs of this device"
	case by.partition.whys[deviceclasses.FaultNotPinned] != "" && share.Pinned():
		return by.partition.because(deviceclasses.FaultNotPinned)
	case partitioned && by.partition.whys[deviceclasses.FaultPartitionInvalid] != "":
		return by.partition.because(deviceclasses.FaultPartitionInvalid)
	case partitioned && !by.partition.downgraded:
		return reasonKernelPartition, "the kernel keeps all other tasks off the CPUs while " + whoRuns(share)
	}
	why, what := whyNoPartition(share, kernel)
	if partitioned {
		why, what = reasonShared, "more than one pod uses the claim: it gets a partition when only one pod is left"
		if share.Scope() == ledger.ScopePod {
			what += " that was there when the claim was prepared"
		}
	}
	switch {
	case by.node == driver.ExclusivityNone || by.others == sharedPoolAway:
		return why, what
	case by.others == sharedPoolRefused:
		return reasonRuntimeRefused, "the container runtime refuses to keep other containers off the CPUs; the driver's log says why: " + what
	}
	return reasonSharedPool, "the container runtime keeps other containers off the CPUs, but other tasks may run on them: " + what
}

func whoRuns(share ledger.Share) string {
	if share.Scope() == ledger.ScopePod {
		return "a container of the pod is running"
	}
	return "a container that uses the claim is running"
}

func whyNoPartition(share ledger.Share, kernel bool) (reason, message string) {
	zone := share.Zone()
	switch {
	case zone.Mixed:
		return reasonMixed, "the claim is mixed, so its containers run on the shared pool as well"
	case zone.Partition == deviceclasses.PartitionNone:
		return reasonPartitionNone, "the claim asks for no partition"
	case share.Scope() == ledger.ScopeShared:
		return reasonShared, "only some containers of the pod use the claim, or several pods use it, or a container of the pod also has CPUs that are in another partition, or in none"
	case !kernel:
		return reasonNotSupported, "the node does not use cpuset partitions, which need Linux 6.11 or newer"
	}
	return reasonNotSupported, "no partition is made for the claim" // impossible: KernelExclusive has no other reason
}
