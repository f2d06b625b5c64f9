package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// eachCommand calls do with every command that does something.
func eachCommand(do func(*cobra.Command)) {
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		for _, child := range command.Commands() {
			visit(child)
		}
		if command.HasParent() && !command.HasSubCommands() {
			do(command)
		}
	}
	visit((cli{name: program}).rootCommand())
}

// pathOf returns the command without the program, such as "generate claim".
func pathOf(command *cobra.Command) string {
	return strings.TrimPrefix(command.CommandPath(), program+" ")
}

// Every command with --output says what is allowed.
func TestFormatsThatMakeNoSense(t *testing.T) {
	printers := 0
	eachCommand(func(command *cobra.Command) {
		flag := command.Flags().Lookup("output")
		if flag == nil {
			return
		}
		printers++
		p, is := flag.Value.(*printer)
		if !is {
			t.Errorf("%s: --output is no printer", pathOf(command))
			return
		}
		formats := strings.ReplaceAll(flag.Value.Type(), "|", ", ")
		for value, want := range map[string]string{
			"nonsense": "allowed are " + formats, "json=x": "allowed are " + formats, "jsonpath": "allowed are " + formats, "": "allowed are " + formats,
			"jsonpath=.items": "want a template with braces, such as jsonpath={.items[*].node}", "jsonpath={": "unclosed action",
		} {
			exitCode, stdout, stderr := call(append(strings.Fields(pathOf(command)), "--output", value)...)
			want = `kubectl-numa: error: invalid argument "` + value + `" for "-o, --output" flag: ` + want + "\n"
			if exitCode != exitUsage || stdout != "" || stderr != want {
				t.Errorf("%s -o %q: exit code %d, stdout %q, stderr %q, want %q", pathOf(command), value, exitCode, stdout, stderr, want)
			}
		}
		if !slices.Contains(p.allowed, formatJSON) || !slices.Contains(p.allowed, formatYAML) || !slices.Contains(p.allowed, formatPath) {
			t.Errorf("%s has the formats %s", pathOf(command), formats)
		}
		if headers := command.Flags().Lookup("no-headers") != nil; headers != slices.Contains(p.allowed, formatWide) {
			t.Errorf("%s: it has --no-headers: %v", pathOf(command), headers)
		}
	})
	if printers < 15 {
		t.Errorf("%d commands have --output", printers)
	}
}

// A template reads the document that -o json prints, as in kubectl.
func TestTemplates(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4", "cpu: 6")
	rig := sample.Folder(t, "rig")
	for _, row := range []struct{ args, template, want string }{
		{"simulate -f " + dir, "{.kind} {.pods[*].pod}", "Placements default/a"},
		{"simulate -f " + dir, `{range .unschedulable[*]}{.pod}{"\n"}{end}`, "default/b\n"},
		{"simulate -f " + dir, "{.nothing}", ""},
		{"topology --root " + rig, "{.nodes[?(@.id==1)].cpus} {.nodes[0].memoryBytes}", "4-7 "},
		{"slices --node-name n --root " + rig, "{.spec.devices[*].name}", "numa-0 numa-1 numa-2 numa-3"},
		{"generate claim c --cpus 4", "{.metadata.name}", "c"},
		{"taint worker-1/numa-0 worker-1/numa-1 -f " + dir, "{.items[*].spec.deviceSelector.device}", "numa-0 numa-1"},
		{"pick --cpus 2 --root " + rig, "{.cpus}", "2-3"},
	} {
		_, stdout, stderr := call(append(strings.Fields(row.args), "-o", "jsonpath="+row.template)...)
		if !strings.HasPrefix(stdout, row.want) || row.want == "" && stdout != "" || strings.Contains(stdout, "e+") {
			t.Errorf("%s -o jsonpath=%s says %q, want %q; stderr %q", row.args, row.template, stdout, row.want, stderr)
		}
	}
	exitCode, stdout, stderr := call("topology", "--root", rig, "-o", "jsonpath={.nodes[9]}")
	if want := "kubectl-numa: error: --output jsonpath: array index out of bounds: index 9, length 4\n"; exitCode != exitUsage || stdout != "" || stderr != want {
		t.Errorf("exit code %d, stdout %q, stderr %q, want %q", exitCode, stdout, stderr, want)
	}
}

