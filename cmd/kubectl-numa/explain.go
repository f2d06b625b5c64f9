package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/startup"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/lint"
)

func explainCommand(c cli, command *cobra.Command) runner {
	q := c.asks()
	var exitCode bool
	kinds := []objectKind{
		{"pod", "", []string{"po", "pods"}, true, func(objects *snapshot.Snapshot, namespace string) []string { return namesIn(objects.Pods, namespace) }},
		{"claim", resourceapi.GroupName, []string{"claims", "resourceclaim", "resourceclaims"}, true, func(objects *snapshot.Snapshot, namespace string) []string { return namesIn(objects.Claims, namespace) }},
	}
	for _, kind := range workloadKinds() {
		kinds = append(kinds, objectKind{strings.ToLower(kind), workloadGroup(kind), workloadAliases(kind), false, func(objects *snapshot.Snapshot, namespace string) []string {
			return namesIn(slices.DeleteFunc(slices.Clone(objects.Workloads), func(w *snapshot.Workload) bool { return w.Kind != kind }), namespace)
		}})
	}
	run := q.takes(command, kinds, func(ctx context.Context, kind, name string) error {
		if name == "" {
			return q.explainAll(ctx, kind, exitCode)
		}
		answer, err := q.explain(ctx, kind, name)
		if err != nil || !exitCode {
			return err
		}
		return blockedError(answer)
	})
	q.addTo(command)
	q.output.addSortTo(command, func() columns { return answerColumns })
	q.from.scope.addAllTo(command, "without a name, list the pods or claims of all namespaces")
	q.from.scope.addSelectorTo(command, "pods or claims")
	command.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 1 if something keeps the pod, the claim or the workload from getting a node or from starting")
	return run
}

// blockedError returns an error for --exit-code, with the exit code of simulate.
func blockedError(answer simulate.Explanation) error {
	if obstacle := answer.GivesUp(); obstacle != nil {
		return errors.New(obstacle.Sentence)
	}
	if answer.Blocked {
		return &failure{errors.New(subject(answer) + " has an obstacle")}
	}
	return nil
}

// subject names what the answer is about.
func subject(answer simulate.Explanation) string {
	switch {
	case answer.Workload != nil:
		return answer.Workload.Kind + " " + answer.Workload.Name
	case answer.Claim != "":
		return "ResourceClaim " + answer.Claim
	}
	return "Pod " + answer.Pod
}

// explainedName names what the answer is about.
func explainedName(answer simulate.Explanation) objectName {
	name := podName(answer.Pod + answer.Claim)
	switch {
	case answer.Workload != nil:
		name = podName(answer.Workload.Name)
		name.kind, name.group = answer.Workload.Kind, workloadGroup(answer.Workload.Kind)
	case answer.Claim != "":
		name.kind, name.group = "ResourceClaim", resourceapi.GroupName
	}
	return name
}

// explain prints the answer and returns it.
func (q *question) explain(ctx context.Context, kind, name string) (simulate.Explanation, error) {
	switch {
	case q.from.scope.labels.given():
		return simulate.Explanation{}, errLabelsOfOne
	case q.output.sortBy != "":
		return simulate.Explanation{}, errors.New("--sort-by is for a list: remove it, or the name")
	case q.from.scope.all:
		return simulate.Explanation{}, errors.New("--all-namespaces is for a list: remove it, or the name")
	}
	name = q.locate(name)
	q.from.visible = q.namespace
	var notes []string
	q.notes = &notes
	cluster, objects, err := q.load(ctx, &q.from, q.rules)
	var answer simulate.Explanation
	if err != nil {
		return answer, err
	}
	switch kind {
	case "pod":
		var pod *corev1.Pod
		if pod, err = q.pod(objects, name); err != nil {
			return answer, err
		}
		if pod.Spec.NodeName != "" {
			q.addEvents(ctx, objects, "Pod", name)
		}
		answer, err = q.explainPod(ctx, cluster, objects, pod)
	case "claim":
		answer, err = q.explainClaim(ctx, cluster, objects, name)
	default:
		i := slices.IndexFunc(workloadKinds(), func(known string) bool { return strings.EqualFold(known, kind) })
		answer, err = q.explainWorkload(ctx, cluster, objects, workloadKinds()[i], name)
	}
	if err != nil {
		return answer, err
	}
	answer.Notes = append(answer.Notes, notes...)
	answer.Unseen = objects.UnseenKinds()
	return answer, q.print(document{
		what: "explanation", kind: kindExplanation, value: answer,
		text:  func(style) string { return explanationText(answer) },
		names: func() []objectName { return []objectName{explainedName(answer)} },
	})
}

// pod returns the pod with this name.
func (q *question) pod(objects *snapshot.Snapshot, name string) (*corev1.Pod, error) {
	if pod := objects.Pod(q.namespace, name); pod != nil {
		return pod, nil
	}
	return nil, fmt.Errorf("there is no Pod %s/%s in %s", q.namespace, name, &q.from)
}

func (q *question) explainPod(ctx context.Context, cluster *simulate.Cluster, objects *snapshot.Snapshot, pod *corev1.Pod) (simulate.Explanation, error) {
	if pod.Spec.NodeName != "" {
		return q.withNames(startup.Pod(objects, pod), objects, pod)
	}
	if why := notPlaced(pod); why != "" {
		return simulate.Explanation{Pod: pod.Namespace + "/" + pod.Name, Nodes: []simulate.NodeExplanation{}, Sentence: why}, nil
	}
	return q.explainWaiting(ctx, cluster, objects, pod)
}

