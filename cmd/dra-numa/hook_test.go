package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
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
	if err == nil || !strings.Contains(err.Error(), "find pin hook: stat "+hook+": no such file or directory: run dra-numa --probe") {
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
		if err := run(t.Context(), append(flags, "--probe"), noEnv, &bytes.Buffer{}); err != nil {
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
	if err := run(t.Context(), append(flags, "--probe", "--hook-dir="+dir), noEnv, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if text := files.Read(t, dir+"/numa-pin"); text != "#!hook" {
		t.Errorf("hook %q", text)
	}
	o, err := parseFlags([]string{"--node-name=n", "--hook-dir=" + dir}, noEnv, &bytes.Buffer{})
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

// TestFormerHookStaysWhileASpecNamesIt: a container whose spec a former version wrote can
// start until the daemon has rewritten the spec, and was started again.
func TestFormerHookStaysWhileASpecNamesIt(t *testing.T) {
	dir := t.TempDir()
	o := options{kubeletRoot: dir + "/kubelet", cdiDir: dir + "/cdi"}
	former := o.formerHookPath()
	write := func(hook cdi.Hook) {
		t.Helper()
		text, err := cdi.Encode(cdi.Claim{UID: "uid-1", Namespace: "default", Name: "c", Shares: []cdi.Share{{
			Request: "r", Device: "numa-0",
			Kind: &cdi.Zone{CPUs: cpuset.New(2), Partition: cdi.PartitionRoot, Scope: cdi.ScopeContainer},
		}}}, hook)
		if err != nil {
			t.Fatal(err)
		}
		files.Write(t, o.cdiDir+"/dra.numa-claim_uid-1.json", string(text))
	}
	there := func(want bool) {
		t.Helper()
		if err := removeFormerHook(o); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(former); (err == nil) != want {
			t.Errorf("the former hook: %v, want that it is there: %t", err, want)
		}
	}
	there(false)
	files.Write(t, former, "#!hook")
	write(cdi.Hook{Path: former, Dir: o.pluginDir()})
	there(true)
	files.Write(t, o.cdiDir+"/dra.numa-claim_uid-1.json", `torn "path":"`+former+`"`)
	there(true)
	write(o.hook())
	there(false)
	there(false)
	if got := o.hook().LockFile(); got != former+".lock" {
		t.Errorf("lock %s: two versions of the hook would not wait for each other", got)
	}
}