// Names are those that kubectl takes.
func TestNames(t *testing.T) {
	dir := clusterFolder(t)
	runningPods(t, dir)
	testfiles.Write(t, dir+"/waiting.yaml", strings.NewReplacer("AMOUNTS", "cpu: 4", "NAME", "urgent").Replace(podManifest)+"  priority: 10\n")
	wrong := file(t, wrongManifests)
	a := installedCluster(t)
	a[pod] = stateOf(leftOver)
	a["/api/v1/nodes/worker-1/proxy/configz"] = `{"kubeletconfig": {"cpuManagerPolicy": "static"}}`
	t.Setenv("KUBECONFIG", a.serve(t))
	for args, want := range map[string]string{
		"status -f " + dir:                                    "node/worker-1\n",
		"simulate -f " + dir:                                  "pod/urgent\n",
		"explain pods -f " + dir:                              "pod/running-0\npod/running-1\npod/running-2\npod/running-3\npod/urgent\n",
		"explain pod urgent -f " + dir:                        "pod/urgent\n",
		"explain claim urgent -f " + dir:                      "resourceclaim.resource.k8s.io/urgent\n",
		"suggest-evictions pod urgent -f " + dir:              "pod/running-3\n",
		"lint -A -f " + wrong:                                 "resourceclaimtemplate.resource.k8s.io/wrong\npod/p\n",
		"translate -f " + toTranslate + " -l app=web":         "deployment.apps/web\n",
		"lint -n team -f " + wrong:                            "resourceclaimtemplate.resource.k8s.io/wrong\npod/p\n",
		"drift":                                               "node/worker-1\n",
		"validate":                                            "node/worker-1\n",
		"taint worker-1/numa-0 worker-1/numa-1 -f " + dir:     "devicetaintrule.resource.k8s.io/drain-worker-1-numa-0\ndevicetaintrule.resource.k8s.io/drain-worker-1-numa-1\n",
		"generate class fast --memory-tier 4":                 "deviceclass.resource.k8s.io/fast\n",
		"generate template workers --cpus 4 --namespace team": "resourceclaimtemplate.resource.k8s.io/workers\n",
	} {
		if _, stdout, stderr := call(append(strings.Fields(args), "-o", "name")...); stdout != want {
			t.Errorf("%s -o name says %q, want %q; stderr %q", args, stdout, want, stderr)
		}
	}
}

// A command that gets a name without its namespace looks in one, perhaps the wrong one.
func TestNamesOfSeveralNamespacesAreRefused(t *testing.T) {
	dir := clusterFolder(t)
	runningPods(t, dir)
	testfiles.Write(t, dir+"/waiting.yaml", strings.NewReplacer("AMOUNTS", "cpu: 4", "{name: NAME}", "{namespace: team, name: urgent}", "NAME", "urgent").Replace(podManifest)+"  priority: 10\n")
	const want = "kubectl-numa: error: --output name shows no namespaces, but the objects are in default, team: set another format, or --all-namespaces\n"
	for _, args := range []string{"suggest-evictions pod urgent -n team --from-cluster -f " + dir, "lint -f " + file(t, wrongManifests)} {
		t.Setenv("KUBECONFIG", testCluster(t, dir, gatesOn))
		args = strings.Replace(args, "--from-cluster -f "+dir, "", 1)
		exitCode, stdout, stderr := call(append(strings.Fields(args), "-o", "name")...)
		if exitCode != exitUsage || stdout != "" || !strings.HasSuffix(stderr, want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, exitCode, stdout, stderr, want)
		}
	}
}

