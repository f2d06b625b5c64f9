// Package nri tells the container runtime, over its Node Resource Interface,
// which CPUs and NUMA nodes containers have: those with a claim the claim's,
// those without the node's shared pool where the kernel does not keep them off
// the claims' CPUs. It keeps the connection up, remembers what each container
// has, and decides nothing about CPUs: its Core does.
package nri

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// ErrNotConnected says that there is no runtime to tell. The next one that is
// connected to is told everything.
var ErrNotConnected = errors.New("container runtime is not connected over NRI")

// Core says who holds what. Its methods are called concurrently, and by the
// runtime in the way of a container's start: a runtime that waits 2 seconds
// drops the plugin and starts the container without it. So they must not wait
// for a disk.
type Core interface {
	// Pinned is what CDI devices give one container; false if none is of a grant.
	Pinned(cdiDeviceIDs []string) (driver.Pinned, bool)
	// Pool is the CPUs for containers without claims, and whether those must be
	// kept on them; the kernel does it otherwise.
	Pool() (pool cpuset.Set, restrict bool)
}

// Options says where the runtime is and what it is told.
type Options struct {
	Socket   string            // of the runtime; need not exist yet
	Core     Core              // who holds what
	NodeCPUs func() cpuset.Set // the CPUs that are online now
}

// Plugin is this node's NRI plugin. A node may have only one: a runtime that is
// told a container's CPUs by two does not start it.
type Plugin struct {
	options    Options
	narrowed   atomic.Bool // a container may have been kept on a pool
	updates    atomic.Uint64
	mu         sync.Mutex            // not held over a call of the runtime or the core
	session    *session              // nil: not connected
	containers map[string]*container // by ID: those that the runtime can update
}

// New returns a plugin that is not connected yet.
func New(options Options) *Plugin {
	return &Plugin{options: options, containers: map[string]*container{}}
}

// Connected reports whether a runtime is connected and has told its containers.
func (p *Plugin) Connected() bool { return p.connection() != nil }

// Updates is how many times a runtime was told to change a container that it
// had, since the start of the program. It does not count containers that are
// created, nor answers to somebody else's updates.
func (p *Plugin) Updates() uint64 { return p.updates.Load() }

// Refresh has the runtime change the containers that have not what they should
// have now, and returns when it has. It sends nothing if there are none. What
// failed is sent again by the next Refresh; the plugin calls one by itself then.
// If ctx ends first, the change goes on.
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

// shared is what the core says now of containers without a claim.
func (p *Plugin) shared() shared {
	pool, restrict := p.options.Core.Pool()
	if restrict {
		p.narrowed.Store(true)
		return shared{pool: pool, cpus: pool.String()}
	}
	if !p.narrowed.Load() {
		return shared{pool: pool}
	}
	return shared{pool: pool, cpus: p.options.NodeCPUs().String()}
}
