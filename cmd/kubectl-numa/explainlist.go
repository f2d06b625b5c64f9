package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/startup"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// explanationList has the answers about all objects of a kind.
type explanationList struct {
	Items []simulate.Explanation `json:"items"`
	// Notes and Unseen are about all answers.
	Notes  []string `json:"notes,omitempty"`
	Unseen []string `json:"unseen,omitempty"`
}

// queue is the pods that were placed on a cluster before others.
type queue struct {
	tried  int
	placed []simulate.Placed
}

// placeFirst places the pods that come before a pod. For the next pod of the same
// scheduler, it places only those that it has not placed yet.
func (q *question) placeFirst(ctx context.Context, cluster *simulate.Cluster, before []*corev1.Pod) ([]simulate.Placed, error) {
	if q.queues == nil {
		q.queues = make(map[*simulate.Cluster]*queue)
	}
	line := q.queues[cluster]
	if line == nil {
		line = &queue{}
		q.queues[cluster] = line
	}
	result, err := cluster.Run(ctx, before[line.tried:], simulate.Options{})
	if err != nil {
		return nil, err
	}
	line.tried, line.placed = len(before), append(line.placed, result.Pods...)
	return slices.Clone(line.placed), nil
}

// explainAll prints an answer for each object of a kind that the user asked for and that
// does not have what it needs.
func (q *question) explainAll(ctx context.Context, kind string, exitCode bool) error {
	scope := &q.from.scope
	if !scope.all {
		scope.namespace = q.from.namespace()
	}
	q.namespace, q.from.visible = scope.namespace, scope.namespace
	var notes []string
	q.notes = &notes
	objects, rules, err := q.read(ctx, &q.from, q.rules)
	if err != nil {
		return err
	}
	list := explanationList{Items: []simulate.Explanation{}, Unseen: objects.UnseenKinds()}
	explain := q.explainClaims
	if kind == "pod" {
		explain = q.explainPods
		if slices.ContainsFunc(objects.Pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && scope.has(pod) }) {
			q.addEvents(ctx, objects, "Pod", "")
		}
	}
	list.Notes, notes = notes, nil
	err = explain(ctx, objects, rules, func(answer simulate.Explanation) {
		answer.Notes = append(answer.Notes, notes...)
		notes = nil
		list.Items = append(list.Items, answer)
	})
	if err != nil {
		return err
	}
	err = q.print(document{
		what: "explanations", kind: kindExplanations, value: list, scope: scope,
		text: func(s style) string { return explanationsText(s, kind, scope, list) },
		names: func() (names []objectName) {
			for _, answer := range list.Items {
				names = append(names, explainedName(answer))
			}
			return names
		},
	})
	if err != nil || !exitCode {
		return err
	}
	return allBlockedError(kind, list.Items)
}

// explainPods explains the pods that have no node, and those that something keeps from
// starting on their node.
func (q *question) explainPods(ctx context.Context, objects *snapshot.Snapshot, rules simulate.Rules, add func(simulate.Explanation)) error {
	clusters := make(map[string]*simulate.Cluster) // each scheduler places its own pods first
	progress := q.progress("pods explained")
	defer progress.done()
	for i, pod := range objects.Pods {
		progress.at(i, len(objects.Pods))
		if !q.from.scope.has(pod) || snapshot.Finished(pod) || pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" && startup.Runs(pod) {
			continue
		}
		cluster := clusters[pod.Spec.SchedulerName]
		if cluster == nil && pod.Spec.NodeName == "" {
			var err error
			if cluster, err = simulate.New(objects, rules); err != nil {
				return err
			}
			clusters[pod.Spec.SchedulerName] = cluster
		}
		q.namespace = pod.Namespace
		answer, err := q.explainPod(ctx, cluster, objects, pod)
		if err != nil {
			return err
		}
		if pod.Spec.NodeName == "" || answer.Blocked {
			add(answer)
		}
	}
	return nil
}

// explainClaims explains the claims that are not allocated.
func (q *question) explainClaims(ctx context.Context, objects *snapshot.Snapshot, rules simulate.Rules, add func(simulate.Explanation)) error {
	cluster, err := simulate.New(objects, rules)
	if err != nil {
		return err
	}
	for _, claim := range objects.Claims {
		if !q.from.scope.has(claim) || claim.Status.Allocation != nil || claim.DeletionTimestamp != nil {
			continue
		}
		q.namespace = claim.Namespace
		answer, err := q.explainClaim(ctx, cluster, objects, claim.Name)
		if err != nil {
			return err
		}
		add(answer)
	}
	return nil
}

// answerColumns are the columns of a list of answers, behind that of the object.
const answerColumns columns = "ANSWER,FIRST OBSTACLE,HINTS"

// explanationsText returns a row for each answer.
func explanationsText(s style, kind string, asked *scope, list explanationList) string {
	var text string
	rows := [][]string{append([]string{strings.ToUpper(kind)}, answerColumns.headers()...)}
	var notes []string
	for _, answer := range list.Items {
		obstacle := "-"
		if len(answer.Nodes) > 0 && !answer.Nodes[0].Feasible {
			obstacle = answer.Nodes[0].Node + ": " + answer.Nodes[0].Sentence
		}
		hints := "-"
		if len(answer.Hints) > 0 {
			hints = strings.Join(answer.Hints, "; ")
		}
		rows = append(rows, []string{answer.Pod + answer.Claim, answer.Sentence, obstacle, hints})
		notes = append(notes, answer.Notes...)
	}
	switch {
	case len(list.Items) > 0:
		text = s.table(rows, 1)
	case kind == "pod":
		text = message.OneLine("no pod "+asked.String()+" waits for a node or is kept from starting") + "\n"
	default:
		text = message.OneLine("no claim "+asked.String()+" waits for its devices") + "\n"
	}
	var said []string
	for _, note := range append(slices.Clone(list.Notes), notes...) {
		if !slices.Contains(said, note) {
			said = append(said, note)
			text += "note: " + message.OneLine(note) + "\n"
		}
	}
	return text + unseenText(list.Unseen)
}

// allBlockedError returns an error for --exit-code.
func allBlockedError(kind string, list []simulate.Explanation) error {
	blocked := 0
	for _, answer := range list {
		if obstacle := answer.GivesUp(); obstacle != nil {
			return errors.New(subject(answer) + ": " + obstacle.Sentence)
		}
		if answer.Blocked {
			blocked++
		}
	}
	if blocked == 0 {
		return nil
	}
	return &failure{fmt.Errorf("%d of %d %ss have an obstacle", blocked, len(list), kind)}
}
