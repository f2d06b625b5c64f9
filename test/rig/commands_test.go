package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/cluster"
	"github.com/dra-driver-numa/dra-driver-numa/test/rig/guest"
)

func TestOptionsOfUp(t *testing.T) {
	for _, row := range []struct {
		args []string
		want guest.Guest
	}{
		{nil, guest.Guest{Init: guest.Busybox, CRI: guest.Containerd, Layout: guest.Common}},
		{[]string{"-init", "busybox"}, guest.Guest{Init: guest.Busybox, CRI: guest.Containerd, Layout: guest.Common}},
		{[]string{"-init", "systemd", "-kernel", "7.2"}, guest.Guest{Init: guest.Systemd, CRI: guest.Containerd, Layout: guest.Common}},
		{[]string{"-cri", "crio"}, guest.Guest{Init: guest.Busybox, CRI: guest.CRIO, Layout: guest.Common}},
		{[]string{"-layout", "sealed"}, guest.Guest{Init: guest.Busybox, CRI: guest.Containerd, Layout: guest.Sealed}},
		{[]string{"-layout", "selinux", "-init", "systemd"}, guest.Guest{Init: guest.Systemd, CRI: guest.Containerd, Layout: guest.SELinux}},
	} {
		o, err := parseOptions("up", row.args)
		if err != nil || o.guest != row.want {
			t.Errorf("up %q: %q, %v; want %q", row.args, o.guest, err, row.want)
		}
	}
	for _, cri := range []string{"", "cri-o", "docker"} {
		if _, err := parseOptions("up", []string{"-cri", cri}); err == nil || !strings.Contains(err.Error(), "allowed are containerd, crio") {
			t.Errorf("up -cri %q: %v, want an error that names what is allowed", cri, err)
		}
	}
	for flags, want := range map[string]string{
		"-layout=open":                            "allowed are common, sealed, selinux",
		"-layout=sealed -cri=crio":                "a node of this layout has containerd",
		"-layout=selinux -init=systemd -cri=crio": "a node of this layout has containerd",
		"-layout=selinux":                         "it is systemd that loads the policy",
	} {
		if _, err := parseOptions("up", strings.Fields(flags)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("up %s: %v, want %q", flags, err, want)
		}
	}
	for _, init := range []string{"", "openrc", "Systemd", "systemd,busybox"} {
		if _, err := parseOptions("up", []string{"-init", init}); err == nil || !strings.Contains(err.Error(), "allowed are busybox, systemd") {
			t.Errorf("up -init %q: %v, want an error that names what is allowed", init, err)
		}
	}
	for _, version := range []string{"", "1.35", "v1.36", "1.36.3"} {
		if _, err := parseOptions("up", []string{"-kubernetes", version}); err == nil || !strings.Contains(err.Error(), "allowed are 1.36, 1.37") {
			t.Errorf("up -kubernetes %q: %v, want an error that names what is allowed", version, err)
		}
	}
	if _, err := parseOptions("exec", []string{"-init", "systemd", "--", "true"}); err == nil {
		t.Error("exec takes -init, which is of up only")
	}
}

// After a restart of the machine, the folder of a cluster is there, and its processes are
// not.
func TestUpRemovesWhatARestartLeft(t *testing.T) {
	o := options{home: t.TempDir(), name: "demo"}
	if err := removeRemains(o); err != nil {
		t.Errorf("no folder: %v", err)
	}
	r, err := cluster.New(o.dir(), 0, 100, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := removeRemains(o); err == nil {
		t.Error("a cluster that is about to start was removed")
	}
	record := func(process int) {
		t.Helper()
		pids := r.Path("pids")
		if err := os.MkdirAll(pids, 0o700); err != nil {
			t.Fatal(err)
		}
		stat, err := os.ReadFile("/proc/self/stat")
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d %s\n", process, strings.Fields(string(stat))[21])
		if err := os.WriteFile(filepath.Join(pids, "00-etcd"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	record(os.Getpid())
	if err := removeRemains(o); err == nil {
		t.Error("a cluster that runs was removed")
	}
	record(os.Getppid())
	if err := removeRemains(o); err != nil {
		t.Errorf("a process of another start: %v", err)
	}
	if _, err := os.Stat(o.dir()); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}
