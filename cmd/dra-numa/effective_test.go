package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// printedConfig is the text of dra-numa config.
func printedConfig(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return printed(t, append([]string{"config"}, args...)...)
}

const effectiveText = `apiVersion: dra.numa/v1alpha1
exclusivity: kernel
kind: EffectiveConfig
nodeConfig:
  devices:
    presets:
    - gpu
  reservedHugepages:
  - amount: 4Mi
    size: 2Mi
  zoneBy: socket
nodeName: node-1
numaNodes:
- id: 0
  reservedHugepages:
    2Mi: 4Mi
  reservedMemory: 3Mi
reservedCPUs: "0"
version: dev
zoneBy: socket
`

// Flags, the NodeConfig, the kubelet's file and the probe decide together.
func TestConfigIsWhatADaemonWouldUse(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	kubelet := filepath.Join(t.TempDir(), "kubelet.yaml")
	files.Write(t, kubelet, "reservedMemory: [{numaNode: 0, limits: {memory: 3Mi, hugepages-2Mi: 6Mi}}]")
	files.Write(t, filepath.Join(pluginDir, probeFile), testBoot+" kernel\n")
	path := configFile(t, "zoneBy: socket\nreservedHugepages: [{size: 2Mi, amount: 4Mi}]\ndevices: {presets: [gpu]}\n")
	flags = append(flags, "--config="+path, "--kubelet-config="+kubelet, "--reserved-cpus=0")
	before := files.Tree(t, filepath.Dir(filepath.Dir(filepath.Dir(pluginDir))))
	text, err := printedConfig(t, flags...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, files.Tree(t, filepath.Dir(filepath.Dir(filepath.Dir(pluginDir))))); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	var document map[string]any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	given := document["flags"].(map[string]any)
	if given["reserved-cpus"] != "0" || given["exclusivity"] != "auto" || given["listen"] != "127.0.0.1:0" || given["pid"] != nil {
		t.Errorf("flags are %v", given)
	}
	delete(document, "flags")
	rest, err := yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(effectiveText, string(rest)); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// Before the first start of a daemon there is no folder of it, and config makes none.
func TestConfigOfANewNode(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	if err := os.RemoveAll(filepath.Dir(pluginDir)); err != nil {
		t.Fatal(err)
	}
	text, err := printedConfig(t, append(flags, "--nri-socket=")...)
	if err != nil || !strings.Contains(text, "\nexclusivity: none\n") || !strings.Contains(text, "\nnodeConfig: null\n") || !strings.Contains(text, "\nreservedCPUs: \"0\"\n") {
		t.Errorf("%v, configuration\n%s", err, text)
	}
	if _, err := os.Stat(pluginDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("config has made %s (%v)", pluginDir, err)
	}
}

// Each machine that kubectl numa generate writes has what a daemon needs.
func TestConfigOfGeneratedMachines(t *testing.T) {
	for _, preset := range fake.Presets() {
		dir := t.TempDir()
		if err := preset.Machine.Write(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := printedConfig(t, "--machine-root="+dir, "--node-name=x", "--exclusivity=none", "--kubelet-root="+t.TempDir(), "--nri-socket="); err != nil {
			t.Errorf("%s: %v", preset.Name, err)
		}
	}
}

// What a daemon refuses, config refuses.
func TestConfigHasTheErrorsOfADaemon(t *testing.T) {
	flags, _ := fakeMachine(t)
	for args, want := range map[string]string{
		"--reserved-cpus=0-9":     `--reserved-cpus: reserved CPUs "0-9": the machine has no CPUs 2-9, allowed are 0-1`,
		"--exclusivity=kernel":    "--exclusivity=kernel: the probe found no support",
		"--node-name=":            "node name is missing",
		"--pid=1":                 "--pid 1: cannot be combined with other flags",
		"stray":                   `unexpected argument "stray", dra-numa config takes only flags`,
		"--config=/no/such":       "--config: open /no/such: no such file or directory",
		"--kubelet-config=/no/sx": "open /no/sx: no such file or directory",
	} {
		text, err := printedConfig(t, append(flags[:len(flags):len(flags)], args)...)
		if err == nil || !strings.HasPrefix(err.Error(), want) || text != "" {
			t.Errorf("%s: %v, stdout %q, want %s", args, err, text, want)
		}
	}
	_, err := printedConfig(t, "--pid=999999999")
	if err == nil || isUsage(err) || !strings.HasPrefix(err.Error(), "read the flags of process 999999999: ") {
		t.Errorf("a process that does not exist: %v", err)
	}
}

func TestArgumentsOfAProcess(t *testing.T) {
	proc := fstest.MapFS{"1/cmdline": {Data: []byte("/dra-numa\x00--node-name=n\x00--nri-socket=\x00-v=2\x00")}, "2/cmdline": {}}
	for pid, want := range map[int][]string{1: {"--node-name=n", "--nri-socket=", "-v=2"}, 2: {}} {
		got, err := argumentsOf(proc, pid)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("process %d: %v (-want +got):\n%s", pid, err, diff)
		}
	}
}
