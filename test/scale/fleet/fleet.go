// Package fleet runs this driver's daemons of many nodes in a few processes, against a real
// API server. It measures what they ask of the API server, and how long another user waits
// meanwhile. The nodes are only objects, and nothing on this machine is changed.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// Fleet is the daemons of all nodes.
type Fleet struct {
	Config    *rest.Config // of an administrator, whose requests have no limit
	Folder    string       // empty; its path is at most 60 bytes long, as it will have sockets
	Machine   numa.Machine // of every node
	Nodes     []string
	Program   []string // that calls Serve, with arguments
	Processes int      // that the daemons are spread over
	Claims    int      // of each node, of shape.PodCPUs CPUs
	Proc      fs.FS
	APIServer int           // id of its process
	Stall     time.Duration // for how long no daemon may make progress before an error
	Progress  func(format string, args ...any)

	admin   kubernetes.Interface
	daemons *rest.Config
	others  kubernetes.Interface
	parts   []*remote
	claims  map[string][]Claim // by node
	slices  *slicesWatch
	work    []Work // of the phase that runs, if it is noted
}

// Namespace is that of the service accounts and of the claims, and Account the service account
// of the daemons.
const (
	Namespace = metav1.NamespaceDefault
	Account   = "daemons"
)

// Open creates the nodes and the two users, and starts the processes of the daemons.
func (f *Fleet) Open(ctx context.Context) (err error) {
	if f.admin, err = kubernetes.NewForConfig(f.Config); err != nil {
		return err
	}
	// Pods need that of their namespace. The controller that makes it may come later.
	if _, err := f.admin.CoreV1().ServiceAccounts(Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if f.daemons, err = f.user(ctx, Account); err != nil {
		return err
	}
	others, err := f.user(ctx, "others")
	if err != nil {
		return err
	}
	others.QPS = -1
	if f.others, err = kubernetes.NewForConfig(others); err != nil {
		return err
	}
	if err := f.startParts(ctx, f.daemons); err != nil {
		return err
	}
	err = f.each(ctx, f.Nodes, func(ctx context.Context, node string) error {
		_, err := f.admin.CoreV1().Nodes().Create(ctx, shape.Node(node, f.Machine), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	f.slices, err = watchSlices(ctx, f.admin)
	return err
}

// Close ends all daemons.
func (f *Fleet) Close() {
	for _, part := range f.parts {
		part.close()
	}
	f.parts = nil
	if f.slices != nil {
		f.slices.stop()
	}
}

// user creates a service account that may do everything, and returns its configuration.
// The API server's priority and fairness holds for it, and not for an administrator.
func (f *Fleet) user(ctx context.Context, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace}}
	if _, err := f.admin.CoreV1().ServiceAccounts(Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create service account %s: %w", name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scale-" + name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: Namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	if _, err := f.admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create cluster role binding %s: %w", binding.Name, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(24 * 3600))}}
	token, err := f.admin.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create token of service account %s: %w", name, err)
	}
	config := rest.AnonymousClientConfig(f.Config)
	config.BearerToken = token.Status.Token
	return config, nil
}

// workers is how many requests of the administrator are under way at a time.
const workers = 16

// each calls a function for each of the nodes, some at a time. It returns all errors.
func (f *Fleet) each(ctx context.Context, nodes []string, do func(ctx context.Context, node string) error) error {
	return each(nodes, workers, func(node string) error {
		if err := do(ctx, node); err != nil {
			return fmt.Errorf("%s: %w", node, err)
		}
		return nil
	})
}

// each calls a function for each of the items, so many at a time. It returns all errors.
func each[T any](items []T, workers int, do func(T) error) error {
	queue := make(chan T)
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for item := range queue {
				if err := do(item); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, item := range items {
		queue <- item
	}
	close(queue)
	group.Wait()
	return failed
}

// pollPeriod is how often the state of daemons and slices is looked at, in memory.
const pollPeriod = 20 * time.Millisecond

// wait waits until something is so for all items. It returns how long each took. An error
// says what one of the items lacks.
func wait[T any](ctx context.Context, items []T, began time.Time, stall time.Duration, done func(T) bool, lacks func(T) string) (took []time.Duration, err error) {
	left, progress := items, time.Now()
	for {
		var still []T
		for _, item := range left {
			if done(item) {
				took, progress = append(took, time.Since(began)), time.Now()
			} else {
				still = append(still, item)
			}
		}
		if left = still; len(left) == 0 {
			return took, nil
		}
		if time.Since(progress) > stall {
			return nil, fmt.Errorf("%d of %d daemons make no progress for %s: %s", len(left), len(items), stall, lacks(left[0]))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollPeriod):
		}
	}
}

// createClaims creates the claims of each node, and a pod for each, as the scheduler
// leaves them.
func (f *Fleet) createClaims(ctx context.Context) error {
	f.claims = make(map[string][]Claim)
	var mu sync.Mutex
	return f.each(ctx, f.Nodes, func(ctx context.Context, node string) error {
		for i := range f.Claims {
			claim, err := f.createClaim(ctx, node, i)
			if err != nil {
				return err
			}
			mu.Lock()
			f.claims[node] = append(f.claims[node], Claim{node, claim.Namespace, claim.Name, string(claim.UID)})
			mu.Unlock()
		}
		return nil
	})
}

func (f *Fleet) createClaim(ctx context.Context, node string, i int) (*resourceapi.ResourceClaim, error) {
	claims := f.admin.ResourceV1().ResourceClaims(Namespace)
	zone := f.Machine.Zones[i%len(f.Machine.Zones)]
	cpus := map[resourceapi.QualifiedName]resource.Quantity{deviceclasses.CapacityCPU: *resource.NewQuantity(shape.PodCPUs, resource.DecimalSI)}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, i)}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{
		Name: "cpus", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: shape.ZoneClass, Capacity: &resourceapi.CapacityRequirements{Requests: cpus}},
	}}
	claim, err := claims.Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	pod := shape.Shape{}.Pod(claim.Name, nil, "")
	pod.Spec.NodeName = node
	if pod, err = f.admin.CoreV1().Pods(Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{
			Request: "cpus", Driver: driver.Name, Pool: node, Device: fmt.Sprintf("numa-%d", zone.ID),
			ShareID: &claim.UID, ConsumedCapacity: cpus,
		}},
	}}
	return claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
}

// deleteSlices does what kubelets do that start.
func (f *Fleet) deleteSlices(ctx context.Context, node string) error {
	f.slices.ask(node)
	own := metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorNodeName + "=" + node}
	return f.admin.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, own)
}
