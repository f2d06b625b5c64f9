package trial

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// call is a request to the API server.
type call func(context.Context) error

// creator is what every typed client has.
type creator[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
}

func creation[T metav1.Object](client creator[T], object T) call {
	return func(ctx context.Context) error {
		if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
		return nil
	}
}

// client is of objects that can be deleted, too.
type client[T any] interface {
	creator[T]
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// atOnce is for pods whose node has no kubelet that would end them.
var atOnce = metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}

// object is something that a trial creates, and later deletes.
type object struct{ create, remove call }

func objectOf[T metav1.Object](client client[T], o T) object {
	return object{creation(client, o), func(ctx context.Context) error {
		if err := client.Delete(ctx, o.GetName(), atOnce); err != nil {
			return fmt.Errorf("delete %T %s: %w", o, o.GetName(), err)
		}
		return nil
	}}
}

// workers is how many requests are under way at a time.
const workers = 16

// parallel makes the calls, and returns the first error: then it makes no more of them.
func parallel(ctx context.Context, calls []call) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	queue := make(chan call)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for next := range queue {
				if err := next(ctx); err != nil {
					fail(err)
				}
			}
		})
	}
	for _, next := range calls {
		if ctx.Err() != nil {
			break
		}
		queue <- next
	}
	close(queue)
	group.Wait()
	return context.Cause(ctx)
}

// Prepare creates the nodes, after the controllers have made what pods need.
func (c *Cluster) Prepare(ctx context.Context) error {
	calls := []call{creation(c.Client.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: others}})}
	if err := parallel(ctx, calls); err != nil {
		return err
	}
	for began, left := time.Now(), []string{namespace, others}; len(left) > 0; {
		_, err := c.Client.CoreV1().ServiceAccounts(left[0]).Get(ctx, "default", metav1.GetOptions{})
		switch {
		case err == nil:
			left = left[1:]
		case !apierrors.IsNotFound(err) || time.Since(began) > c.Stall:
			return err
		default:
			time.Sleep(200 * time.Millisecond)
		}
	}
	calls = nil
	for _, name := range c.Nodes {
		calls = append(calls, creation(c.Client.CoreV1().Nodes(), shape.Node(name, c.Machine)))
	}
	return parallel(ctx, calls)
}
