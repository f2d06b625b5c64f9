package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// askedState is what a node says, or why it says nothing.
type askedState struct {
	state *nodestate.State
	err   error
}

// stateReader returns a function that asks the driver's pod on a node, as drift does, also
// for what the kernel counts.
func (s *source) stateReader() (func(ctx context.Context, objects *snapshot.Snapshot, node string) (*nodestate.State, error), error) {
	config, client, err := s.connect()
	if err != nil {
		return nil, err
	}
	exec, states := collect.NewExec(config, client), newRecent[askedState]()
	ask := func(ctx context.Context, objects *snapshot.Snapshot, node string) (*nodestate.State, error) {
		facts, err := collect.Driver(ctx, client, objects, s.driver)
		if err != nil {
			return nil, fmt.Errorf("%w; set --driver-namespace if you may not list ClusterRoleBindings", err)
		}
		states, unread := collect.CacheStates(ctx, exec, facts, []string{node})
		if len(unread) > 0 {
			return nil, errors.New(unread[0].Why)
		}
		return states[node], nil
	}
	return func(ctx context.Context, objects *snapshot.Snapshot, node string) (*nodestate.State, error) {
		asked, err := states.of(ctx, node, func(ctx context.Context) (a askedState) {
			a.state, a.err = ask(ctx, objects, node)
			return a
		})
		return asked.state, errors.Join(err, asked.err)
	}, nil
}

// gatheredState returns the state of a node in a bundle.
func gatheredState(facts *diagnosis.Facts, node string) (*nodestate.State, error) {
	if state := facts.States[node]; state != nil {
		return state, nil
	}
	return nil, errors.New(whyNotGathered(facts, node).Why)
}
