package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.yaml")
	testfiles.Write(t, path, text)
	return path
}

// call runs the program as kubectl does.
func call(args ...string) (exitCode int, stdout, stderr string) {
	var out, err bytes.Buffer
	exitCode = run(append([]string{"/usr/local/bin/kubectl-numa"}, args...), func(string) string { return "" }, &out, &err)
	return exitCode, out.String(), err.String()
}

// mustCall fails the test if the command fails.
func mustCall(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	exitCode, stdout, stderr := call(args...)
	if exitCode != exitDone || stderr != "" {
		t.Fatalf("%q: exit code %d, stderr %q", args, exitCode, stderr)
	}
	return stdout
}

func TestNonsenseIsOneUsageLine(t *testing.T) {
	rig := sample.Folder(t, "rig") // 4 zones of 4 CPUs
	const commands = "completion, drift, explain, features, gather, generate, lint, migrate, pick, simulate, slices, status, " +
		"suggest-evictions, taint, topology, translate, ui, validate, version"
	topology := []string{"topology", "--root", rig}
	slices := []string{"slices", "--root", rig, "--node-name", "n"}
	pick := []string{"pick", "--root", rig, "--cpus", "2"}
	for _, tc := range []struct {
		command []string
		args    string
		want    string
	}{
		{
			nil,
			"topolgy",
			`unknown command "topolgy", allowed are ` + commands + "\n" + `kubectl-numa: hint: did you mean "topology"?`,
		},
		{nil, "--no-such-flag", "unknown flag: --no-such-flag"},
		{
			nil,
			"help nothing",
			`unknown command "nothing", allowed are ` + commands,
		},
		{nil, "completion nushell", `unknown command "nushell", allowed are bash, fish, powershell, zsh`},
		{topology, "stray", `unexpected argument "stray", kubectl numa topology takes only flags`},
		{topology, "-o png", `invalid argument "png" for "-o, --output" flag: allowed are table, json, yaml, jsonpath=TEMPLATE, svg`},
		{topology, "--width 39", "--width 39: want 40 or more"},
		{topology, "--width wide", `invalid argument "wide" for "--width" flag: want a whole number`},
		{topology, "--root /no/such", "--root: open /no/such: no such file or directory"},
		{topology, "--root " + rig + "/sys", `--root "` + rig + `/sys": there is no folder sys` + "\n" +
			"kubectl-numa: hint: name the folder with the machine's sys and proc, which only Linux has\n" +
			"kubectl-numa: hint: set --preset for a known machine, such as rig"},
		{topology, "--preset rig", "--root and --preset: set only one of them"},
		{nil, "topology --preset x", `--preset "x": there is no such machine, allowed are rig, `},
		{slices, "-o table", `invalid argument "table" for "-o, --output" flag: allowed are yaml, json, jsonpath=TEMPLATE`},
		{slices, "--node-name=", "the name of the node is missing: set --node-name"},
		{slices, "--node-name A_b", `--node-name "A_b": a lowercase RFC 1123 subdomain must consist of`},
		{slices, "--exclusivity all", `invalid argument "all" for "--exclusivity" flag: allowed are kernel, none`},
		{slices, "--config /no/such", "--config: open /no/such: no such file or directory"},
		{
			slices, "--exclusivity none --config " + file(t, "kind: NodeConfig\napiVersion: dra.numa/v1alpha1\nexclusivity: kernel"),
			"exclusivity: set it here or with --exclusivity, not in both",
		},
		{slices, "--config " + file(t, "kind: Pod"), `: kind: "Pod", allowed is NodeConfig`},
		{
			slices, "--config " + file(t, "kind: NodeConfig\napiVersion: dra.numa/v1alpha1\nreservedCPUs: 0-99"),
			`: reserved CPUs "0-99": the machine has no CPUs 16-99, allowed are 0-15`,
		},
		{pick, "--cpus 0", "--cpus 0: want 1 or more"},
		{pick, "--cpus -4", "--cpus -4: want 1 or more"},
		{pick, "--cpus two", `invalid argument "two" for "--cpus" flag: want a whole number`},
		{
			pick,
			"--cpus 99999999999999999999",
			`invalid argument "99999999999999999999" for "--cpus" flag: want a whole number`,
		},
		{pick, "--zone 4", `--zone "4": no zone has this name or only these NUMA nodes, allowed are numa-0, numa-1, numa-2, numa-3`},
		{pick, "--zone a", `--zone "a": no zone has this name or only these NUMA nodes, allowed are numa-0, numa-1, numa-2, numa-3`},
		{pick, "--used 1-", `--used: cpulist "1-": id "" is not a decimal number; want a list such as 0-3,8`},
		{pick, "--used 14-17", `--used "14-17": the machine has no CPUs 16-17, allowed are 0-15`},
		{pick, "--policy coreType=standard", `coreType=standard: allowed are performance, efficient`},
		{pick, "--policy l3=nearest", `l3=nearest: allowed are any, prefer, require`},
		{pick, "--policy whole,thread", `cores is set twice`},
		{pick, "--policy near", `no key has the value "near", the keys are cores, l3, coreType, placement`},
		{pick, "--policy cpu=1", `no key "cpu", allowed are cores, l3, coreType, placement`},
	} {
		exitCode, stdout, stderr := call(append(tc.command[:len(tc.command):len(tc.command)], strings.Fields(tc.args)...)...)
		lines := 1 + strings.Count(tc.want, "\n")
		if exitCode != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "kubectl-numa: error: ") ||
			!strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != lines {
			t.Errorf("%q %q: exit code %d, stdout %q, stderr\n%swant exit code 2 and\n%s", tc.command, tc.args, exitCode, stdout, stderr, tc.want)
		}
	}
}

