package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// TestProbeInstallsTheHookAndTheDaemonDoesNot: the daemon cannot write in that folder.
func TestProbeInstallsTheHookAndTheDaemonDoesNot(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	hook := pluginDir + "-hook/numa-pin"
	if err := os.RemoveAll(pluginDir + "-hook"); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), flags, noEnv, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "find pin hook: stat "+hook+": no such file or directory: run dra-numa probe") {
		t.Errorf("without a hook: error %v", err)
	}
	for _, before := range []func() error{
		func() error { return nil },
		func() error { return os.Chmod(hook, 0o644) },
		func() error { return os.WriteFile(hook, []byte("#!old"), 0o755) },
	} {
		if err := before(); err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), append([]string{"probe"}, flags...), noEnv, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		if text, err := files.Read(t, hook), checkHook(hook); err != nil || text != "#!hook" {
			t.Errorf("hook %q, %v", text, err)
		}
	}
	if tree := files.Tree(t, pluginDir); tree[hookName] != "" {
		t.Errorf("the daemon's folder has the hook as well: %v", tree)
	}
}

// The runtime may be allowed to run programs only in other folders than the kubelet's.
func TestHookIsInTheFolderOfTheFlag(t *testing.T) {
	flags, _ := fakeMachine(t)
	dir := t.TempDir() + "/hook"
	if err := run(t.Context(), append([]string{"probe", "--hook-dir=" + dir}, flags...), noEnv, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if text := files.Read(t, dir+"/numa-pin"); text != "#!hook" {
		t.Errorf("hook %q", text)
	}
	o, err := parseFlags(cli.Call{Args: []string{"--node-name=n", "--hook-dir=" + dir}}, noEnv)
	if err != nil || o.hook().Path != dir+"/numa-pin" || o.hook().Dir != o.pluginDir() {
		t.Errorf("hook %+v, error %v", o.hook(), err)
	}
}

func TestHookThatNoRuntimeCouldRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "numa-pin")
	files.Write(t, path, "#!hook")
	if err := checkHook(path); err == nil || !strings.Contains(err.Error(), "has the mode -rw-------, want an executable file") {
		t.Errorf("a file: error %v", err)
	}
	if err := checkHook(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "want an executable file") {
		t.Errorf("a folder: error %v", err)
	}
}
