package main

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/startup"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// workloadKinds returns the kinds of workloads that can be explained.
func workloadKinds() []string {
	return []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"}
}

// workloadGroup returns the API group of a kind of workload.
func workloadGroup(kind string) string {
	if kind == "Job" || kind == "CronJob" {
		return batchv1.GroupName
	}
	return appsv1.GroupName
}

// workloadAliases returns the plural and, if there is one, the short name of a kind of
// workload.
func workloadAliases(kind string) []string {
	short := map[string]string{"Deployment": "deploy", "ReplicaSet": "rs", "StatefulSet": "sts", "DaemonSet": "ds"}
	aliases := []string{strings.ToLower(kind) + "s"}
	if name, has := short[kind]; has {
		aliases = append(aliases, name)
	}
	return aliases
}

// explainWorkload explains why a controller has no pods, or why one of its pods does not
// run.
func (q *question) explainWorkload(ctx context.Context, cluster *simulate.Cluster, objects *snapshot.Snapshot, kind, name string) (simulate.Explanation, error) {
	err := q.addRelated(objects, func(source live.Source) error {
		return source.AddWorkload(ctx, objects, kind, q.namespace, name)
	})
	if err != nil {
		return simulate.Explanation{}, fmt.Errorf("read the cluster: %w", err)
	}
	object := objects.Workload(kind, q.namespace, name)
	if object == nil {
		return simulate.Explanation{}, fmt.Errorf("there is no %s %s/%s in %s", kind, q.namespace, name, &q.from)
	}
	q.addEvents(ctx, objects, kind, name)
	if kind == "Deployment" {
		q.addEvents(ctx, objects, "ReplicaSet", "")
	}
	workload, pod, made := startup.Workload(objects, object)
	answer := simulate.Explanation{Sentence: workload.Sentence, Nodes: []simulate.NodeExplanation{}}
	switch {
	case made:
		q.note("pod %s/%s does not exist: this is about a pod as the template makes it", pod.Namespace, pod.Name)
		answer, err = q.explainWaiting(ctx, cluster, objects, pod)
	case pod != nil:
		if pod.Spec.NodeName != "" {
			q.addEvents(ctx, objects, "Pod", pod.Name)
		}
		answer, err = q.explainPod(ctx, cluster, objects, pod)
	}
	answer.Workload = &workload
	answer.Blocked = answer.Blocked || len(workload.Obstacles) > 0
	return answer, err
}

// addRelated adds objects that commands do not read otherwise. Files and bundles have
// them already.
func (q *question) addRelated(objects *snapshot.Snapshot, add func(live.Source) error) error {
	if !q.from.live() {
		return nil
	}
	_, client, err := q.from.connect()
	if err != nil {
		return err
	}
	return add(live.Source{Client: client})
}

// addEvents adds the warnings about objects of a kind, and for pods the events that say
// which warnings are over. name "" means all objects. A user who may not read events still
// gets an answer.
func (q *question) addEvents(ctx context.Context, objects *snapshot.Snapshot, kind, name string) {
	err := q.addRelated(objects, func(source live.Source) error {
		if kind == "Pod" {
			return source.AddPodEvents(ctx, objects, q.namespace, name)
		}
		return source.AddWarnings(ctx, objects, kind, q.namespace, name)
	})
	if err != nil {
		q.note("the answer does not consider events: %s", message.OneLine(err.Error()))
	}
}
