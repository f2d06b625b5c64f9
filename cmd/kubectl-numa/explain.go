package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// question is what the flags and arguments of explain say.
type question struct {
	cli
	from      source
	gates     string
	namespace string
	output    *choice
}

func (c cli) explainCommand() *cobra.Command {
	q := question{cli: c, output: newChoice("table", "json", "yaml")}
	command := &cobra.Command{
		Use:   "explain pod|claim NAME",
		Short: "Say why a pod or a claim gets no devices on which node, and what helps",
		Long: `Say why a pod or a claim gets no devices on which node, and what helps.

For every node and request it counts the devices that are left after each thing
that can rule one out. What there is comes from where it does for simulate; pods
without a node that are before this one are placed first, as simulate does.`,
		Example: c.examples(`
# why is the pod Pending?
explain pod trainer -n team-a
# the same in a cluster that is a folder of files
explain pod trainer -n team-a -f cluster/
# what is wrong with a claim, without a pod that uses it
explain claim four-gpus -n team-a -f cluster/ -o json`),
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] != "pod" && args[0] != "claim" {
				return fmt.Errorf("want pod NAME or claim NAME, not %q", strings.Join(args, " "))
			}
			return nil
		},
		RunE:              func(command *cobra.Command, args []string) error { return q.run(command.Context(), args[0], args[1]) },
		ValidArgsFunction: q.completeArgs,
	}
	q.from.addTo(command)
	addGates(command, &q.gates)
	command.Flags().StringVarP(&q.namespace, "namespace", "n", "", "`name` of the namespace that it is in (default: the kubeconfig's for a cluster, else default)")
	q.output.addTo(command, "output", "o", "how to say it")
	return command
}

// completeArgs knows the kinds and, if what there is can be read, the names.
func (q *question) completeArgs(command *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{"pod", "claim"}, cobra.ShellCompDirectiveNoFileComp
	}
	objects, err := q.from.Snapshot(command.Context())
	namespace := cmp.Or(q.namespace, q.from.namespace())
	switch {
	case len(args) == 1 && err == nil && args[0] == "pod":
		names = namesIn(objects.Pods, namespace)
	case len(args) == 1 && err == nil && args[0] == "claim":
		names = namesIn(objects.Claims, namespace)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func namesIn[T interface {
	GetName() string
	GetNamespace() string
}](objects []T, namespace string) (names []string) {
	for _, object := range objects {
		if object.GetNamespace() == namespace {
			names = append(names, object.GetName())
		}
	}
	return names
}

func (q *question) run(ctx context.Context, kind, name string) error {
	if namespace, short, found := strings.Cut(name, "/"); found { // as simulate writes it
		q.namespace, name = namespace, short
	} else if q.namespace == "" {
		q.namespace = q.from.namespace()
	}
	cluster, objects, err := q.load(ctx, &q.from, q.gates)
	if err != nil {
		return err
	}
	var answer simulate.Explanation
	if kind == "pod" {
		answer, err = q.pod(ctx, cluster, objects, name)
	} else {
		answer, err = q.claim(ctx, cluster, objects, name)
	}
	if err != nil {
		return err
	}
	if err := write(q.stdout, q.output.value, answer, func() string { return explanation(answer) }); err != nil {
		return &failure{fmt.Errorf("write explanation: %w", err)}
	}
	return nil
}

func (q *question) pod(ctx context.Context, cluster *simulate.Cluster, objects *snapshot.Snapshot, name string) (simulate.Explanation, error) {
	pod := objects.Pod(q.namespace, name)
	if pod == nil {
		return simulate.Explanation{}, fmt.Errorf("there is no Pod %s/%s in %s", q.namespace, name, &q.from)
	}
	if pod.Spec.NodeName != "" {
		return simulate.Explanation{
			Pod: q.namespace + "/" + name, Node: pod.Spec.NodeName, Nodes: []simulate.NodeExplanation{},
			Sentence: "it has the node " + pod.Spec.NodeName,
		}, nil
	}
	before := objects.Waiting()
	for i := range before {
		if before[i] == pod {
			before = before[:i]
			break
		}
	}
	q.warn(objects, []*corev1.Pod{pod})
	if _, err := cluster.Run(ctx, before, simulate.Options{}); err != nil {
		return simulate.Explanation{}, &failure{err}
	}
	answer, err := cluster.ExplainPod(ctx, pod)
	if err != nil {
		return answer, &failure{err}
	}
	return answer, nil
}

func (q *question) claim(ctx context.Context, cluster *simulate.Cluster, objects *snapshot.Snapshot, name string) (simulate.Explanation, error) {
	claim := objects.Claim(q.namespace, name)
	if claim == nil {
		return simulate.Explanation{}, fmt.Errorf("there is no ResourceClaim %s/%s in %s", q.namespace, name, &q.from)
	}
	if claim.Status.Allocation != nil {
		return simulate.Explanation{Claim: q.namespace + "/" + name, Nodes: []simulate.NodeExplanation{}, Sentence: allocated(claim)}, nil
	}
	answer, err := cluster.ExplainClaim(ctx, claim)
	if err != nil {
		return answer, &failure{err}
	}
	return answer, nil
}

func allocated(claim *resourceapi.ResourceClaim) string {
	var parts []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		part := fmt.Sprintf("%s has %s/%s/%s", result.Request, result.Driver, result.Pool, result.Device)
		if capacity := consumed(result.ConsumedCapacity); capacity != "" {
			part += " (" + capacity + ")"
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("it is allocated and in use by %d pods: %s", len(claim.Status.ReservedFor), strings.Join(parts, "; "))
}
