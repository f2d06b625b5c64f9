package kubeletplugin

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// reasonSharedWays is a reason of the condition Exclusive of shares of a cache, which have
// those of the CPUs' share, too.
const reasonSharedWays = "SharedWays"

// exclusiveWays returns the condition Exclusive of a share of a cache: whether only the
// claim uses its ways. The kernel gives them to all tasks on the CPUs of another share, so
// that is so as far as the claim has these CPUs to itself.
func exclusiveWays(share, cpus ledger.Share, by keeping) metav1.Condition {
	condition := exclusive(cpus, by)
	switch {
	case share.Cache().Pool == deviceclasses.PoolShared:
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonSharedWays
		condition.Message = "all claims of the pool shared have the same ways of the cache"
	case condition.Reason == reasonKernelPartition:
		condition.Message += "; at other times, tasks of others that run there use the claim's ways, and are counted"
	default:
		condition.Message = "tasks of others that run on the claim's CPUs use its ways, and are counted: " + condition.Message
	}
	return condition
}

// cpusOf returns the share of a grant whose CPUs have the ways of a share of a cache.
func cpusOf(grant ledger.Grant, share ledger.Share) (cpus ledger.Share, found bool) {
	i := slices.IndexFunc(grant.Shares, func(other ledger.Share) bool {
		return other.Zone() != nil && other.Request == share.Cache().CPUs
	})
	if i < 0 {
		return ledger.Share{}, false
	}
	return grant.Shares[i], true
}
