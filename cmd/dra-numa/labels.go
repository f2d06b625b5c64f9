package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
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
	// labelsPause and longestLabelsPause bound the pauses between two requests for the labels
	// of the node, which grow: node feature discovery sets labels soon after a boot.
	labelsPause        = 30 * time.Second
	longestLabelsPause = time.Hour
	// restartPause is the shortest time between two restarts because of labels.
	restartPause = 10 * time.Minute
	// restartFile says when the daemon last ended because of labels, as in RFC 3339.
	restartFile = "labels-restart"
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

// profiled is a NodeConfig with profiles, and the labels that have chosen among them.
type profiled struct {
	base   options // without the settings of the NodeConfig
	config deviceclasses.NodeConfig
	labels map[string]string
}

// differing returns the fields that have other values with other labels.
func (p *profiled) differing(labels map[string]string) []string {
	return p.config.Differing(p.labels, labels)
}

// follow asks for the labels of the node until they choose other settings, which this
// machine can have. Then it calls fatal, so that the daemon starts again with them. Ask
// bounds how long it takes.
func (p *profiled) follow(ctx context.Context, ask func(context.Context) (map[string]string, error), fatal func(error)) {
	told := ""
	for pause := labelsPause; ; pause = min(2*pause, longestLabelsPause) {
		if !sleep(ctx, wait.Jitter(pause, 0.2)) {
			return
		}
		labels, err := ask(ctx)
		if err != nil {
			continue // it was logged at the start, if there was no answer then
		}
		fields := p.differing(labels)
		if len(fields) == 0 {
			continue
		}
		if err := p.suits(labels); err != nil {
			if told != err.Error() {
				klog.FromContext(ctx).Error(err, "The labels of the node choose settings that it cannot have, keeping those of before", "fields", fields)
			}
			told = err.Error()
			continue
		}
		if left := p.restartIn(); left > 0 {
			pause = min(pause, left) / 2
			continue
		}
		if err := p.rememberRestart(); err != nil {
			klog.FromContext(ctx).Error(err, "The labels of the node choose other settings, which take effect with the next start", "fields", fields)
			continue
		}
		fatal(fmt.Errorf("the labels of the node choose other settings now (%s): starting again", strings.Join(fields, ", ")))
		return
	}
}

func sleep(ctx context.Context, pause time.Duration) (whole bool) {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// suits returns an error if the daemon would not start with these labels.
func (p *profiled) suits(labels map[string]string) error {
	o, err := p.base.with(p.config, labels)
	if err != nil {
		return err
	}
	_, err = readNode(o)
	return err
}

// restartIn returns how long the daemon must not end because of labels. Without a time that
// can be read, it did not end because of them. A clock that was set back ends the pause.
func (p *profiled) restartIn() time.Duration {
	state, err := openDir(p.base.pluginDir(), 0o750)
	if err != nil {
		return 0
	}
	defer func() { _ = state.Close() }() // opened for reading
	text, _ := state.ReadFile(restartFile)
	last, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if age := time.Since(last); err == nil && age >= 0 {
		return restartPause - age
	}
	return 0
}

func (p *profiled) rememberRestart() error {
	state, err := openDir(p.base.pluginDir(), 0o750)
	if err != nil {
		return err
	}
	err = durable.Replace(state, restartFile, []byte(time.Now().Format(time.RFC3339)+"\n"), 0o600)
	return errors.Join(err, state.Close())
}

// profilesState says what is wrong with the profiles of a node, whose daemon has started
// with the labels of its file.
func (p *profiled) profilesState() *nodestate.Profiles {
	state := &nodestate.Profiles{Overlapping: p.config.Overlapping(p.labels)}
	if before, err := readLabels(filepath.Join(p.base.pluginDir(), labelsFile)); err == nil {
		state.Stale = p.differing(before)
	}
	return state
}