func TestWhatCannotBeIsExitCode1(t *testing.T) {
	rig := sample.Folder(t, "rig")
	damaged := sample.Folder(t, "rig")
	testfiles.Write(t, damaged+"/sys/devices/system/cpu/online", "0-x\n")
	for _, tc := range []struct{ args, want string }{
		{"pick --cpus 5 --root " + rig, "kubectl-numa: error: select 5 cpus of one zone: not enough free cpus: numa-0 has 2 free; " +
			"numa-1 has 4 free; numa-2 has 4 free; numa-3 has 4 free\n" +
			"kubectl-numa: hint: a claim has CPUs of one zone; with zoneBy: socket or machine in the file of --config, zones have several NUMA nodes\n" +
			"kubectl-numa: hint: CPUs 0-1 are reserved, so no claim gets them; set reservedCPUs in the file of --config to change them\n"},
		{"pick --cpus 4 --zone 0 --root " + rig, "kubectl-numa: error: select 4 cpus of one zone: not enough free cpus: numa-0 has 2 free\n" +
			"kubectl-numa: hint: a claim has CPUs of one zone; with zoneBy: socket or machine in the file of --config, zones have several NUMA nodes\n" +
			"kubectl-numa: hint: CPUs 0-1 are reserved, so no claim gets them; set reservedCPUs in the file of --config to change them\n"},
		{"topology --root " + damaged, `kubectl-numa: error: read machine under "` + damaged + `": `},
	} {
		exitCode, stdout, stderr := call(strings.Fields(tc.args)...)
		if exitCode != exitFailed || stdout != "" || !strings.HasPrefix(stderr, tc.want) {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant exit code 1 and\n%s", tc.args, exitCode, stdout, stderr, tc.want)
		}
	}
}

// kubectl finds a plugin by its name, which users never type.
func TestUsageNamesTheProgramAsItWasCalled(t *testing.T) {
	for called, want := range map[string]string{"/opt/bin/kubectl-numa": "kubectl numa", "/opt/bin/numa": "kubectl-numa"} {
		for _, command := range []string{"topology", "slices", "pick"} {
			var stdout, stderr bytes.Buffer
			exitCode := run([]string{called, command, "--help"}, os.Getenv, &stdout, &stderr)
			text := stdout.String()
			if exitCode != exitDone || stderr.Len() > 0 || !strings.Contains(text, "  "+want+" "+command+" [flags]\n") ||
				!strings.Contains(text, "\n  "+want+" "+command+" --") && !strings.Contains(text, "\n  "+want+" "+command+"\n") {
				t.Errorf("%s %s --help: exit code %d, no usage or example with %q in\n%s", called, command, exitCode, want, text)
			}
		}
	}
	for _, args := range [][]string{nil, {"help"}, {"--help"}} {
		if help := mustCall(t, args...); !strings.Contains(help, "  kubectl numa [command]\n") {
			t.Errorf("%q answers\n%s", args, help)
		}
	}
}

