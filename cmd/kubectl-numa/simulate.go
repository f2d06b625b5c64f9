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

// simulation is the command simulate with its flags.
type simulation struct {
	reading
	rules    rules
	node     string
	allNodes bool
	strategy *choice
}

func simulateCommand(c cli, command *cobra.Command) runner {
	s := simulation{
		reading:  c.reads(append(listFormats(), formatObjs)),
		strategy: newChoice(string(simulate.Scheduler), string(simulate.First), string(simulate.Spread), string(simulate.Pack)),
	}
	s.from.addTo(command)
	s.rules.addTo(command)
	flags := command.Flags()
	flags.StringVar(&s.node, "node", "", "`name` of the only node to consider (default: all nodes)")
	flags.BoolVar(&s.allNodes, "all-nodes", false, "list every feasible node of each pod")
	s.strategy.addTo(command, "strategy", "", "how to choose among several feasible nodes")
	s.from.scope.addNamespacesTo(command, "pods")
	s.from.scope.addSelectorTo(command, "pods")
	s.output.addTo(command)
	s.output.addSortTo(command, func() columns { return placementColumns })
	return withContext(s.run)
}

func (s *simulation) run(ctx context.Context) error {
	cluster, objects, err := s.load(ctx, &s.from, s.rules)
	if err != nil {
		return err
	}
	if s.node != "" && objects.Node(s.node) == nil {
		return fmt.Errorf("--node %q: there is no such Node in %s", s.node, &s.from)
	}
	waiting := objects.Waiting()
	options := simulate.Options{Node: s.node, AllNodes: s.allNodes, Strategy: simulate.Strategy(s.strategy.value)}
	progress := s.progress("pods placed")
	options.Progress = progress.at
	result, err := cluster.Run(ctx, waiting, options)
	progress.done()
	s.warnOf(objects, waiting, cluster.Unsimulated)
	if err != nil {
		return &failure{err}
	}
	s.warnOfChoices(result, waiting, cluster.Unsimulated)
	result = listed(result, objects, &s.from.scope)
	if asked := s.from.scope.String(); asked != "" && len(result.Pods)+len(result.Unschedulable) == 0 {
		s.note("no pod %s waits for a node", asked)
	}
	if err := s.print(document{
		what: "placements", kind: kindPlacements, value: result, scope: &s.from.scope,
		text: func(s style) string { return placementsText(s, result) },
		objs: func() document { return placedObjects(cluster, result) },
		names: func() (names []objectName) {
			for _, pod := range result.Pods {
				names = append(names, podName(pod.Pod))
			}
			for _, pod := range result.Unschedulable {
				names = append(names, podName(pod.Pod))
			}
			return names
		},
	}); err != nil {
		return err
	}
	return s.verdict(result)
}

// placedObjects is the result as objects, with which the next simulation goes on.
func placedObjects(cluster *simulate.Cluster, result simulate.Result) document {
	return objects("objects", cluster.Objects(result.Pods))
}

// listed returns the part of the result that is about the pods to list. All pods were
// placed, because what an earlier pod gets is not free for a later one.
func listed(result simulate.Result, objects *snapshot.Snapshot, s *scope) simulate.Result {
	leaveOut := func(pod string) bool {
		name := podName(pod)
		return !s.has(objects.Pod(name.namespace, name.name))
	}
	result.Pods = slices.DeleteFunc(result.Pods, func(p simulate.Placed) bool { return leaveOut(p.Pod) })
	result.Unschedulable = slices.DeleteFunc(result.Unschedulable, func(p simulate.Unschedulable) bool { return leaveOut(p.Pod) })
	result.Aborted = slices.DeleteFunc(result.Aborted, func(a *simulate.AbortError) bool { return leaveOut(a.Pod) })
	return result
}

// warnOfChoices prints notes about pods for which the scheduler may choose a node without
// the highest score. warn has already printed those about fields of the pods.
func (c cli) warnOfChoices(result simulate.Result, pods []*corev1.Pod, unsimulated func(*corev1.Pod) []string) {
	said := make(map[string]bool)
	for _, pod := range pods {
		for _, field := range unsimulated(pod) {
			said[field] = true
		}
	}
	unknown := make(map[string]int)
	sampled := 0
	for _, pod := range result.Pods {
		for _, text := range pod.Unknown {
			if !said[text] {
				unknown[text]++
			}
		}
		if pod.Scored > 0 {
			sampled++
		}
	}
	c.warnUnsimulated(unknown)
	if sampled > 0 {
		c.note("the scheduler scores only some of the feasible nodes, and may choose any of them; pods: %d", sampled)
	}
}

// warnUnsimulated prints a note for each thing, with the number of pods that use it.
func (c cli) warnUnsimulated(pods map[string]int) {
	for _, what := range slices.Sorted(maps.Keys(pods)) {
		c.note("%s is not simulated; pods that use it: %d", what, pods[what])
	}
}

// verdict returns an error if a pod has no node. If the scheduler gives up on a pod,
// the objects are wrong, and the error is a usage error.
func (c cli) verdict(result simulate.Result) error {
	if len(result.Aborted) > 0 {
		return withHint(result.Aborted[0])
	}
	if unplaced := len(result.Unschedulable); unplaced > 0 {
		return &failure{&hintedError{
			fmt.Errorf("%d of %d pods have no node", unplaced, unplaced+len(result.Pods)),
			[]string{"run " + c.name + " explain pod NAME to see why a pod does not fit"},
		}}
	}
	return nil
}

// withHint adds to an error what the user can change.
func withHint(err *simulate.AbortError) error {
	if hint := err.Hint(); hint != "" {
		return &hintedError{err, []string{hint}}
	}
	return err
}

// warn prints notes about objects and fields that the answer does not consider.
func (c cli) warn(objects *snapshot.Snapshot, pods []*corev1.Pod) {
	c.warnOf(objects, pods, simulate.Unsimulated)
}

// warnOf is warn with what is not simulated of a pod.
func (c cli) warnOf(objects *snapshot.Snapshot, pods []*corev1.Pod, of func(*corev1.Pod) []string) {
	if kinds := objects.IgnoredKinds(); len(kinds) > 0 {
		c.note("ignoring objects that do not change the answer: %s", strings.Join(kinds, ", "))
	}
	unsimulated := make(map[string]int)
	for _, pod := range pods {
		for _, field := range of(pod) {
			unsimulated[field]++
		}
	}
	c.warnUnsimulated(unsimulated)
}
