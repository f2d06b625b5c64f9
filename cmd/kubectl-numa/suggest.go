package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/bundle"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/evict"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

func suggestEvictionsCommand(c cli, command *cobra.Command) runner {
	q := c.asks()
	pods := objectKind{"pod", "", []string{"po", "pods"}, false, func(objects *snapshot.Snapshot, namespace string) []string {
		return namesIn(objects.Waiting(), namespace)
	}}
	q.addTo(command)
	return q.takes(command, []objectKind{pods}, func(ctx context.Context, _, name string) error { return q.suggestEvictions(ctx, name) })
}

func (q *question) suggestEvictions(ctx context.Context, name string) error {
	name = q.locate(name)
	cluster, objects, err := q.load(ctx, &q.from, q.rules)
	if err != nil {
		return err
	}
	pod, err := q.pod(objects, name)
	switch {
	case err != nil:
		return err
	case pod.Spec.NodeName != "":
		return fmt.Errorf("pod %s/%s is already assigned to node %s, want a pod without a node", q.namespace, name, pod.Spec.NodeName)
	case notPlaced(pod) != "":
		return fmt.Errorf("pod %s/%s %s", q.namespace, name, notPlaced(pod))
	}
	if pod.Spec.Priority == nil && pod.Spec.PriorityClassName != "" {
		q.note("using priority 0: the pod has no spec.priority, which the API server fills in for the PriorityClass %s", pod.Spec.PriorityClassName)
	}
	var notes []string
	q.notes = &notes
	q.warnOf(objects, []*corev1.Pod{pod}, cluster.Unsimulated)
	q.addBudgets(ctx, objects)
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
	answer.Notes = notes
	if err := q.print(document{
		what: "evictions", kind: kindEvictions, value: answer, scope: &scope{namespace: q.namespace},
		text: func(s style) string { return evictionsText(s, answer) },
		names: func() (names []objectName) {
			for _, eviction := range answer.Evictions {
				names = append(names, podName(eviction.Pod))
			}
			return names
		},
	}); err != nil {
		return err
	}
	if answer.Node == "" {
		text := "no eviction helps"
		if answer.Stopped {
			text = "no eviction was found"
		}
		return &failure{&hintedError{errors.New(text), []string{"run " + q.name + " explain pod " + name + " to see why the pod does not fit"}}}
	}
	return nil
}

// maxProtected is the maximum number of pods that are named as left out.
const maxProtected = 5

// evictionsText returns the suggestion for people.
func evictionsText(s style, answer evict.Suggestion) string {
	text := fmt.Sprintf("%s: %s\n", message.OneLine(answer.Pod), message.OneLine(answer.Sentence))
	for _, note := range answer.Notes {
		text += "note: " + message.OneLine(note) + "\n"
	}
	for _, left := range answer.Protected[:min(len(answer.Protected), maxProtected)] {
		text += fmt.Sprintf("left out: %s: %s\n", message.OneLine(left.Pod), message.OneLine(left.Why))
	}
	if more := len(answer.Protected) - maxProtected; more > 0 {
		text += fmt.Sprintf("left out: %d more; -o json shows all of them\n", more)
	}
	if len(answer.Evictions) == 0 {
		return text
	}
	rows := [][]string{{"POD", "PRIORITY", "NODE", "CLAIMS"}}
	for _, v := range answer.Evictions {
		rows = append(rows, []string{v.Pod, strconv.Itoa(int(v.Priority)), v.Node, strings.Join(v.Claims, ", ")})
	}
	return text + "\n" + s.table(rows, 0)
}

// addBudgets adds the PodDisruptionBudgets. Files and bundles have them already. A user who
// may not read them still gets an answer, which says so.
func (q *question) addBudgets(ctx context.Context, objects *snapshot.Snapshot) {
	err := q.addRelated(objects, func(source live.Source) error { return source.AddBudgets(ctx, objects) })
	if facts := q.from.read; facts != nil {
		for _, missing := range facts.Missing {
			if missing.Setting == bundle.BudgetsSetting {
				err = errors.New(missing.Why)
			}
		}
	}
	if err != nil {
		q.note("the answer does not consider PodDisruptionBudgets: %s", message.OneLine(err.Error()))
	}
}
