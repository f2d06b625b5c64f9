package kubeletplugin

import (
	"context"

	"k8s.io/client-go/util/workqueue"
)

// work calls do for every queued item until ctx ends. An item that do wants to repeat
// comes again, each time after a longer wait.
func work[T comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], do func(context.Context, T) (repeat bool)) {
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	for {
		item, shutdown := queue.Get()
		if shutdown {
			return
		}
		if do(ctx, item) {
			queue.AddRateLimited(item)
		} else {
			queue.Forget(item)
		}
		queue.Done(item)
	}
}

func newQueue[T comparable]() workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, lastRetry))
}