// The format wide has more columns, or more rows.
func TestWideTables(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4", "cpu: 6")
	runningPods(t, dir)
	wrong := file(t, wrongManifests)
	a := installedCluster(t)
	a["/metrics"] = gatesOff
	t.Setenv("KUBECONFIG", a.serve(t))
	for args, want := range map[string]string{
		"status -f " + dir:                          "NODE NUMA NODE DEVICE STATE FREE",
		"simulate -f " + clusterFolder(t, "cpu: 4"): "POD        NODE      CLAIM  REQUEST  DEVICE                    CAPACITY  FEASIBLE NODES\ndefault/a  worker-1  a      zone     dra.numa/worker-1/numa-1  cpu 4     worker-1\n",
		"lint -f " + wrong:                          "KIND OBJECT SEVERITY RULE FIELD",
		"translate -f " + dir:                       "KIND OBJECT PODS RESULT NO NODE TEMPLATE WHY WHERE",
		"explain -f " + dir:                         "POD ANSWER FIRST OBSTACLE HINTS\n",
		"validate":                                  "NODE  CHECK         COMPONENT       SETTING                EXPECTED  DETECTED  AREA\n-     feature-gate  kube-apiserver  DRAConsumableCapacity  true      false     versions\n",
		"features":                                  "FEATURE STATE NEEDS",
		"version":                                   "COMPONENT VERSION",
	} {
		_, stdout, stderr := call(append(strings.Fields(args), "-o", "wide")...)
		if !strings.HasPrefix(oneSpace(stdout), oneSpace(want)) {
			t.Errorf("%s -o wide says\n%swant\n%s\nstderr %q", args, stdout, want, stderr)
		}
		header, _, _ := strings.Cut(stdout, "\n")
		_, without, _ := call(append(strings.Fields(args), "-o", "wide", "--no-headers")...)
		if without == "" || strings.Contains(without, strings.Fields(header)[0]+" ") || strings.Count(without, "\n") != strings.Count(stdout, "\n")-1 {
			t.Errorf("%s -o wide --no-headers says\n%s", args, without)
		}
		_, narrow, _ := call(append(strings.Fields(args), "-o", "table")...)
		columns := strings.Split(header, "  ")
		if last := strings.TrimSpace(columns[len(columns)-1]); strings.Contains(narrow, last) {
			t.Errorf("%s: the table without wide has the column %q:\n%s", args, last, narrow)
		}
	}
	const zone = "\nworker-1 0 worker-1/numa-0 shared cpu 0 of 2, "
	if stdout := mustCall(t, "status", "-f", dir, "-o", "wide"); !strings.Contains(oneSpace(stdout), zone) || !strings.Contains(stdout, "  default/claim-0\n") {
		t.Errorf("status -o wide says\n%s", stdout)
	}
}

// oneSpace makes a table independent of the widths of its columns.
func oneSpace(table string) string {
	var b strings.Builder
	for line := range strings.Lines(table) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return strings.TrimSpace(b.String())
}

// docs/kubectl-numa.md says which command has which format, and which flag for lists.
func TestPageHasFormatsAndFlagsOfLists(t *testing.T) {
	want, got := make(map[string][]string), make(map[string][]string)
	eachCommand(func(command *cobra.Command) {
		add := func(what string) {
			if name := strings.Fields(pathOf(command))[0]; !slices.Contains(want[what], name) {
				want[what] = append(want[what], name)
			}
		}
		if flag := command.Flags().Lookup("output"); flag != nil {
			for _, format := range flag.Value.(*printer).choices("TEMPLATE") {
				add(format)
			}
		}
		for _, name := range []string{"namespace", "all-namespaces", "selector"} {
			if flag := command.Flags().Lookup(name); flag != nil {
				add("-" + flag.Shorthand)
			}
		}
		if command.Flags().Lookup("sort-by") != nil {
			add("--sort-by")
		}
	})
	page := testfiles.Read(t, "../../docs/kubectl-numa.md")
	for _, title := range []string{"\n## Formats\n", "\n## Lists\n"} {
		_, section, _ := strings.Cut(page, title)
		section, _, _ = strings.Cut(section, "\n## ")
		for line := range strings.Lines(section) {
			cells := strings.Split(line, " | ")
			if len(cells) < 3 || !strings.HasPrefix(cells[0], "| `") {
				continue
			}
			for i, key := range codes(cells[0]) {
				if i > 0 && strings.HasPrefix(key, "--") {
					continue // the long form
				}
				got[key] = append(got[key], codes(cells[len(cells)-1])...)
			}
		}
	}
	for _, lists := range []map[string][]string{want, got} {
		for key := range lists {
			slices.Sort(lists[key])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands by format and flag (-commands +page):\n%s", diff)
	}
}

// codes returns what is in backquotes.
func codes(cell string) (list []string) {
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			list = append(list, part)
		}
	}
	return list
}
