package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
)

// settle is how long changes are collected before they are shown: what happens to
// a pod is several of them.
const settle = 300 * time.Millisecond

// canFollow says whether what the command is about can change under it: a cluster
// can; files are read once.
func (s *source) canFollow() bool { return s.live() && len(s.files) == 0 }

// follow calls show with what there is, and again after changes, until ctx ends or
// show returns an error. In between it calls behind when the cluster cannot be
// followed for now.
func (s *source) follow(ctx context.Context, show func(*snapshot.Snapshot) error, behind func(error)) error {
	if !s.canFollow() {
		return errors.New("only a cluster without files can be watched")
	}
	// Lists first: they say in a line what the user may not read.
	objects, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	if err := show(objects); err != nil {
		return err
	}
	_, client, err := s.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := live.Source{Client: client}.Watch(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch the cluster: %w", err)
	}
	defer func() { cancel(); watcher.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watcher.Failures():
			behind(err)
			continue
		case <-watcher.Changes():
		}
		if !settled(ctx) {
			return nil
		}
		objects, err := watcher.Snapshot(ctx)
		if err != nil {
			return fmt.Errorf("watch the cluster: %w", err)
		}
		if err := show(objects); err != nil {
			return err
		}
	}
}

// settled waits until a change has settled; it is false at the end.
func settled(ctx context.Context) bool {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
