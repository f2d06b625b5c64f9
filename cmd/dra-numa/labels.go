package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
)

const (
	// labelsTimeout bounds the request for the labels of the node. Without an answer the
	// daemon does not know what is reserved, so it exits, and is started again.
	labelsTimeout = 30 * time.Second
	// rememberedTimeout is for a node whose labels are known from an earlier start.
	rememberedTimeout = 5 * time.Second
	// labelsFile has the labels of the node as the API server last told them, in JSON.
	labelsFile = "labels.json"
)

// nodeLabels reads the labels of the node from the API server. If it cannot be reached,
// they are those of an earlier start: claims must end also while it is away.
func (o options) nodeLabels(ctx context.Context) (map[string]string, error) {
	file := filepath.Join(o.pluginDir(), labelsFile)
	before, unknown := readLabels(file)
	timeout := rememberedTimeout
	if unknown != nil {
		timeout = labelsTimeout
	}
	labels, err := o.askLabels(ctx, timeout)
	switch {
	case err == nil && o.readOnly:
		return labels, nil
	case err == nil:
		if err := rememberLabels(o.pluginDir(), labels); err != nil {
			klog.FromContext(ctx).Error(err, "The labels of the node are not remembered: without the API server, the daemon will not start", "file", file)
		}
		return labels, nil
	case refuses(err):
		return nil, err
	case errors.Is(unknown, fs.ErrNotExist):
		return nil, err
	case unknown != nil:
		return nil, errors.Join(err, unknown)
	}
	klog.FromContext(ctx).Error(err, "Using the labels that the node had at an earlier start", "file", file)
	return before, nil
}

// refuses reports whether the API server was asked, and will not answer differently.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

func (o options) askLabels(ctx context.Context, timeout time.Duration) (map[string]string, error) {
	client, err := newClient(o.kubeconfig, &kubeletplugin.APIRequests{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	node, err := client.CoreV1().Nodes().Get(ctx, o.nodeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read labels of node %s: %w", o.nodeName, err)
	}
	return node.Labels, nil
}

func readLabels(file string) (labels map[string]string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &labels); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return labels, nil
}

func rememberLabels(dir string, labels map[string]string) error {
	text, err := json.Marshal(labels)
	if err != nil {
		return err
	}
	state, err := openDir(dir, 0o750)
	if err != nil {
		return err
	}
	defer func() { _ = state.Close() }()
	if before, err := state.ReadFile(labelsFile); err == nil && string(before) == string(text) {
		return nil
	}
	return durable.Replace(state, labelsFile, text, 0o600)
}
