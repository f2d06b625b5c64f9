package main

import (
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// Every command keeps to the table of exit codes in docs/kubectl-numa.md. A command
// without a line for 1 cannot answer no.
func TestExitCodesOfAllCommands(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2", "cpu: 9")
	runningPods(t, dir)
	fits, given := clusterFolder(t, "cpu: 2"), clusterFolder(t, "cpu: 1")
	testfiles.Write(t, filepath.Join(given, "class.yaml"), brokenClass)
	rig, damaged := sample.Folder(t, "rig"), sample.Folder(t, "rig")
	testfiles.Write(t, damaged+"/sys/devices/system/cpu/online", "0-x\n")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	bundle, full := filepath.Join(t.TempDir(), "bundle.tar.gz"), "/dev/full"
	healthy, wrong := installedCluster(t), installedCluster(t)
	wrong[pod], wrong["/metrics"] = stateOf(leftOver), gatesOff
	there, elsewhere := " --kubeconfig "+healthy.serve(t), " --kubeconfig "+wrong.serve(t)
	gone := there + " --context other"
	clean := file(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main}]}\n")
	commands := map[string]map[int][]string{
		"topology": {exitDone: {"--root " + rig}, exitFailed: {"--root " + damaged}, exitUsage: {"--root /no/such", "-o png"}},
		"slices":   {exitDone: {"--node-name n --root " + rig}, exitFailed: {"--node-name n --root " + damaged}, exitUsage: {"--root " + rig}},
		"pick":     {exitDone: {"--cpus 2 --root " + rig}, exitFailed: {"--cpus 99 --root " + rig}, exitUsage: {"--root " + rig}},
		"status":   {exitDone: {"-f " + dir, "-n none -f " + dir}, exitUsage: {"nothing -f " + dir, gone, "-l a=b -f " + dir}},
		"ui":       {exitFailed: {"-f " + dir + " --listen " + listener.Addr().String()}, exitUsage: {"--listen 0.0.0.0:1 -f " + dir, "-f /no/such"}},
		"simulate": {exitDone: {"-f " + fits, "-f " + fits + " -n none"}, exitFailed: {"-f " + dir}, exitUsage: {"-f " + given, "--node nothing -f " + dir, gone}},
		"explain": {
			exitDone: {"pod b -f " + dir, "-f " + dir, "claims -f " + dir, "pods --exit-code -f " + fits}, exitFailed: {"pod b --exit-code -f " + dir, "--exit-code -f " + dir},
			exitUsage: {"pod none -f " + dir, "pod a --exit-code -f " + given, gone},
		},
		"suggest-evictions": {exitDone: {"pod a -f " + fits}, exitFailed: {"pod b -f " + dir}, exitUsage: {"pod none -f " + dir, "pod a -f " + given, "-f " + dir}},
		"taint":             {exitDone: {"worker-1/numa-0 -f " + dir}, exitUsage: {"worker-1/numa-9 -f " + dir, gone + " a/b"}},
		"lint":              {exitDone: {"-f " + clean}, exitFailed: {"-f " + file(t, wrongManifests)}, exitUsage: {"-f /no/such", "-f " + clean + " -l a=b", gone}},
		"validate":          {exitDone: {there}, exitFailed: {elsewhere}, exitUsage: {gone, there + " -l a=b"}},
		"drift":             {exitDone: {there}, exitFailed: {elsewhere}, exitUsage: {gone, there + " -l a=b", "nothing" + there}},
		"gather":            {exitDone: {"--file " + bundle + there}, exitUsage: {gone + " --file " + bundle + "2", "--file " + full + there}},
		"version":           {exitDone: {there, "--client"}, exitUsage: {gone}},
		"features":          {exitDone: {there}, exitUsage: {gone}},
		"migrate":           {exitDone: {there}, exitUsage: {"-f /no/such", gone}},
		"translate":         {exitDone: {"-f " + clean, "-n none --from-cluster" + there + " -f " + clean + " -o name"}, exitFailed: {"-f " + toTranslate}, exitUsage: {"-f /no/such", "-f " + clean + " -n none -l a=b", gone}},
		"generate": {
			exitDone: {"claim c --cpus 2", "class c", "template c --cpus 2", "slices --node-name n --preset rig", "machine " + t.TempDir()}, exitFailed: {"machine /dev/null/x"},
			exitUsage: {"claim", "class C_", "slices", "machine " + rig},
		},
	}
	for command, codes := range commands {
		for want, lines := range codes {
			for _, line := range lines {
				if exitCode, _, stderr := call(append([]string{command}, strings.Fields(line)...)...); exitCode != want || (exitCode != exitDone) != strings.Contains(stderr, "kubectl-numa: error: ") {
					t.Errorf("%s %s: exit code %d, want %d, stderr %s", command, line, exitCode, want, stderr)
				}
			}
		}
	}
	var all []string
	for _, command := range (cli{name: program}).rootCommand().Commands() {
		all = append(all, command.Name())
	}
	slices.Sort(all)
	if diff := cmp.Diff(all, slices.Sorted(maps.Keys(commands))); diff != "" {
		t.Errorf("commands (-all +tried):\n%s", diff)
	}
}
