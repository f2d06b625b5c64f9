package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/guest"
	"github.com/dra-driver-numa/dra-driver-numa/test/rig/topology"
)

const (
	diskSize  = "6G" // of a node's sparse root disk
	tokenFile = "etc/rig/token"
)

// Programs are the built files that go onto a node's disk.
type Programs struct {
	Bin        string   // folder of the cache with the container runtime, runc, …; plugins in cni/
	Kubernetes string   // folder of the cache with kubelet
	Images     []string // archives imported before kubelet starts
	Guest      guest.Guest
	System     string // folder with the unpacked packages of the Guest
	Policy     string // folder with its SELinux policy, if it has one
}

// makeDisk stages the root file system of a node and writes it as an ext4 image without
// mounting anything. It has a journal, as those of real nodes: without one, a reset while
// containerd wrote left a file system in which no container started.
func (r *Cluster) makeDisk(n Node, machine topology.Topology, p Programs) (disk string, err error) {
	root := r.Path("nodes", n.Name, "root")
	if err := r.stage(root, n, machine, p); err != nil {
		return "", fmt.Errorf("stage the disk of %s: %w", n.Name, err)
	}
	disk = r.Path("nodes", n.Name, "disk.img")
	mke2fs, err := exec.LookPath("mke2fs")
	if err != nil {
		mke2fs = "/usr/sbin/mke2fs"
	}
	cmd := exec.Command(mke2fs, "-q", "-t", "ext4", "-E", "root_owner=0:0,lazy_itable_init=1,lazy_journal_init=1", "-d", root, disk, diskSize)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return disk, os.RemoveAll(root)
}

func (r *Cluster) stage(root string, n Node, machine topology.Topology, p Programs) error {
	if err := copyTree(p.System, root); err != nil {
		return err
	}
	if p.Policy != "" {
		if err := copyTree(p.Policy, root); err != nil {
			return err
		}
	}
	for _, dir := range []string{
		"bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "opt/cni/bin", "etc/kubernetes", "images",
		"proc", "sys", "dev", "run", "tmp", "var/lib", "var/log", "var/tmp", "root",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("../run", filepath.Join(root, "var/run")); err != nil {
		return err
	}
	if err := stageGuest(root, p.Guest); err != nil {
		return err
	}
	if err := stagePrograms(root, p); err != nil {
		return err
	}
	return r.stageIdentity(root, n, machine)
}

// stageIdentity writes what makes a node differ from the others.
func (r *Cluster) stageIdentity(root string, n Node, machine topology.Topology) error {
	for from, to := range map[string]string{n.Name + ".kubeconfig": "kubelet.kubeconfig", "ca.crt": "ca.crt"} {
		if err := place(r.Path(from), filepath.Join(root, "etc/kubernetes", to)); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		tokenFile:                     r.Token,
		"etc/rig/node.env":            r.nodeEnv(n, machine),
		"etc/hostname":                n.Name + "\n",
		"etc/machine-id":              fmt.Sprintf("%032x\n", n.Subnet+1),
		"etc/cni/net.d/10-b.conflist": fmt.Sprintf(cniConfig, n.PodPrefix()),
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if name == tokenFile {
			mode = 0o600
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
}

// cniConfig puts a node's pods on a bridge of its own. Pods reach their node and, through
// its agent, the API server.
const cniConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
"ipam": {"type": "host-local", "ranges": [[{"subnet": "%s0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// nodeEnv is read by the node's init scripts.
func (r *Cluster) nodeEnv(n Node, machine topology.Topology) string {
	var pages []string
	for id, node := range machine.NumaNodes {
		for _, size := range topology.HugepageSizes {
			if count := node.Hugepages[size]; count > 0 {
				pages = append(pages, fmt.Sprintf("%d:%d:%d", id, topology.HugepageKiB(size), count))
			}
		}
	}
	return fmt.Sprintf("NODE=%s\nADDRESS=%s\nGATEWAY=%s\nSERVICE=%s\nAPISERVER=%s:%d\nHUGEPAGES='%s'\n",
		n.Name, n.Address(), n.Gateway(), serviceAddr, n.Gateway(), r.Ports.APIServer, strings.Join(pages, " "))
}

// stageGuest writes our scripts, units and configuration files; scripts are known by
// their first line.
func stageGuest(root string, g guest.Guest) error {
	files, err := g.Files()
	if err != nil {
		return err
	}
	for path, text := range files {
		to := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(string(text), "#!") {
			mode = 0o755
		}
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) { // a package's, linked from the cache
			return err
		}
		if err := os.WriteFile(to, text, mode); err != nil {
			return err
		}
	}
	return nil
}

// copyTree makes the folders, links and files below from also below to.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		switch d.Type() {
		case fs.ModeDir:
			return os.MkdirAll(target, 0o755)
		case fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		default:
			return place(path, target)
		}
	})
}

// runtimePrograms are those of a container runtime that the rig builds.
var runtimePrograms = map[guest.CRI][]string{
	guest.Containerd: {"containerd", "containerd-shim-runc-v2", "ctr"},
	guest.CRIO:       {"crio", "pinns"},
}

func stagePrograms(root string, p Programs) error {
	files := map[string]string{"/bin/busybox": "bin/busybox"}
	for _, name := range append([]string{"runc", "rig-agent"}, runtimePrograms[p.Guest.CRI]...) {
		files[filepath.Join(p.Bin, name)] = "usr/local/bin/" + name
	}
	kubelet, err := filepath.EvalSymlinks(filepath.Join(p.Kubernetes, "kubelet")) // it may be that of another version
	if err != nil {
		return err
	}
	files[kubelet] = "usr/local/bin/kubelet"
	for _, name := range []string{"bridge", "loopback", "host-local"} {
		files[filepath.Join(p.Bin, "cni", name)] = "opt/cni/bin/" + name
	}
	for _, archive := range p.Images {
		files[archive] = "images/" + filepath.Base(archive)
	}
	for from, to := range files {
		if err := place(from, filepath.Join(root, to)); err != nil {
			return err
		}
	}
	applets, err := exec.Command("/bin/busybox", "--list-full").Output()
	if err != nil {
		return err
	}
	for _, applet := range strings.Fields(string(applets)) {
		link := filepath.Join(root, applet)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return err
		}
		if err := os.Symlink("/bin/busybox", link); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}

// place links a file, or copies it where the folders are on different file systems.
func place(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}
