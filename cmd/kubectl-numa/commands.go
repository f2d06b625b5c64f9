package main

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// runner runs a command after its flags are parsed.
type runner func(ctx context.Context, args []string) error

// row is a command. Its help is in the folder help, in a file that is named after it.
type row struct {
	name    string
	args    string // as users write them; "" for none, [] around one that may be missing
	meaning string
	page    string // of the documentation, if the command has one of its own
	// set adds the flags and returns what runs the command.
	set  func(c cli, command *cobra.Command) runner
	rows []row // the subcommands; then the command itself runs nothing
}

// section is a question, and the commands that answer it.
type section struct {
	question string
	rows     []row
}

// table returns all commands. Usage, help and completion are made of it, and so is the
// list of commands in the documentation. Help shows the questions in this order, and sorts
// the commands of each.
func table() []section {
	return []section{
		{"What does a machine look like, and what would the driver do with it?", []row{
			{"topology", "", "Draw a machine: NUMA nodes, caches, cores, memory and PCI devices", "", topologyCommand, nil},
			{"slices", "", "Print the ResourceSlices that the driver would publish for a machine", "", slicesCommand, nil},
			{"pick", "", "Show which CPUs a claim would get now, and why", "", pickCommand, nil},
		}},
		{"Who has what, and who gets what?", []row{
			{"status", "[NODE]", "Show which claims hold the CPUs, memory, hugepages and devices of every NUMA node", "", statusCommand, nil},
			{"ui", "", "Serve the status as web pages, for a browser on this machine", "", uiCommand, nil},
			{"simulate", "", "Show where the scheduler would place pods, and which devices they would get", "", simulateCommand, nil},
		}},
		{"Why does a pod not start, and what helps?", []row{
			{
				"explain", "[pod|claim|deployment|replicaset|statefulset|daemonset|job] [NAME]",
				"Show why a pod or a claim does not fit on each node, or why a pod does not start", "pending-pod.md", explainCommand, nil,
			},
			{"suggest-evictions", "pod NAME", "Show which pods of lower priority you would have to delete for a pending pod", "", suggestEvictionsCommand, nil},
			{"taint", "NODE/DEVICE...", "Print the DeviceTaintRules that drain zones or other devices", "draining.md", taintCommand, nil},
		}},
		{"What is wrong?", []row{
			{"lint", "", "Find mistakes in claims, claim templates, device classes and pods", "rules.md", lintCommand, nil},
			{"validate", "", "Find problems of a cluster and its nodes", "validate.md", validateCommand, nil},
			{"drift", "[NODE]", "Compare the claims, checkpoint, CDI specs and cgroups of nodes", "drift.md", driftCommand, nil},
			{"gather", "", "Write a support bundle: a file with everything that a diagnosis of the cluster needs", "", gatherCommand, nil},
		}},
		{"How do pods of static CPU managers get claims?", []row{
			{"translate", "", "Show what claims pods of the kubelet's static managers would get, and print them", "", translateCommand, nil},
		}},
		{"What is there to use?", []row{
			{"version", "", "Show the versions of this program, the chart, the driver and Kubernetes, and what differences mean", "", versionCommand, nil},
			{"features", "", "Show what the versions and feature gates of a cluster make possible for the driver", "", featuresCommand, nil},
			{"migrate", "", "Show what takes the place of static managers, NUMA schedulers and RDT operators", "migrating.md", migrateCommand, nil},
			{"generate", "", "Generate machines, Nodes, ResourceSlices, device classes, claims, and pods with claims", "", nil, []row{
				{"claim", "NAME", "Print a ResourceClaim for CPUs, memory and hugepages of NUMA nodes", "", generateWishCommand, nil},
				{"class", "NAME", "Print a DeviceClass of NUMA nodes", "", generateClassCommand, nil},
				{"classes", "[NAME]...", "Print the DeviceClasses that the chart installs", "", generateClassesCommand, nil},
				{"deployment", withCommand, "Print a Deployment whose pods have a claim each, and the template of the claims", "", generateWorkloadCommand, nil},
				{"job", withCommand, "Print a Job whose pods have a claim each, and the template of the claims", "", generateWorkloadCommand, nil},
				{"machine", "DIR", "Write the files under /sys and /proc of a generated machine into a folder", "", generateMachineCommand, nil},
				{"node", "NAME", "Print the Node of a machine, or of a machine that flags declare, for simulations and KWOK", "", generateNodeCommand, nil},
				{"pod", withCommand, "Print a pod with a claim, and the template of the claim", "", generateWorkloadCommand, nil},
				{"pools", "", "Print a NodeConfig whose pools fit the level-3 caches of a machine", "", generatePoolsCommand, nil},
				{"slices", "", "Print the ResourceSlices of a machine, or of a machine that flags declare", "", generateSlicesCommand, nil},
				{"statefulset", withCommand, "Print a StatefulSet whose pods have a claim each, and the template of the claims", "", generateWorkloadCommand, nil},
				{"template", "NAME", "Print a ResourceClaimTemplate for CPUs, memory and hugepages of NUMA nodes", "", generateWishCommand, nil},
			}},
		}},
	}
}

