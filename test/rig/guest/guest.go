// Package guest is what a virtual node's disk holds beside the built programs and
// Debian's packages: init scripts, units and configuration files. It decides nothing but
// their text.
package guest

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

// InitramfsInit is PID 1 until the root disk is mounted.
//
//go:embed initramfs-init
var InitramfsInit []byte

// Below root, what every node has; below the folder with the name of an init, of a
// container runtime, of both, or of a layout, what only their nodes have. Every file is a
// template (text/template) over the Guest. Scripts are executable; an embedded file has no
// mode, so they are known by their first line.
//
//go:embed all:root all:busybox all:systemd all:containerd all:containerd-systemd all:crio all:crio-systemd all:selinux
var files embed.FS

// Guest says in which way the disks of a cluster's nodes differ from those of others.
type Guest struct {
	Init
	CRI
	Gates string // more feature gates of the kubelet, in the form of its flag: A=true,B=false
	Layout
}

// FeatureGates is what the kubelet's configuration has in featureGates. Tests kill containers
// more often than a node does; the gate for that has no other effect.
func (g Guest) FeatureGates() string {
	gates := "KubeletCrashLoopBackOffMax: true"
	for gate := range strings.SplitSeq(g.Gates, ",") {
		if name, value, ok := strings.Cut(gate, "="); ok {
			gates += ", " + name + ": " + value
		}
	}
	return gates
}

// Init is what runs as PID 1 of a node, and so decides who owns the tree of cgroups.
type Init string

// The inits that a node may have.
const (
	Busybox Init = "busybox" // small and quick; kubelet and runc write cgroups themselves
	Systemd Init = "systemd" // Debian's; it owns the cgroups, and kubelet and runc ask it for them
)

// Inits lists every Init in order.
func Inits() []Init { return []Init{Busybox, Systemd} }

// CgroupDriver is what kubelet calls the way to make cgroups under this init.
func (i Init) CgroupDriver() string {
	if i == Systemd {
		return "systemd"
	}
	return "cgroupfs"
}

// CRI is the container runtime of a node, which kubelet talks to by the Container Runtime
// Interface. The value is the name of its program, too.
type CRI string

// The container runtimes that a node may have.
const (
	Containerd CRI = "containerd"
	CRIO       CRI = "crio"
)

// CRIs lists every CRI in order.
func CRIs() []CRI { return []CRI{Containerd, CRIO} }

// Layout is where a node has its files, and what can be done with them.
type Layout string

// The layouts that a node may have.
const (
	Common Layout = "common" // as kubeadm and the packages of distributions have it
	// Sealed is all at once what distributions for containers do: /etc cannot be written, no
	// program of /var runs, the kubelet and containerd have other folders and sockets (those of
	// k0s and k3s), CDI is in /var/cdi, and the kubelet has drop-in files only. The API server
	// enforces the Pod Security level baseline, and wants a ResourceQuota for critical pods.
	Sealed Layout = "sealed"
	// SELinux is common, and the kernel enforces Debian's SELinux policy, with systemd and
	// containerd: containers run as container_t.
	SELinux Layout = "selinux"
)

// Layouts lists every Layout in order.
func Layouts() []Layout { return []Layout{Common, Sealed, SELinux} }

// Sealed reports whether the node is sealed.
func (l Layout) Sealed() bool { return l == Sealed }

// SELinux reports whether the node enforces SELinux.
func (l Layout) SELinux() bool { return l == SELinux }

// Parameters are what the layout wants of the kernel.
func (l Layout) Parameters() string {
	if l.SELinux() {
		return "security=selinux selinux=1"
	}
	return ""
}

// Socket is where kubelet finds the container runtime.
func (g Guest) Socket() string {
	if g.Sealed() {
		return "/run/k3s/containerd/containerd.sock"
	}
	return "/run/" + string(g.CRI) + "/" + string(g.CRI) + ".sock"
}

// The kubelet's configuration, as its file or as a drop-in file.
const (
	kubeletFile   = "var/lib/kubelet/config.yaml"
	kubeletDropIn = "etc/kubernetes/kubelet.conf.d/10-node.conf"
)

// KubeletFlags say where the kubelet has its files.
func (g Guest) KubeletFlags() string {
	if g.Sealed() {
		root := "/var/lib/k0s/kubelet"
		return "--config-dir=/" + path.Dir(kubeletDropIn) + " --root-dir=" + root + " --cert-dir=" + root + "/pki"
	}
	return "--config=/" + kubeletFile
}

// Runtimes are the OCI runtimes of every node, each the handler of a RuntimeClass. The
// first is what pods without one have: crun takes half as long as runc to start a pod. The
// last is a crun that ignores memory policies.
func (g Guest) Runtimes() []string { return []string{"crun", "runc", "crun-old"} }

// masked are the units of Debian's systemd that fail in a node or do nothing for one,
// having no modules, TPM, logins and disks of its own; every start of a program costs an
// emulated machine a good part of a second.
var masked = []string{
	"ldconfig.service", "modprobe@.service", "systemd-modules-load.service",
	"proc-sys-fs-binfmt_misc.automount", "run-lock.mount", "sys-fs-fuse-connections.mount", "sys-kernel-config.mount",
	"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "systemd-remount-fs.service",
	"systemd-tmpfiles-setup-dev-early.service", "systemd-tmpfiles-setup-dev.service", "systemd-tmpfiles-clean.timer",
	"systemd-journal-catalog-update.service", "systemd-journal-flush.service", "systemd-random-seed.service",
	"systemd-update-done.service", "systemd-ask-password-console.path",
}

// Files renders the files of a node's disk by their path below its root.
func (g Guest) Files() (map[string][]byte, error) {
	rendered := map[string][]byte{}
	for _, folder := range []string{"root", string(g.Init), string(g.CRI), string(g.CRI) + "-" + string(g.Init), string(g.Layout)} {
		err := fs.WalkDir(files, folder, func(name string, d fs.DirEntry, err error) error {
			if name == folder && errors.Is(err, fs.ErrNotExist) {
				return nil // a container runtime may have nothing of its own under an init, nor may a layout
			}
			if err != nil || d.IsDir() {
				return err
			}
			t, err := template.ParseFS(files, name)
			if err != nil {
				return err
			}
			var text bytes.Buffer
			err = t.Execute(&text, g)
			rendered[strings.TrimPrefix(name, folder+"/")] = text.Bytes()
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if g.Sealed() {
		rendered[kubeletDropIn] = rendered[kubeletFile]
		delete(rendered, kubeletFile)
	}
	if g.Init == Systemd {
		for _, unit := range masked { // systemd.unit(5): an empty unit file masks the one of the package
			rendered["etc/systemd/system/"+unit] = nil
		}
	}
	return rendered, nil
}
