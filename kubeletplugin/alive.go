package kubeletplugin

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

const (
	// stuckAfter is how long an operation may hold the driver's lock, and how old the last
	// look at the node may be. An operation takes milliseconds, and some seconds on a
	// very slow disk; the kubelet waits 45 s for it.
	stuckAfter = time.Minute
	// socketTimeout bounds the calls of the daemon's own sockets, which take a millisecond.
	// The chart has the kubelet wait 10 s for the answer of a probe. A node that has no
	// CPU time left must not lose its daemon, too.
	socketTimeout = 8 * time.Second
)

// The sockets, as the kubelet helper names them.
const (
	pluginSocket = "dra.sock"
	// RegistrarSocket is the one in the directory that all plugins of the kubelet share.
	RegistrarSocket = driver.Name + "-reg.sock"
)

// sockets are where the kubelet calls the plugin.
type sockets struct{ plugin, registrar ownSocket }

func socketsOf(options Options) sockets {
	return sockets{
		plugin:    ownSocket{path: filepath.Join(options.PluginDir, pluginSocket)},
		registrar: ownSocket{path: filepath.Join(options.RegistryDir, RegistrarSocket)},
	}
}

// looks knows when the last look at the node ended.
type looks struct {
	began time.Time    // when the plugin started
	last  atomic.Int64 // nanoseconds from then
}

func (l *looks) age() time.Duration { return time.Since(l.began) - time.Duration(l.last.Load()) }

// Looked says that a look at the node has ended, whether or not it could see everything.
// It must be called every few seconds, or the plugin counts as stuck.
func (p *Plugin) Looked() { p.looks.last.Store(int64(time.Since(p.looks.began))) }

// Alive returns an error if the plugin can serve the kubelet no more, and only a restart
// helps: an operation or a look at the node hangs in a disk or in the kernel, or the
// sockets do not answer. What fails, and is tried again, is no reason for a restart.
func (p *Plugin) Alive(ctx context.Context) error {
	if busy := p.driver.Busy(); busy > stuckAfter {
		return fmt.Errorf("an operation has held the driver's lock for %s, want at most %s", busy.Round(time.Second), stuckAfter)
	}
	if age := p.looks.age(); age > stuckAfter {
		return fmt.Errorf("the last look at the node ended %s ago, want at most %s", age.Round(time.Second), stuckAfter)
	}
	ctx, cancel := context.WithTimeout(ctx, socketTimeout)
	defer cancel()
	return p.sockets.call(ctx)
}

// call calls the plugin as the kubelet does. It prepares nothing.
func (s *sockets) call(ctx context.Context) error {
	err := s.registrar.call(func(connection *grpc.ClientConn) error {
		info, err := registerapi.NewRegistrationClient(connection).GetInfo(ctx, &registerapi.InfoRequest{})
		if err == nil && info.GetName() != driver.Name {
			err = fmt.Errorf("it is the socket of %q, want %q", info.GetName(), driver.Name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.plugin.call(func(connection *grpc.ClientConn) error {
		_, err := draapi.NewDRAPluginClient(connection).NodePrepareResources(ctx, &draapi.NodePrepareResourcesRequest{})
		return err
	})
}

func (s *sockets) close() {
	s.plugin.close()
	s.registrar.close()
}

// ownSocket is a socket of this daemon. Its connection costs much more than a call, so it
// stays until the file is another one: a socket whose file is gone still serves the
// connections that it has.
type ownSocket struct {
	path string

	mu         sync.Mutex
	file       fs.FileInfo      // of the socket to which the connection is
	connection *grpc.ClientConn // nil: there is none
}

func (s *ownSocket) call(call func(*grpc.ClientConn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.connect()
	if err == nil {
		err = call(s.connection)
	}
	if err != nil {
		s.disconnect()
		return fmt.Errorf("call %s: %w", s.path, err)
	}
	return nil
}

func (s *ownSocket) connect() error {
	file, err := os.Stat(s.path)
	if err != nil || s.connection != nil && os.SameFile(file, s.file) {
		return err
	}
	s.disconnect()
	s.file = file
	s.connection, err = grpc.NewClient("unix:"+s.path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return err
}

func (s *ownSocket) disconnect() {
	if s.connection != nil {
		_ = s.connection.Close() // all calls have ended
		s.connection = nil
	}
}

func (s *ownSocket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnect()
}