// texts has a file for each command: more of its help and, after a line "Examples:",
// examples.
//
//go:embed help/*.txt
var texts embed.FS

// command returns the command of a row. path names its file, without the ending.
func (c cli) command(r row, path string) *cobra.Command {
	text, err := texts.ReadFile("help/" + path + ".txt")
	if err != nil {
		panic(err) // impossible: every command has a file, as the tests see
	}
	long, examples, _ := strings.Cut(string(text), "\nExamples:\n")
	command := &cobra.Command{
		Use:     strings.TrimSpace(r.name + " " + r.args),
		Short:   r.meaning,
		Long:    wrap(r.meaning+".") + "\n\n" + strings.TrimSpace(long),
		Example: c.examples(examples),
		Args:    arguments(r.args),
	}
	for _, child := range r.rows {
		command.AddCommand(c.command(child, path+"-"+child.name))
	}
	if r.set != nil {
		command.ValidArgsFunction = cobra.NoFileCompletions
		run := r.set(c, command)
		command.RunE = func(command *cobra.Command, args []string) error { return run(command.Context(), args) }
	}
	return command
}

// withCommand are the arguments of what has a container.
const withCommand = "NAME [flags] [-- COMMAND [ARG]...]"

// nameAndCommand accepts a name and, after --, what the container runs.
func nameAndCommand(command *cobra.Command, args []string) error {
	names := args
	if dash := command.ArgsLenAtDash(); dash >= 0 {
		names = args[:dash]
	}
	if len(names) != 1 {
		return fmt.Errorf("want NAME, not %q; what the container runs comes after --", strings.Join(names, " "))
	}
	return nil
}

// arguments accepts the arguments of a row.
func arguments(want string) cobra.PositionalArgs {
	if want == withCommand {
		return nameAndCommand
	}
	optional := strings.HasPrefix(want, "[")
	return func(command *cobra.Command, args []string) error {
		switch {
		case strings.HasSuffix(want, "..."):
		case want == "" && len(args) > 0:
			return fmt.Errorf("unexpected argument %q, %s takes only flags", args[0], command.CommandPath())
		case optional && len(args) > 1:
			return fmt.Errorf("unexpected argument %q, want one %s or none", args[1], strings.ToLower(strings.Trim(want, "[]")))
		case want != "" && !optional && len(args) != 1:
			return fmt.Errorf("want %s, not %q", want, strings.Join(args, " "))
		}
		return nil
	}
}

// examples indents the lines of an example, and puts the name of the program before
// each command. Lines that begin with # are comments.
func (c cli) examples(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "#") {
			line = c.name + " " + line
		}
		lines = append(lines, "  "+line)
	}
	return strings.Join(lines, "\n")
}

// wrap puts the words of a text into lines of up to 80 characters.
func wrap(text string) string { return wrapTo(text, 80) }

// wrapTo puts the words of a text into lines of up to so many characters.
func wrapTo(text string, columns int) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > columns:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
