package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/rest"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// daemon is this driver's daemon of one node: its core, its plugin and its client. It
// reads a machine from memory instead of sysfs, and makes no partitions.
type daemon struct {
	node     string
	folder   string // its state outlives it there
	boot     string // id of the node's boot
	machine  numa.Machine
	config   *rest.Config              // of its service account
	requests kubeletplugin.APIRequests // in all of its lives
	trace    trace

	faulty atomic.Bool // the kernel has made the partitions of the claims invalid
	life   *life       // nil while it does not run
}

// life is from one start of a daemon to its next end.
type life struct {
	core        *driver.Driver
	plugin      *kubeletplugin.Plugin
	readiness   kubeletplugin.Readiness
	connections *connections // on its own: client-go keeps transports for ever, and with them what they dial
	roots       []*os.Root
	end         context.CancelFunc
	running     sync.WaitGroup
}

// The folders of a daemon, with short names: the path of a socket has 107 bytes at most.
const (
	pluginFolder   = "p"
	registryFolder = "r"
	cdiFolder      = "c"
)

// install makes the folders of a node, and says there which policies its kubelet has.
func (d *daemon) install() error {
	for _, name := range []string{pluginFolder, registryFolder, cdiFolder} {
		if err := os.MkdirAll(filepath.Join(d.folder, name), 0o755); err != nil {
			return err
		}
	}
	return d.reboot(d.boot)
}

// reboot gives the node another boot. The daemon must not run.
func (d *daemon) reboot(boot string) error {
	d.boot = boot
	return os.WriteFile(filepath.Join(d.folder, pluginFolder, keeperfile.PoliciesName), keeperfile.Policies{Boot: boot}.Encode(), 0o644)
}

// start does what the daemon does from its first request to the API server on.
func (d *daemon) start(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	l := &life{end: cancel, connections: new(connections)}
	d.life = l
	defer func() {
		if err != nil {
			d.stop()
			err = fmt.Errorf("start the daemon of %s: %w", d.node, err)
		}
	}()
	plugin, cdi := filepath.Join(d.folder, pluginFolder), filepath.Join(d.folder, cdiFolder)
	state, err := l.open(plugin)
	if err != nil {
		return err
	}
	specs, err := l.open(cdi)
	if err != nil {
		return err
	}
	config := rest.CopyConfig(d.config)
	config.Dial = l.connections.dial // of its own: client-go would share those of equal configurations
	config.Wrap(d.trace.of(ctx))
	client, err := kubeletplugin.NewClient(config, &d.requests)
	if err != nil {
		return err
	}
	l.core, err = driver.Open(d.machine, driver.Config{NodeName: d.node, BootID: d.boot, Exclusivity: driver.ExclusivityKernel}, state, specs)
	if err != nil {
		return err
	}
	claims, err := kubeletplugin.ReadClaims(ctx, client, l.core.Grants())
	if err != nil {
		return err
	}
	if _, err := l.core.Recover(claims, nil); err != nil {
		return err
	}
	askAgain, _ := kubeletplugin.Learn(ctx, client, d.node, l.core.SetGates, kubeletplugin.NodeAllocatable())
	l.running.Go(func() { askAgain(ctx) }) // ends at once if there was an answer
	l.plugin, err = kubeletplugin.Start(ctx, l.core, kubeletplugin.Options{
		Client: client, PluginDir: plugin, RegistryDir: filepath.Join(d.folder, registryFolder), CDIDir: cdi, State: state,
		Claims: claims, Readiness: &l.readiness, Fatal: func(error) {}, // a daemon that has failed does not become ready
	})
	if err != nil {
		return err
	}
	l.running.Go(func() { d.look(ctx, l) })
	return nil
}

func (l *life) open(folder string) (*os.Root, error) {
	root, err := os.OpenRoot(folder)
	if err == nil {
		l.roots = append(l.roots, root)
	}
	return root, err
}

// stop ends the daemon, and its connections. Its claims keep what they have.
func (d *daemon) stop() {
	l := d.life
	if l == nil {
		return
	}
	d.life = nil
	l.end()
	if l.plugin != nil {
		l.plugin.Stop()
	}
	l.running.Wait()
	l.connections.close()
	for _, root := range l.roots {
		_ = root.Close()
	}
}

// ready says whether the slices are published and read back.
func (d *daemon) ready() bool { return len(d.life.readiness.Problems()) == 0 }

// The periods of the daemon's looks at its node.
const (
	lookPeriod  = time.Second
	guardPeriod = 5 * time.Second
)

// look tells the plugin what the daemon would see, until ctx ends.
func (d *daemon) look(ctx context.Context, l *life) {
	every := time.NewTicker(lookPeriod)
	defer every.Stop()
	for guards := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if time.Since(guards) >= guardPeriod {
			guards = time.Now()
			l.plugin.LookAtGuards()
		}
		l.plugin.Observe(d.partitions(l.core.Grants()))
		l.plugin.Looked()
	}
}

// partitions are those of the claims' containers, which run as soon as a claim is prepared.
func (d *daemon) partitions(grants []ledger.Grant) (live []pin.Live) {
	fault := ""
	if d.faulty.Load() {
		fault = "cpuset.cpus.partition is root invalid"
	}
	for _, grant := range grants {
		for _, share := range grant.Shares {
			want := pin.Pinning{CPUs: share.CPUs(), Mems: share.Binds(), Partition: pin.PartitionRoot}
			live = append(live, pin.Live{
				Cgroup: "kubepods.slice/" + string(grant.UID), Want: want, Fault: fault,
				Claims: []pin.Claim{{ClaimRef: pin.ClaimRef{UID: string(grant.UID), Name: grant.Name}, Pinning: want}},
			})
		}
	}
	return live
}

// prepare asks the daemon for a claim as the kubelet does.
func (d *daemon) prepare(ctx context.Context, claim Claim) error {
	socket := "unix:" + filepath.Join(d.folder, pluginFolder, "dra.sock")
	connection, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	answer, err := drapb.NewDRAPluginClient(connection).NodePrepareResources(ctx, &drapb.NodePrepareResourcesRequest{
		Claims: []*drapb.Claim{{Namespace: claim.Namespace, Uid: claim.UID, Name: claim.Name}},
	})
	if err != nil {
		return err
	}
	if problem := answer.Claims[claim.UID].GetError(); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// connections are those of one client.
type connections struct {
	mu   sync.Mutex
	open []net.Conn
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err == nil {
		c.mu.Lock()
		c.open = append(c.open, conn)
		c.mu.Unlock()
	}
	return conn, err
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
}
