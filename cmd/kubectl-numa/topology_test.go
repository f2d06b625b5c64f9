package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pciname"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/podexec"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func TestTopologyInEveryForm(t *testing.T) {
	dir := sample.Folder(t, "sparse-nodes")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	machine, err := numa.Read(root.FS())
	if err != nil {
		t.Fatal(err)
	}
	var table, svg bytes.Buffer
	if err := draw.Text(&table, machine, draw.TextOptions{Width: 60, Names: pciname.Lookup}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(table.String(), mustCall(t, "topology", "--root", dir, "--width", "60")); diff != "" {
		t.Errorf("table (-draw +command):\n%s", diff)
	}
	if err := draw.SVG(&svg, machine, pciname.Lookup); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(svg.String(), mustCall(t, "topology", "--root", dir, "-o", "svg")); diff != "" {
		t.Errorf("svg (-draw +command):\n%s", diff)
	}
	var fromJSON, fromYAML draw.Document
	if err := json.Unmarshal([]byte(mustCall(t, "topology", "--root", dir, "-o", "json")), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(mustCall(t, "topology", "--root", dir, "-o", "yaml")), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if len(fromJSON.Nodes) != 6 || !reflect.DeepEqual(fromJSON, draw.Topology(machine)) || !reflect.DeepEqual(fromYAML, fromJSON) {
		t.Errorf("json\n%+v\nyaml\n%+v", fromJSON, fromYAML)
	}
}

func TestMatrixInEveryForm(t *testing.T) {
	dir := sample.Folder(t, "dgx-h100")
	for _, format := range []string{"json", "yaml"} {
		text := mustCall(t, "topology", "--root", dir, "--matrix", "-o", format)
		if !strings.Contains(text, "DeviceMatrix") || strings.Count(text, "pci0000:15") != 3 {
			t.Errorf("-o %s prints\n%s", format, text)
		}
	}
	near := mustCall(t, "topology", "--root", dir, "--matrix", "-o", "jsonpath={.rows[?(@.near.gpu0==\"root\")].address}")
	if near != "0000:18:00.0 0000:1a:00.0" {
		t.Errorf("a GPU shares its PCIe root with %s", near)
	}
	table := mustCall(t, "topology", "--root", dir, "--matrix")
	for line := range strings.Lines(table) {
		if len(line) > 81 {
			t.Errorf("a line has %d characters: %s", len(line)-1, line)
		}
	}
	if strings.Contains(table, "\nbridge") || !strings.Contains(table, "\nroot    both are under the same PCIe root complex\n") {
		t.Errorf("the legend is not that of the words:\n%s", table)
	}
	if text := mustCall(t, "topology", "--preset", "512cpus", "--matrix"); !strings.HasPrefix(text, "DEVICE  gpu0  ADDRESS\n") {
		t.Errorf("a machine with a GPU prints\n%s", text)
	}
	if text := mustCall(t, "topology", "--preset", "xeon-max-cache", "--matrix"); text != "no GPUs, network cards or drives\n" {
		t.Errorf("a machine without devices prints\n%s", text)
	}
	if exitCode, _, stderr := call("topology", "--preset", "rig", "--matrix", "-o", "svg"); exitCode != exitUsage || stderr != "kubectl-numa: error: --matrix has no picture: want another --output than svg\n" {
		t.Errorf("exit code %d, %s", exitCode, stderr)
	}
}

func TestPresetIsTheMachineInItsFolder(t *testing.T) {
	dir := sample.Folder(t, "epyc-2s-nps4")
	for _, command := range []string{"topology", "slices --node-name n", "pick --cpus 2"} {
		want := mustCall(t, strings.Fields(command+" --root "+dir)...)
		if diff := cmp.Diff(want, mustCall(t, strings.Fields(command+" --preset epyc-2s-nps4")...)); diff != "" {
			t.Errorf("%s (-root +preset):\n%s", command, diff)
		}
	}
}

// A bundle has the machine of each node that answers.
func TestTopologyOfANodeOfABundle(t *testing.T) {
	a := installedCluster(t)
	t.Setenv("KUBECONFIG", a.serve(t))
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	mustCall(t, "gather", "--file", path)
	t.Setenv("KUBECONFIG", "/nowhere")
	for _, format := range []string{"table", "json", "yaml", "svg"} {
		want := mustCall(t, "topology", "--root", sample.Folder(t, "rig"), "-o", format)
		if diff := cmp.Diff(want, mustCall(t, "topology", "--from", path, "--node", "worker-1", "-o", format)); diff != "" {
			t.Errorf("%s (-folder +bundle):\n%s", format, diff)
		}
	}
	if _, names, _ := call("__complete", "topology", "--from", path, "--node", ""); !strings.HasPrefix(names, "worker-1\n") {
		t.Errorf("completion is %q", names)
	}
	noMachine := filepath.Join(t.TempDir(), "bundle.tar.gz")
	a[pod] = podexec.Handler(func(string, []string) (string, string, int) { return "", "dra-numa: error: old", 2 })
	t.Setenv("KUBECONFIG", a.serve(t))
	mustRun(t, "gather", "--file", noMachine)
	for args, want := range map[string]string{
		"--from " + path:                           "--from: a bundle has a machine for each node: set --node\n",
		"--node worker-1":                          "--node names a node of a bundle: set --from\n",
		"--from " + path + " --node a --root /":    "--root and --from: set only one of them\n",
		"--from " + path + " --preset rig":         "--preset and --from: set only one of them\n",
		"--from " + path + " --node worker-9":      `--from "` + path + `": the bundle has no files of node "worker-9"` + "\nkubectl-numa: hint: the bundle has files of worker-1\n",
		"--from " + noMachine + " --node worker-1": `--from "` + noMachine + `": the bundle has no files of node "worker-1": run dra-numa machine in pod dra-numa/driver-x, container driver: command terminated with exit code 2: dra-numa: error: old` + "\n",
	} {
		exitCode, stdout, stderr := call(strings.Fields("topology " + args)...)
		if exitCode != exitUsage || stdout != "" || stderr != "kubectl-numa: error: "+want {
			t.Errorf("topology %s: exit code %d, stdout %q, stderr\n%swant\n%s", args, exitCode, stdout, stderr, want)
		}
	}
}

// mustRun runs a command that may print notes.
func mustRun(t *testing.T, args ...string) {
	t.Helper()
	if exitCode, _, stderr := call(args...); exitCode != exitDone {
		t.Fatalf("%q: exit code %d, stderr %s", args, exitCode, stderr)
	}
}

func TestTopologySaysWhichMachineItIs(t *testing.T) {
	root := sample.Folder(t, "rig")
	for name, text := range map[string]string{"sys_vendor": "Example", "product_name": "Server 1", "bios_version": "2.4", "bios_date": "04/14/2022", "product_serial": "SN-1"} {
		testfiles.Write(t, root+"/sys/class/dmi/id/"+name, text+"\n")
	}
	drawn := mustCall(t, "topology", "--root", root)
	if !strings.Contains(drawn, "\nExample Server 1, BIOS 2.4 (04/14/2022)\n") {
		t.Errorf("the drawing does not say which machine it is:\n%s", drawn)
	}
	const want = `{"vendor":"Example","product":"Server 1","biosVendor":"","biosVersion":"2.4","biosDate":"04/14/2022"}`
	if text := mustCall(t, "topology", "--root", root, "-o", "json"); !strings.Contains(text, `"platform": `+want) || strings.Contains(text, "SN-1") {
		t.Errorf("want the platform %s in\n%s", want, text)
	}
}