// notPlaced says why the scheduler does not look for a node for a pod without one, or returns
// "".
func notPlaced(pod *corev1.Pod) string {
	switch {
	case snapshot.Finished(pod):
		return fmt.Sprintf("has ended, so the scheduler does not place it: %s", pod.Status.Phase)
	case pod.DeletionTimestamp != nil:
		return "is being deleted, so the scheduler does not place it"
	}
	return ""
}

// explainWaiting places the pods that come before this pod, and explains what is then
// left for it.
func (q *question) explainWaiting(ctx context.Context, cluster *simulate.Cluster, objects *snapshot.Snapshot, pod *corev1.Pod) (simulate.Explanation, error) {
	before := q.earlier(objects, pod)
	placed, err := q.placeFirst(ctx, cluster, before)
	if err != nil {
		return simulate.Explanation{}, &failure{err}
	}
	assumed := make(map[string]bool)
	for _, p := range placed {
		assumed[p.Pod] = true
	}
	before = slices.DeleteFunc(before, func(earlier *corev1.Pod) bool { return !assumed[earlier.Namespace+"/"+earlier.Name] })
	q.warnOf(objects, append(before, pod), cluster.Unsimulated)
	answer, err := cluster.ExplainPod(ctx, pod)
	if err != nil {
		return answer, &failure{err}
	}
	answer.Assumed = placed
	if nominated := pod.Status.NominatedNodeName; nominated != "" {
		answer.Notes = append(answer.Notes, fmt.Sprintf("the pod is nominated for node %s: the scheduler keeps room there for it, but may choose another node", nominated))
	}
	addCacheHint(&answer)
	return q.withNames(answer, objects, pod)
}

// withNames adds a note for each container that names a request which its claim lacks. Such
// a pod fits, but the container starts without devices.
func (q *question) withNames(answer simulate.Explanation, objects *snapshot.Snapshot, pod *corev1.Pod) (simulate.Explanation, error) {
	if len(pod.Spec.ResourceClaims) == 0 {
		return answer, nil
	}
	if q.linter == nil {
		classes, err := deviceclasses.All()
		if err != nil {
			return answer, &failure{err}
		}
		q.linter = lint.New(newKnown(objects, classes))
	}
	for _, finding := range q.linter.Pod(pod) {
		if finding.Rule == lint.RequestNotInClaim {
			answer.Notes = append(answer.Notes, finding.Field+": "+finding.Message)
		}
	}
	return answer, nil
}

// cacheHint is for requests for level-3 caches where no node has a device of this kind.
const cacheHint = "no node divides its level-3 caches: set cache in the NodeConfig of nodes whose kernel and processor support it (resctrl)"

// addCacheHint adds cacheHint to an answer that needs it.
func addCacheHint(answer *simulate.Explanation) {
	absent := func(o funnel.Obstacle) bool {
		return o.Absent == funnel.Kind(deviceclasses.FullName(deviceclasses.AttributeKind), deviceclasses.KindCache)
	}
	for _, node := range answer.Nodes {
		if answer.Blocked && slices.ContainsFunc(node.Obstacles, absent) {
			answer.Hints = append(answer.Hints, cacheHint)
			return
		}
	}
}

// earlier returns the pods that the pod's scheduler tries to place before the pod. A pod
// that does not exist comes last.
func (q *question) earlier(objects *snapshot.Snapshot, pod *corev1.Pod) []*corev1.Pod {
	before := objects.Waiting()
	if i := slices.Index(before, pod); i >= 0 {
		before = before[:i]
	}
	own := slices.DeleteFunc(slices.Clone(before), func(earlier *corev1.Pod) bool { return earlier.Spec.SchedulerName != pod.Spec.SchedulerName })
	if others := len(before) - len(own); others > 0 {
		q.note("earlier pods of other schedulers are not placed first: %d", others)
	}
	return own
}

func (q *question) explainClaim(ctx context.Context, cluster *simulate.Cluster, objects *snapshot.Snapshot, name string) (simulate.Explanation, error) {
	claim := objects.Claim(q.namespace, name)
	if claim == nil {
		return simulate.Explanation{}, fmt.Errorf("there is no ResourceClaim %s/%s in %s", q.namespace, name, &q.from)
	}
	if claim.Status.Allocation != nil {
		return simulate.Explanation{Claim: q.namespace + "/" + name, Nodes: []simulate.NodeExplanation{}, Sentence: allocationText(claim)}, nil
	}
	answer, err := cluster.ExplainClaim(ctx, claim)
	if err != nil {
		return answer, &failure{err}
	}
	addCacheHint(&answer)
	return answer, nil
}

// allocationText says what an allocated claim holds.
func allocationText(claim *resourceapi.ResourceClaim) string {
	var parts []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		part := fmt.Sprintf("request %s has %s/%s/%s", result.Request, result.Driver, result.Pool, result.Device)
		if capacity := capacityText(result.ConsumedCapacity, nil); capacity != "" {
			part += " (" + capacity + ")"
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("is already allocated, and %d pods use it: %s", len(claim.Status.ReservedFor), strings.Join(parts, "; "))
}
