package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/evict"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

func (c cli) suggestEvictionsCommand() *cobra.Command {
	q := c.asks()
	command := &cobra.Command{
		Use:   "suggest-evictions pod NAME",
		Short: "Show which pods of lower priority you would have to delete for a pending pod",
		Long: `Show which pods of lower priority you would have to delete for a pending pod.

The scheduler does not preempt pods for the devices of claims. This command
looks for the fewest running pods whose deletion gives the pending pod a node.
It deletes nothing.

The command tries all sets of up to three pods ("exact": no smaller set is
enough). If none of these is enough, it takes all pods of a node and removes
those that can stay ("greedy": there may be a smaller set, but no pod of this
set can stay). Of several sets it prefers the one with the lowest priorities,
then the one with the fewest claims, then the one with the newest pods.

A claim becomes free only when all its users are gone. The command never
suggests pods of DaemonSets, static pods or pods that are terminating. It does
not consider PodDisruptionBudgets. It does not consider other pending pods
either: one of them may take what becomes free. The priority of a pod is its
spec.priority, which the API server fills in.

The exit code is 0 also if nothing has to be deleted, and 1 if nothing helps.`,
		Example: c.examples(`
# which pods would have to go for this pod?
suggest-evictions pod trainer -n team-a
# the same for a cluster that is a folder of files, as JSON
suggest-evictions pod trainer -n team-a -f cluster/ -o json`),
		RunE: func(command *cobra.Command, args []string) error {
			return q.suggestEvictions(command.Context(), args[1])
		},
	}
	q.takes(command, objectKind{"pod", func(objects *snapshot.Snapshot, namespace string) []string {
		return namesIn(objects.Waiting(), namespace)
	}})
	q.addTo(command)
	return command
}

func (q *question) suggestEvictions(ctx context.Context, name string) error {
	name = q.locate(name)
	cluster, objects, err := q.load(ctx, &q.from, q.gates)
	if err != nil {
		return err
	}
	pod := objects.Pod(q.namespace, name)
	switch {
	case pod == nil:
		return fmt.Errorf("there is no Pod %s/%s in %s", q.namespace, name, &q.from)
	case pod.Spec.NodeName != "":
		return fmt.Errorf("pod %s/%s is already assigned to node %s, want a pod without a node", q.namespace, name, pod.Spec.NodeName)
	}
	if pod.Spec.Priority == nil && pod.Spec.PriorityClassName != "" {
		q.note("using priority 0: the pod has no spec.priority, which the API server fills in for the PriorityClass %s", pod.Spec.PriorityClassName)
	}
	progress := q.progress("nodes searched")
	answer, err := evict.Suggest(ctx, cluster, objects, pod, evict.Options{Progress: progress.at})
	progress.done()
	var abort *simulate.AbortError
	switch {
	case errors.As(err, &abort):
		return withHint(abort)
	case err != nil:
		return &failure{err}
	}
	if err := q.print("evictions", kindEvictions, answer, func() string { return evictionsText(answer) }); err != nil {
		return err
	}
	if answer.Node == "" {
		return &failure{&hintedError{errors.New("no eviction helps"), []string{"run " + q.name + " explain pod " + name + " to see why the pod does not fit"}}}
	}
	return nil
}

// evictionsText returns the suggestion for people.
func evictionsText(answer evict.Suggestion) string {
	sentence := fmt.Sprintf("%s: %s\n", answer.Pod, answer.Sentence)
	if len(answer.Evictions) == 0 {
		return sentence
	}
	rows := [][]string{{"POD", "PRIORITY", "NODE", "CLAIMS"}}
	for _, v := range answer.Evictions {
		rows = append(rows, []string{v.Pod, strconv.Itoa(int(v.Priority)), v.Node, strings.Join(v.Claims, ", ")})
	}
	return sentence + "\n" + table(rows) + "\nPodDisruptionBudgets are not considered.\n"
}
