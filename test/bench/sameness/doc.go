// Package sameness asks the kubelet's own managers and this driver about the same Guaranteed
// pods on the same machines, and compares what the answers mean: is the pod admitted, how
// many CPUs does each container have, on how many NUMA nodes and sockets, are they whole
// cores, and is memory on the same NUMA nodes. It knows six kinds of difference. Any other
// is a failure.
package sameness
