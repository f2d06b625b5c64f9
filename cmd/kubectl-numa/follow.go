package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
)

// settle is the time for which changes are collected before they are shown. One event
// of a pod often causes several changes.
const settle = 300 * time.Millisecond

// canFollow reports whether the objects can change while the command runs. A cluster can
// change; files are read once.
func (s *source) canFollow() bool { return s.live() && len(s.files) == 0 }

// follow calls show with the objects of the cluster, and calls it again after changes.
// It ends when ctx ends or show returns an error. If the cluster cannot be watched for
// some time, follow calls behind with the reason.
func (s *source) follow(ctx context.Context, show func(*snapshot.Snapshot) error, behind func(error)) error {
	if !s.canFollow() {
		return errors.New("want a cluster without files: only a cluster can be watched")
	}
	// List first: an error of a list says in one line what the user is not allowed to
	// read.
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
		if !waitToSettle(ctx) {
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

// waitToSettle waits until the changes have settled. It returns false if ctx ends first.
func waitToSettle(ctx context.Context) bool {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