// The help of the program has each command once, below a question.
func TestHelpHasTheCommandsByQuestion(t *testing.T) {
	help := mustCall(t, "--help")
	position := 0
	for _, want := range []string{
		"\nWhat does a machine look like, and what would the driver do with it?\n", "\n  pick ", "\n  slices ", "\n  topology ",
		"\nWho has what, and who gets what?\n", "\n  simulate ", "\n  status ", "\n  ui ",
		"\nWhy does a pod not start, and what helps?\n", "\n  explain ", "\n  suggest-evictions ",
		"\nWhat is wrong?\n", "\n  drift ", "\n  gather ", "\n  lint ", "\n  validate ",
		"\nHow do pods of static CPU managers get claims?\n", "\n  translate ",
		"\nWhat is there to use?\n", "\n  features ", "\n  generate ", "\n  version ",
		"\nAdditional Commands:\n", "\n  completion ", "\n  help ",
	} {
		i := strings.Index(help[position:], want)
		if i < 0 || strings.Count(help, want) != 1 {
			t.Fatalf("help has %q not once, or in another place:\n%s", want, help)
		}
		position += i
	}
}

func TestCompletion(t *testing.T) {
	rig := sample.Folder(t, "rig")
	for args, want := range map[string]string{
		"topology -o ":                      "table\njson\nyaml\njsonpath=\nsvg\n:4\n",
		"slices --exclusivity ":             "kernel\nnone\n:4\n",
		"pick --root " + rig + " --zone ":   "numa-0\nnuma-1\nnuma-2\nnuma-3\n:4\n",
		"pick --root /no/such --zone ":      ":4\n",
		"translate --policy ":               "single-numa-node\nrestricted\nbest-effort\nnone\n:4\n",
		"generate claim c --same ":          "node\nsocket\n:4\n",
		"generate class ":                   ":4\n",
		"lint --ignore ":                    strings.Join(ruleNames(), "\n") + "\n:4\n",
		"generate machine /tmp/m --preset ": strings.Join(presetNames(), "\n") + "\n:4\n",
		"suggest-evictions ":                "pod\n:4\n",
		"status --sort-by ":                 "node\nnuma-node\ndevice\nstate\nfree\nclaims\n:4\n",
		"status --cache --sort-by ":         "node\nl3\npool\nways-free\nclasses-free\nmembers-free\nclaims\n:4\n",
		"generate class c --set ":           strings.Join(settings(), "\n") + "\n:4\n",
	} {
		_, stdout, _ := call(append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if stdout != want {
			t.Errorf("completion of %q is %q, want %q", args, stdout, want)
		}
	}
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		if script := mustCall(t, "completion", shell); !strings.Contains(script, "__complete") {
			t.Errorf("completion for %s:\n%s", shell, script)
		}
	}
}

// A full disk is not a usage error.
func TestOutputThatCannotBeWritten(t *testing.T) {
	rig := sample.Folder(t, "rig")
	for _, args := range [][]string{{"topology"}, {"topology", "-o", "svg"}, {"topology", "-o", "json"}, {"topology", "-o", "yaml"}, {"slices", "--node-name", "n"}, {"pick", "--cpus", "2"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		var stderr bytes.Buffer
		exitCode := run(append(append([]string{program}, args...), "--root", rig), func(string) string { return "" }, full, &stderr)
		if exitCode != exitFailed || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%q: exit code %d, stderr %q", args, exitCode, stderr.String())
		}
		full.Close()
	}
}

// A terminal has 80 columns. Flags without a default say nothing about it.
func TestHelpIsReadable(t *testing.T) {
	eachCommand(func(command *cobra.Command) {
		if command.Parent().Name() == "completion" {
			return // these are cobra's
		}
		for line := range strings.Lines(command.Long) {
			if len(line) > 81 {
				t.Errorf("%s: a line has %d characters: %s", pathOf(command), len(line)-1, line)
			}
		}
		if usage := command.UsageString(); strings.Contains(usage, "(default [])") || strings.Contains(usage, "(default )") {
			t.Errorf("%s: a default is empty:\n%s", pathOf(command), usage)
		}
	})
}
