// Package fleet runs this driver's daemons of many nodes in one process, against a real
// API server. It measures what they ask of the API server, and how long another user waits
// meanwhile. The nodes are only objects, and nothing on this machine is changed.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
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
	Claims    int // of each node, of shape.PodCPUs CPUs
	Proc      fs.FS
	APIServer int           // id of its process
	Stall     time.Duration // for how long no daemon may make progress before an error
	Progress  func(format string, args ...any)

	admin   kubernetes.Interface
	others  kubernetes.Interface
	daemons []*daemon
	claims  map[*daemon][]*resourceapi.ResourceClaim
	slices  *slicesWatch
}

// namespace is that of the service accounts and of the claims.
const namespace = metav1.NamespaceDefault

// Open creates the nodes and the two users, and prepares the folders of the daemons.
func (f *Fleet) Open(ctx context.Context) (err error) {
	if f.admin, err = kubernetes.NewForConfig(f.Config); err != nil {
		return err
	}
	daemons, err := f.user(ctx, "daemons")
	if err != nil {
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
	for i, name := range f.Nodes {
		d := &daemon{node: name, folder: filepath.Join(f.Folder, fmt.Sprint(i)), boot: "first", machine: f.Machine, config: daemons}
		if err := d.install(); err != nil {
			return err
		}
		f.daemons = append(f.daemons, d)
	}
	err = f.each(ctx, f.daemons, func(ctx context.Context, d *daemon) error {
		_, err := f.admin.CoreV1().Nodes().Create(ctx, shape.Node(d.node, f.Machine), metav1.CreateOptions{})
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
	f.stop(f.daemons)
	if f.slices != nil {
		f.slices.stop()
	}
}

// user creates a service account that may do everything, and returns its configuration.
// The API server's priority and fairness holds for it, and not for an administrator.
func (f *Fleet) user(ctx context.Context, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if _, err := f.admin.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create service account %s: %w", name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scale-" + name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	if _, err := f.admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create cluster role binding %s: %w", binding.Name, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(24 * 3600))}}
	token, err := f.admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create token of service account %s: %w", name, err)
	}
	config := rest.AnonymousClientConfig(f.Config)
	config.BearerToken = token.Status.Token
	return config, nil
}

// workers is how many requests of the administrator are under way at a time.
const workers = 16

// each calls a function for each of the daemons, some at a time. It returns all errors.
func (f *Fleet) each(ctx context.Context, daemons []*daemon, do func(context.Context, *daemon) error) error {
	queue := make(chan *daemon)
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for d := range queue {
				if err := do(ctx, d); err != nil {
					mu.Lock()
					failed = errors.Join(failed, fmt.Errorf("%s: %w", d.node, err))
					mu.Unlock()
				}
			}
		})
	}
	for _, d := range daemons {
		queue <- d
	}
	close(queue)
	group.Wait()
	return failed
}

// start starts the daemons at once, and waits until all of them are ready. It returns how
// long each took.
func (f *Fleet) start(ctx context.Context, daemons []*daemon) (took []time.Duration, err error) {
	began := time.Now()
	failed := make([]error, len(daemons))
	var group sync.WaitGroup
	for i, d := range daemons {
		group.Go(func() { failed[i] = d.start(ctx) })
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	return f.wait(ctx, daemons, began, (*daemon).ready)
}

// pollPeriod is how often the state of daemons is looked at, in memory.
const pollPeriod = 20 * time.Millisecond

// wait waits until something is so for all daemons. It returns how long each took.
func (f *Fleet) wait(ctx context.Context, daemons []*daemon, began time.Time, done func(*daemon) bool) (took []time.Duration, err error) {
	left, progress := daemons, time.Now()
	for {
		var still []*daemon
		for _, d := range left {
			if done(d) {
				took, progress = append(took, time.Since(began)), time.Now()
			} else {
				still = append(still, d)
			}
		}
		if left = still; len(left) == 0 {
			return took, nil
		}
		if time.Since(progress) > f.Stall {
			return nil, fmt.Errorf("%d of %d daemons, such as that of %s, make no progress for %s: %v",
				len(left), len(daemons), left[0].node, f.Stall, left[0].life.readiness.Problems())
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollPeriod):
		}
	}
}

func (f *Fleet) stop(daemons []*daemon) {
	var group sync.WaitGroup
	for _, d := range daemons {
		group.Go(d.stop)
	}
	group.Wait()
}

// createClaims creates the claims of each node, and a pod for each, as the scheduler
// leaves them.
func (f *Fleet) createClaims(ctx context.Context) error {
	f.claims = make(map[*daemon][]*resourceapi.ResourceClaim)
	var mu sync.Mutex
	return f.each(ctx, f.daemons, func(ctx context.Context, d *daemon) error {
		for i := range f.Claims {
			claim, err := f.createClaim(ctx, d, i)
			if err != nil {
				return err
			}
			mu.Lock()
			f.claims[d] = append(f.claims[d], claim)
			mu.Unlock()
		}
		return nil
	})
}

func (f *Fleet) createClaim(ctx context.Context, d *daemon, i int) (*resourceapi.ResourceClaim, error) {
	claims := f.admin.ResourceV1().ResourceClaims(namespace)
	zone := f.Machine.Zones[i%len(f.Machine.Zones)]
	cpus := map[resourceapi.QualifiedName]resource.Quantity{deviceclasses.CapacityCPU: *resource.NewQuantity(shape.PodCPUs, resource.DecimalSI)}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", d.node, i)}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{
		Name: "cpus", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: shape.ZoneClass, Capacity: &resourceapi.CapacityRequirements{Requests: cpus}},
	}}
	claim, err := claims.Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	pod := shape.Shape{}.Pod(claim.Name, nil, "")
	pod.Spec.NodeName = d.node
	if pod, err = f.admin.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{
			Request: "cpus", Driver: driver.Name, Pool: d.node, Device: fmt.Sprintf("numa-%d", zone.ID),
			ShareID: &claim.UID, ConsumedCapacity: cpus,
		}},
	}}
	return claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
}

// prepare has the daemons prepare the claims of their nodes. It returns how long each
// claim took.
func (f *Fleet) prepare(ctx context.Context, daemons []*daemon) (took []time.Duration, err error) {
	var mu sync.Mutex
	return took, f.each(ctx, daemons, func(ctx context.Context, d *daemon) error {
		for _, claim := range f.claims[d] {
			began := time.Now()
			if err := d.prepare(ctx, claim); err != nil {
				return fmt.Errorf("prepare claim %s: %w", claim.Name, err)
			}
			mu.Lock()
			took = append(took, time.Since(began))
			mu.Unlock()
		}
		return nil
	})
}

// deleteSlices does what kubelets do that start.
func (f *Fleet) deleteSlices(ctx context.Context, d *daemon) error {
	own := metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorNodeName + "=" + d.node}
	return f.admin.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, own)
}
