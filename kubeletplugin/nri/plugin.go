// Package nri tells the container runtime, over its Node Resource Interface (NRI),
// which CPUs and NUMA nodes each container has. A container with a claim has those of
// the claim. A container without a claim has the node's shared pool, where the kernel
// does not keep it off the CPUs of claims. The package keeps the connection up and
// remembers what each container has. It decides nothing about CPUs: its Core does.
package nri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// ErrNotConnected says that no runtime is connected. When the plugin is connected
// again, it updates all containers that need it.
var ErrNotConnected = errors.New("container runtime is not connected over NRI")

// Core knows which claims hold what. Its methods are called concurrently, and the
// runtime may call them while a container start waits. A runtime that has waited 2
// seconds drops the plugin and starts the container without it, so the methods must not
// wait for a disk.
type Core interface {
	// Pinned returns what CDI devices give one container, and false if none of them
	// belongs to a grant.
	Pinned(cdiDeviceIDs []string) (driver.Pinned, bool)
	// SharedPool returns the CPUs for containers without claims, and whether the runtime must
	// restrict these containers to them.
	SharedPool() (pool cpuset.Set, restrict bool)
	// Grantable returns the CPUs that claims may get, whoever has them now.
	Grantable() cpuset.Set
}

// Options says where the runtime is, and where the plugin learns what to tell it.
type Options struct {
	Socket string   // of the runtime; it need not exist yet
	Core   Core     // knows which claims hold what
	State  *os.Root // directory for the names of restricted containers; nil for none
}

// Plugin is this node's NRI plugin. A node may have only one: if two plugins set the
// CPUs of a container, the runtime does not start it.
type Plugin struct {
	options    Options
	narrowed   *narrowed
	refused    atomic.Bool // the last refresh failed
	updates    atomic.Uint64
	mu         sync.Mutex            // not held during a call to the runtime or the core
	session    *session              // nil: not connected
	containers map[string]*container // by ID; those that the runtime can update
}

// New returns a plugin that is not connected yet.
func New(options Options) *Plugin {
	return &Plugin{options: options, narrowed: loadNarrowed(options.State), containers: map[string]*container{}}
}

// Connected reports whether a runtime is connected and has reported its containers.
func (p *Plugin) Connected() bool { return p.connection() != nil }

// Updates returns how many updates of existing containers the plugin has sent to
// runtimes since the program started. It counts neither new containers nor answers to
// updates that another client asked for.
func (p *Plugin) Updates() uint64 { return p.updates.Load() }

// Refresh makes the runtime update the containers that do not have what they should
// have now, and waits until that is done. If there are none, it sends nothing. The next
// Refresh sends failed updates again, and the plugin starts one by itself. If ctx ends
// first, the update goes on.
func (p *Plugin) Refresh(ctx context.Context) error {
	s := p.connection()
	if s == nil {
		return ErrNotConnected
	}
	answer := make(chan error, 1)
	select {
	case s.requests <- answer:
	case <-s.lost:
		return ErrNotConnected
	case <-ctx.Done():
		return fmt.Errorf("wait for another update of containers: %w", ctx.Err())
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("update containers: %w", ctx.Err())
	}
}

func (p *Plugin) connection() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// shared returns what the core says now about containers without a claim.
func (p *Plugin) shared() shared {
	pool, restrict := p.options.Core.SharedPool()
	return shared{pool, restrict}
}

// Refused reports whether the runtime is connected and did not carry out an update of
// the last refresh. Containers may then run on CPUs of claims.
func (p *Plugin) Refused() bool { return p.Connected() && p.refused.Load() }
