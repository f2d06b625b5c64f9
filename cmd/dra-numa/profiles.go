package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
)

const (
	// labelsPause and longestLabelsPause bound the pauses between two requests for the labels
	// of the node, which grow: node feature discovery sets labels soon after a boot.
	labelsPause        = 30 * time.Second
	longestLabelsPause = time.Hour
	// restartPause is the shortest time between two restarts because of labels.
	restartPause = 10 * time.Minute
	// restartFile says when the daemon last ended because of labels, as in RFC 3339.
	restartFile = "labels-restart"
)

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
