package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// watched is a watcher of a machine that is a folder.
func watched(t *testing.T) (w *watcher, dir string) {
	t.Helper()
	flags, pluginDir := fakeMachine(t)
	dir = strings.TrimPrefix(flags[1], "--machine-root=")
	o, err := parseFlags(cli.Call{Args: append(flags, "--reserved-cpus=0")}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	n, err := readNode(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(pluginDir, 0o755); err != nil {
		t.Fatal(err)
	}
	core, err := openDriver(o, n)
	if err != nil {
		t.Fatal(err)
	}
	return newWatcher(t.Context(), o, n, core, &kubeletplugin.Plugin{}, nil), dir
}

func TestMachineThatCannotBeReadStays(t *testing.T) {
	w, dir := watched(t)
	online := filepath.Join(dir, "sys/devices/system/cpu/online")
	look := func(text, wantOnline, wantErr string) {
		t.Helper()
		files.Write(t, online, text)
		err := w.lookAtMachine(t.Context())
		if got := w.core.Machine().Online.String(); got != wantOnline || (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("with %q online the core has CPUs %s, %v, want %s and error %q", text, got, err, wantOnline, wantErr)
		}
	}
	same := w.core.Machine()
	look("0-1\n", "0-1", "")
	if now := w.core.Machine(); &now.Cores[0] != &same.Cores[0] {
		t.Error("a machine that has not changed is read again")
	}
	look("x\n", "0-1", "cpu/online")
	look("x\n", "0-1", "cpu/online") // until it can be read
	w.told = time.Now()
	look("0\n", "0", "")
	if !w.told.IsZero() {
		t.Error("the plugin is not told at once, but when it is told that nothing has changed")
	}
	look("0-1\n", "0-1", "")
}

// The core may be unable to record a release, on a full disk for example. Here it has not
// recovered.
func TestThePluginIsToldWhatTheCoreCannotTake(t *testing.T) {
	w, _ := watched(t)
	dir := t.TempDir()
	var err error
	w.plugin, err = kubeletplugin.Start(t.Context(), w.core, kubeletplugin.Options{
		Client: fake.NewClientset(), PluginDir: dir, RegistryDir: t.TempDir(), CDIDir: t.TempDir(), State: files.Open(t, dir),
		Readiness: &kubeletplugin.Readiness{}, Fatal: func(err error) { t.Errorf("fatal: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.plugin.Stop)
	if err := w.lookAtPartitions(t.Context()); !errors.Is(err, driver.ErrNotRecovered) {
		t.Errorf("error %v, want %v", err, driver.ErrNotRecovered)
	}
	if w.plugin.Figures().Cgroups == nil {
		t.Error("the plugin was not told which cgroups there are")
	}
}

// What cannot be looked at is told once, not each second.
func TestProblemsAreNewsOnce(t *testing.T) {
	w := &watcher{problems: map[string]string{}}
	for i, row := range []struct {
		err  error
		news bool
	}{{fs.ErrNotExist, true}, {fs.ErrNotExist, false}, {fs.ErrPermission, true}, {nil, false}, {fs.ErrPermission, true}} {
		if got := w.isNews("machine", row.err); got != row.news {
			t.Errorf("look %d: %v is news: %t", i, row.err, got)
		}
	}
	if !w.isNews("partitions", fs.ErrPermission) {
		t.Error("the same of something else is no news")
	}
}

func TestHeldCPUsOfAHost(t *testing.T) {
	group := func(cpus, exclusive, state string) map[string]string {
		return map[string]string{"cpuset.cpus": cpus, "cpuset.cpus.exclusive": exclusive, "cpuset.cpus.partition": state, "cpuset.mems": ""}
	}
	cgroups := fstest.MapFS{"cgroup.controllers": {}}
	for name, files := range map[string]map[string]string{
		"a": group("2-3", "2-3", "root"), "b": group("4", "4", "isolated invalid (why)"),
	} {
		for file, text := range files {
			cgroups[name+"/"+file] = &fstest.MapFile{Data: []byte(text + "\n")}
		}
	}
	held, err := readHeld(cgroups)
	if err != nil || len(held) != 2 || held[0].Invalid != "" || held[1].Invalid != "why" || held[0].CPUs.String() != "2-3" {
		t.Errorf("held %v, %v", held, err)
	}
}
