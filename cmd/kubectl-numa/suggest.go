package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/evict"
)

// eviction is what the flags of suggest-evictions say.
type eviction struct {
	cli
	from      source
	gates     string
	namespace string
	output    *choice
}

func (c cli) suggestEvictionsCommand() *cobra.Command {
	e := eviction{cli: c, output: newChoice("table", "json", "yaml")}
	command := &cobra.Command{
		Use:   "suggest-evictions pod NAME",
		Short: "Say which pods of lower priority would have to go for a pending pod",
		Long: `Say which pods of lower priority would have to go for a pending pod.

The scheduler has no preemption for devices of claims. This command looks for the
fewest running pods whose deletion gives the pod a node, and deletes nothing. It
tries all sets of up to three pods ("exact": fewer are not enough); where that
does not do, it leaves one pod after the other out of all of a node ("greedy":
fewer may be enough, but none of these can stay). Of several sets it prefers that
of the lowest priorities, then of the fewest claims, then of the newest pods.

A claim is free only when all its users are gone. Left alone are pods that come
back to their node, of DaemonSets and of the kubelet itself, and those that are
terminating. PodDisruptionBudgets are not considered, nor other pods that wait:
one of them may take what becomes free. Of priorities counts spec.priority, which
the API server fills in.

The exit code is 0 also if nothing has to be deleted, and 1 if nothing helps.`,
		Example: c.examples(`
# what would have to go for the pod?
suggest-evictions pod trainer -n team-a
# in a cluster that is a folder of files, for a program
suggest-evictions pod trainer -n team-a -f cluster/ -o json`),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] != "pod" {
				return fmt.Errorf("want pod NAME, not %q", strings.Join(args, " "))
			}
			return nil
		},
		RunE:              func(command *cobra.Command, args []string) error { return e.run(command.Context(), args[1]) },
		ValidArgsFunction: e.completeArgs,
	}
	e.from.addTo(command)
	addGates(command, &e.gates)
	command.Flags().StringVarP(&e.namespace, "namespace", "n", "", "`name` of the namespace that it is in (default: the kubeconfig's for a cluster, else default)")
	e.output.addTo(command, "output", "o", "how to say it")
	return command
}

// completeArgs knows, if what there is can be read, the pods that wait.
func (e *eviction) completeArgs(command *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{"pod"}, cobra.ShellCompDirectiveNoFileComp
	}
	if objects, err := e.from.Snapshot(command.Context()); err == nil && len(args) == 1 {
		names = namesIn(objects.Waiting(), cmp.Or(e.namespace, e.from.namespace()))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (e *eviction) run(ctx context.Context, name string) error {
	if namespace, short, found := strings.Cut(name, "/"); found { // as simulate writes it
		e.namespace, name = namespace, short
	} else if e.namespace == "" {
		e.namespace = e.from.namespace()
	}
	cluster, objects, err := e.load(ctx, &e.from, e.gates)
	if err != nil {
		return err
	}
	pod := objects.Pod(e.namespace, name)
	switch {
	case pod == nil:
		return fmt.Errorf("there is no Pod %s/%s in %s", e.namespace, name, &e.from)
	case pod.Spec.NodeName != "":
		return fmt.Errorf("pod %s/%s has the node %s, want one that waits for a node", e.namespace, name, pod.Spec.NodeName)
	}
	if pod.Spec.Priority == nil && pod.Spec.PriorityClassName != "" {
		e.note("the pod has no spec.priority, which the API server fills in for %s: it is taken to be 0", pod.Spec.PriorityClassName)
	}
	progress := e.progress("nodes looked at")
	answer, err := evict.Suggest(ctx, cluster, objects, pod, evict.Options{Progress: progress.at})
	progress.done()
	var abort *simulate.AbortError
	switch {
	case errors.As(err, &abort):
		return aborted(abort)
	case err != nil:
		return &failure{err}
	}
	if err := write(e.stdout, e.output.value, answer, func() string { return evictions(answer) }); err != nil {
		return &failure{fmt.Errorf("write evictions: %w", err)}
	}
	if answer.Node == "" {
		return &failure{&hintedError{errors.New("nothing helps"), []string{e.name + " explain pod " + name + " says what is in the way"}}}
	}
	return nil
}

// evictions is the suggestion for people.
func evictions(answer evict.Suggestion) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", answer.Pod, answer.Sentence)
	if len(answer.Evictions) == 0 {
		return b.String()
	}
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POD\tPRIORITY\tNODE\tCLAIMS")
	for _, v := range answer.Evictions {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", v.Pod, v.Priority, v.Node, strings.Join(v.Claims, ", "))
	}
	table.Flush()
	return trimLines(b.String()) + "\nPodDisruptionBudgets are not considered.\n"
}
