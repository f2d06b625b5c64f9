// Package cluster starts and stops a real cluster on one machine: a control plane on the
// host's loopback and nodes that are virtual machines with NUMA nodes of their choice. A
// rig is a folder: its keys, sockets, logs, disks and the process ids of everything it
// started. It knows nothing of the driver that is tested on it.
package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Cluster is one cluster. It is written to its folder before anything is started, so that
// Down always finds what to stop.
type Cluster struct {
	Dir   string `json:"-"` // absolute
	Ports Ports  `json:"ports"`
	Nodes []Node `json:"nodes"`
	Token string `json:"token"` // shown to the nodes' agents
	Speed int    `json:"speed"` // of the nodes' emulators in percent of what they could have; 0 is 100

	Log io.Writer `json:"-"`
}

// Ports are the TCP ports on 127.0.0.1 that the control plane listens on.
type Ports struct {
	Etcd, EtcdPeer, APIServer, Scheduler int
}

// Node is one virtual machine.
type Node struct {
	Name      string `json:"name"`
	Subnet    int    `json:"subnet"`    // third byte of its network 10.101.<subnet>.0/24, and of its pods' 10.244.<subnet>.0/24
	AgentPort int    `json:"agentPort"` // on 127.0.0.1, forwarded to the agent in the node
}

const (
	stateFile         = "rig.json"
	controlPlanePorts = 4           // those of Ports
	serviceAddr       = "10.96.0.1" // the first address of the service range: the kubernetes Service
)

// Address is the node's own address, as kubelet reports it; the host reaches it through
// the agent only.
func (n Node) Address() string { return fmt.Sprintf("10.101.%d.15", n.Subnet) }

// Gateway is the address at which the node reaches the host's loopback.
func (n Node) Gateway() string { return fmt.Sprintf("10.101.%d.2", n.Subnet) }

// PodPrefix is what the addresses of the node's pods begin with.
func (n Node) PodPrefix() string { return fmt.Sprintf("10.244.%d.", n.Subnet) }

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// CheckName says whether a rig may have this name; it becomes a folder.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("name %q: 1-32 lower-case letters, digits and inner dashes are allowed", name)
	}
	return nil
}

// Home returns the folder of everything, $RIG_DIR or one in the user's cache.
func Home() (string, error) {
	if dir := os.Getenv("RIG_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "dra-driver-numa", "rig"), err
}

// Dir returns the folder of the rig with this name.
func Dir(home, name string) string { return filepath.Join(home, "run", name) }

// New makes a rig's folder, keys and configuration. It refuses a folder in which a rig
// may still run.
func New(dir string, nodes, speed int, log io.Writer) (*Cluster, error) {
	if _, err := os.Stat(filepath.Join(dir, stateFile)); err == nil {
		return nil, fmt.Errorf("%s: a rig is there already, take it down first", dir)
	}
	if err := os.RemoveAll(dir); err != nil { // an interrupted New: nothing was started
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ports, err := freePorts(controlPlanePorts + nodes)
	if err != nil {
		return nil, err
	}
	token := make([]byte, 16)
	_, _ = rand.Read(token) // never fails
	r := &Cluster{Dir: dir, Ports: Ports{ports[0], ports[1], ports[2], ports[3]}, Token: hex.EncodeToString(token), Speed: speed, Log: log}
	for i := range nodes {
		r.Nodes = append(r.Nodes, Node{Name: fmt.Sprintf("numa-node-%d", i), Subnet: i, AgentPort: ports[controlPlanePorts+i]})
	}
	if err := r.writeKeys(); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	return r, os.WriteFile(r.Path(stateFile), text, 0o600)
}

// Load reads the rig in a folder; fs.ErrNotExist when there is none.
func Load(dir string, log io.Writer) (*Cluster, error) {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, err
	}
	r := &Cluster{Dir: dir, Log: log}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", dir, stateFile, err)
	}
	return r, nil
}

// Down stops every process that the rig started and removes its folder; logs go with it.
// A rig that is not there is down.
func Down(dir string, log io.Writer) error {
	entries, err := os.ReadDir(filepath.Join(dir, "pids"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r := &Cluster{Dir: dir, Log: log}
	// Last started, first stopped: nodes before the API server that they talk to, etcd at
	// the end.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(b.Name(), a.Name()) })
	for _, e := range entries {
		if err := r.stop(e.Name()); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// Node finds a node by name.
func (r *Cluster) Node(name string) (Node, error) {
	var names []string
	for _, n := range r.Nodes {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return Node{}, fmt.Errorf("node %q, the rig has %s", name, strings.Join(names, ", "))
}

// Path is a file in the rig's folder.
func (r *Cluster) Path(elem ...string) string {
	return filepath.Join(append([]string{r.Dir}, elem...)...)
}

func (r *Cluster) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Log, "rig: "+format+"\n", args...)
}

// freePorts asks the kernel for ports that nobody listens on now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all at the end, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// eventually tries until it works or time is up, and then tells the last error.
func eventually(within, every time.Duration, try func() error) error {
	deadline := time.Now().Add(within)
	for {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(every)
	}
}
