package score

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// scoredResources are those that the two plugins score by default, all with weight 1.
func scoredResources() [2]corev1.ResourceName {
	return [2]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// leastAllocated is the plugin NodeResourcesFit: the more is left, the better.
func leastAllocated(q *question) []int64 {
	asked := requests.ScoredWaiting(q.pod)
	return q.each(func(n Candidate) int64 {
		sum, resources := int64(0), int64(0)
		for _, name := range scoredResources() {
			allocatable := n.Allocatable[name]
			if allocatable == 0 {
				continue
			}
			resources++
			if left := allocatable - n.scored[name] - asked[name]; left > 0 {
				sum += left * highest / allocatable
			}
		}
		if resources == 0 {
			return 0
		}
		return sum / resources
	})
}

// balancedAllocation is the plugin NodeResourcesBalancedAllocation: a node is better if
// the pod brings the shares of cpu and memory that are taken closer to each other. It does
// not score nodes for a pod that requests neither.
func balancedAllocation(q *question) []int64 {
	asked := requests.Waiting(q.pod)
	if asked[corev1.ResourceCPU] == 0 && asked[corev1.ResourceMemory] == 0 {
		return nil
	}
	return q.each(func(n Candidate) int64 {
		without, with := balance(n.Allocatable, n.Taken, nil), balance(n.Allocatable, n.Taken, asked)
		return highest/2 + (highest/2+with-without)/2
	})
}

// balance returns highest if equal shares of cpu and memory are taken, and half of it if
// one is taken as a whole and the other not at all.
func balance(allocatable, taken, asked requests.Amounts) int64 {
	var shares []float64
	for _, name := range scoredResources() {
		if allocatable[name] != 0 {
			shares = append(shares, min(float64(taken[name]+asked[name])/float64(allocatable[name]), 1))
		}
	}
	deviation := 0.0
	if len(shares) == 2 {
		deviation = math.Abs((shares[0] - shares[1]) / 2)
	}
	return int64((1 - deviation) * highest)
}
