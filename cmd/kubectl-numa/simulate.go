package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// simulation is what the flags of simulate say.
type simulation struct {
	cli
	from     source
	gates    string
	node     string
	allNodes bool
	strategy *choice
	output   *choice
}

func (c cli) simulateCommand() *cobra.Command {
	s := simulation{
		cli:      c,
		strategy: newChoice(string(simulate.First), string(simulate.Spread), string(simulate.Pack)),
		output:   newChoice("table", "json", "yaml"),
	}
	command := &cobra.Command{
		Use:   "simulate",
		Short: "Say where the scheduler would place pods, and which devices they would get",
		Long: `Say where the scheduler would place pods, and which devices they would get.

What there is are the Nodes, DeviceClasses, ResourceSlices, ResourceClaims,
ResourceClaimTemplates, DeviceTaintRules and Pods of the cluster that kubectl
talks to, or of files; nothing is changed there. Pods that have a node run there;
those without are placed one after the other, with the scheduler's own
allocator: those of files in the order in which they are read, those of a
cluster by priority and age. What one gets is not there for the next. A pod goes
to the first feasible node by name, or to the one with the fewest (spread) or
most (pack) pods.`,
		Example: c.examples(`
# where will the pods go that wait in the cluster?
simulate
# would the pods of a manifest fit into the cluster as it is now?
simulate --from-cluster -f pods.yaml
# the same without a cluster
simulate -f nodes.yaml -f slices.yaml -f classes.yaml -f pods.yaml
# every node that each pod could have, for a program
simulate -f cluster/ --all-nodes -o json
# a cluster where shares of devices are switched off
simulate -f cluster/ --feature-gates DRAConsumableCapacity=false`),
		Args: c.flagsOnly,
		RunE: func(command *cobra.Command, _ []string) error { return s.run(command.Context()) },
	}
	s.from.addTo(command)
	addGates(command, &s.gates)
	flags := command.Flags()
	flags.StringVar(&s.node, "node", "", "`name` of the only node to consider (default: any)")
	flags.BoolVar(&s.allNodes, "all-nodes", false, "list every feasible node of each pod")
	s.strategy.addTo(command, "strategy", "", "which of several feasible nodes a pod goes to")
	s.output.addTo(command, "output", "o", "how to say it")
	return command
}

// addGates gives a command the flag for how the cluster's scheduler is set up.
func addGates(command *cobra.Command, gates *string) {
	command.Flags().StringVar(gates, "feature-gates", "", "`list` of the scheduler's feature gates that differ from those of the cluster's API server, "+
		"or without a cluster from those of Kubernetes 1.37, such as DRAConsumableCapacity=false")
}

// load makes the cluster of a source; gates is the value of --feature-gates.
func (c cli) load(ctx context.Context, from *source, gates string) (*simulate.Cluster, *snapshot.Snapshot, error) {
	if _, err := simulate.ParseGates(gates, simulate.DefaultGates()); err != nil {
		return nil, nil, fmt.Errorf("--feature-gates: %w", err)
	}
	objects, err := from.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	known, err := from.Gates(ctx)
	if err != nil {
		c.note("feature gates are taken to be those of Kubernetes 1.37, --feature-gates says otherwise: %s", oneLine(err.Error()))
	}
	parsed, err := simulate.ParseGates(gates, simulate.DefaultGates().Observed(known))
	if err != nil {
		return nil, nil, fmt.Errorf("--feature-gates: %w", err)
	}
	cluster, err := simulate.New(objects, parsed)
	return cluster, objects, err
}

func (s *simulation) run(ctx context.Context) error {
	cluster, objects, err := s.load(ctx, &s.from, s.gates)
	if err != nil {
		return err
	}
	if s.node != "" && objects.Node(s.node) == nil {
		return fmt.Errorf("--node %q: there is no such Node in %s", s.node, &s.from)
	}
	waiting := objects.Waiting()
	s.warn(objects, waiting)
	options := simulate.Options{Node: s.node, AllNodes: s.allNodes, Strategy: simulate.Strategy(s.strategy.value)}
	progress := s.progress("pods placed")
	options.Progress = progress.at
	result, err := cluster.Run(ctx, waiting, options)
	progress.done()
	if err != nil {
		return &failure{err}
	}
	if err := write(s.stdout, s.output.value, result, func() string { return placements(result) }); err != nil {
		return &failure{fmt.Errorf("write placements: %w", err)}
	}
	return s.verdict(result)
}

// verdict is an error if a pod has no node; one on which the scheduler gives up
// is not a matter of room.
func (c cli) verdict(result simulate.Result) error {
	if len(result.Aborted) > 0 {
		return aborted(result.Aborted[0])
	}
	if unplaced := len(result.Unschedulable); unplaced > 0 {
		return &failure{&hintedError{
			fmt.Errorf("%d of %d pods have no node", unplaced, unplaced+len(result.Pods)),
			[]string{c.name + " explain pod NAME says more about one"},
		}}
	}
	return nil
}

// aborted is the error with what helps.
func aborted(err *simulate.AbortError) error {
	if hint := err.Hint(); hint != "" {
		return &hintedError{err, []string{hint}}
	}
	return err
}

// warn notes what may make the scheduler decide otherwise.
func (c cli) warn(objects *snapshot.Snapshot, pods []*corev1.Pod) {
	if kinds := objects.IgnoredKinds(); len(kinds) > 0 {
		c.note("nothing depends on these objects, they are ignored: %s", strings.Join(kinds, ", "))
	}
	unsimulated := make(map[string]int)
	for _, pod := range pods {
		for _, field := range simulate.Unsimulated(pod) {
			unsimulated[field]++
		}
	}
	for _, field := range slices.Sorted(maps.Keys(unsimulated)) {
		c.note("%s is not simulated, %d pods have it", field, unsimulated[field])
	}
}
