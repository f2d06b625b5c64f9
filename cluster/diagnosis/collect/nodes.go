package collect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

const (
	// atOnce is how many nodes are asked at the same time. 500 nodes that do not answer
	// take 80 seconds.
	atOnce = 64
	// wholeTimeout limits how long all nodes together are asked for one thing.
	wholeTimeout = 3 * time.Minute
)

// errSilent is the error for a node that does not answer in time.
var errSilent = errors.New("the node does not answer")

// errWhole is the error for a node that was not asked.
var errWhole = fmt.Errorf("not asked: the other nodes took %s", wholeTimeout)

// askNodes asks all nodes, a few at the same time. If the user is not allowed to ask the
// first node, it asks no other node, and reports that once. A node that did not answer
// another question in time is not asked again.
func askNodes[T any](ctx context.Context, facts *diagnosis.Facts, nodes []string, component, setting string, ask func(ctx context.Context, node string) (T, error)) (answers map[string]T, lacking []diagnosis.Unread) {
	ctx, cancel := context.WithTimeoutCause(ctx, wholeTimeout, errWhole)
	defer cancel()
	silent := facts.Silent()
	list, errs := make([]T, len(nodes)), make([]error, len(nodes))
	one := func(i int) {
		list[i], errs[i] = inTime(ctx, func(ctx context.Context) (T, error) { return ask(ctx, nodes[i]) })
	}
	first := 0
	for first < len(nodes) && silent[nodes[first]] {
		first++
	}
	answers = make(map[string]T)
	if first < len(nodes) {
		if one(first); apierrors.IsForbidden(errs[first]) {
			return answers, []diagnosis.Unread{unread("", component, setting, errs[first])}
		}
	}
	inTurns(len(nodes), func(i int) {
		switch {
		case silent[nodes[i]]:
			errs[i] = fmt.Errorf("%w: it was not asked again", errSilent)
		case i != first:
			one(i)
		}
	})
	for i, node := range nodes {
		if errs[i] != nil {
			lacking = append(lacking, unread(node, component, setting, errs[i]))
			continue
		}
		answers[node] = list[i]
	}
	return answers, lacking
}

// inTime asks one node. The error is errSilent if the node does not answer in time.
func inTime[T any](ctx context.Context, ask func(context.Context) (T, error)) (answer T, err error) {
	if ctx.Err() != nil {
		return answer, context.Cause(ctx)
	}
	asking, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err = ask(asking)
	switch {
	case err != nil && ctx.Err() != nil:
		return answer, context.Cause(ctx)
	case err != nil && asking.Err() != nil:
		return answer, fmt.Errorf("%w within %s: %w", errSilent, requestTimeout, err)
	}
	return answer, err
}

// inTurns calls f for 0 to count-1, a few at the same time.
func inTurns(count int, f func(i int)) {
	var group sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i := range count {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			f(i)
		})
	}
	group.Wait()
}
