package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/bundle"
)

const (
	logLines = 2000    // of each container
	logBytes = 1 << 20 // of each container, at most
	// logsBytes limits the logs of a bundle. They are held in memory until they are written.
	logsBytes = 256 << 20
)

// nodeLogs are the logs of the driver's pods on one node.
type nodeLogs struct {
	pods    []*corev1.Pod
	logs    []bundle.Log
	missing []diagnosis.Unread
}

// logs returns the logs of the driver's containers, by node. All together take at most
// logsBytes and wholeTimeout.
func (c *collector) logs(ctx context.Context) (logs []bundle.Log) {
	ctx, cancel := context.WithTimeoutCause(ctx, wholeTimeout, errWhole)
	defer cancel()
	var nodes []*nodeLogs
	byName := make(map[string]*nodeLogs)
	for _, pod := range c.facts.Objects.Pods {
		if c.facts.Installation.Program(pod) == "" {
			continue
		}
		node := byName[pod.Spec.NodeName]
		if node == nil {
			node = &nodeLogs{}
			byName[pod.Spec.NodeName] = node
			nodes = append(nodes, node)
		}
		node.pods = append(node.pods, pod)
	}
	var read atomic.Int64 // bytes
	silent := c.facts.Silent()
	inTurns(len(nodes), func(i int) { c.nodeLogs(ctx, nodes[i], silent, &read) })
	for _, node := range nodes {
		logs = append(logs, node.logs...)
		c.facts.Missing = append(c.facts.Missing, node.missing...)
	}
	return logs
}

// nodeLogs reads the logs of one node. It asks no more if the node does not answer.
func (c *collector) nodeLogs(ctx context.Context, node *nodeLogs, silent map[string]bool, read *atomic.Int64) {
	isSilent := silent[node.pods[0].Spec.NodeName]
	for _, pod := range node.pods {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			for _, previous := range []bool{false, true} {
				if previous && status.RestartCount == 0 {
					continue
				}
				text, err := []byte(nil), fmt.Errorf("%w: it was not asked again", errSilent)
				switch {
				case isSilent:
				case read.Load() > logsBytes:
					err = fmt.Errorf("the logs of other containers take all of %d MiB", logsBytes>>20)
				default:
					text, err = inTime(ctx, func(ctx context.Context) ([]byte, error) { return c.log(ctx, pod, status.Name, previous) })
				}
				if err != nil {
					isSilent = isSilent || errors.Is(err, errSilent)
					node.missing = append(node.missing, unread(pod.Spec.NodeName, "Pod "+pod.Name, "log of "+status.Name, err))
					continue
				}
				read.Add(int64(len(text)))
				node.logs = append(node.logs, bundle.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: status.Name, Previous: previous, Text: text})
			}
		}
	}
}

// log returns the end of the log of a container, or of its last run before this one.
func (c *collector) log(ctx context.Context, pod *corev1.Pod, container string, previous bool) ([]byte, error) {
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: ptr.To[int64](logLines), LimitBytes: ptr.To[int64](logBytes)}
	return raw(ctx, c.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options))
}
