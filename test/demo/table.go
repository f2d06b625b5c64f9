package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// printTable writes a line for each container and one for each node.
func printTable(w io.Writer, nodes []observedNode) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POD\tCLAIM\tZONE\tCPUS\tMEMS\tPARTITION")
	for _, node := range nodes {
		for i := range node.pods {
			if err := printPod(table, node, &node.pods[i]); err != nil {
				return err
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, node := range nodes {
		_, err := fmt.Fprintf(w, "\nnode %s: a pod without a claim may use\n  CPUs %s of %s, mems %s\n",
			node.name, list(node.shared.CPUs), list(node.snapshot.Online), list(node.shared.Mems))
		if err != nil {
			return err
		}
	}
	return nil
}

func printPod(w io.Writer, node observedNode, pod *corev1.Pod) error {
	for _, container := range pod.Spec.Containers {
		process, err := node.snapshot.Container(pod, container.Name)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", pod.Name, claims(pod),
			list(node.snapshot.ZonesOf(process.CPUs)), list(process.CPUs), list(process.Mems), process.Partition)
		if err != nil {
			return err
		}
	}
	return nil
}

// claims names the claims of a pod, "-" for none.
func claims(pod *corev1.Pod) string {
	var names []string
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.ResourceClaimName != nil {
			names = append(names, *status.ResourceClaimName)
		}
	}
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.ResourceClaimName != nil {
			names = append(names, *claim.ResourceClaimName)
		}
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ",")
}

func list(set cpuset.Set) string {
	if set.IsEmpty() {
		return "-"
	}
	return set.String()
}
