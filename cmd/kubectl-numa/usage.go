package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// printUsage prints the usage of a command as cobra does, except that the flags of a
// connection have a section of their own. It is no template of cobra: see
// TestKubectlNumaKeepsNoMethodsByName in test/deps.
func printUsage(command *cobra.Command) error {
	_, err := fmt.Fprintln(command.OutOrStderr(), strings.Join(usageSections(command), "\n\n"))
	return err
}

// usageSections returns the parts of the usage. It has those parts of cobra's usage that
// commands of this program have.
func usageSections(command *cobra.Command) (sections []string) {
	add := func(title, content string) {
		if content = strings.TrimRight(content, " \n"); content != "" {
			sections = append(sections, title+"\n"+content)
		}
	}
	own, connections := flagUsages(command.LocalFlags())
	add("Usage:", usageLines(command))
	add("Examples:", command.Example)
	for _, group := range command.Groups() {
		add(group.Title, namesOfCommands(command, group.ID))
	}
	if len(command.Groups()) == 0 {
		add("Available Commands:", namesOfCommands(command, ""))
	} else {
		add("Additional Commands:", namesOfCommands(command, ""))
	}
	add("Flags:", own)
	// Every command that reads a cluster has these. They would bury the command's own flags.
	add("Flags for the cluster, as in kubectl:", connections)
	if command.HasAvailableSubCommands() {
		sections = append(sections, fmt.Sprintf("Use %q for more information about a command.", command.CommandPath()+" [command] --help"))
	}
	return sections
}

func usageLines(command *cobra.Command) (lines string) {
	if command.Runnable() {
		lines += "  " + command.UseLine() + "\n"
	}
	if command.HasAvailableSubCommands() {
		lines += "  " + command.CommandPath() + " [command]\n"
	}
	return lines
}

// namesOfCommands lists the subcommands of a group; "" is for those of none.
func namesOfCommands(command *cobra.Command, group string) (lines string) {
	for _, child := range command.Commands() {
		if child.GroupID == group && (child.IsAvailableCommand() || child.Name() == "help") {
			lines += fmt.Sprintf("  %-*s %s\n", child.NamePadding(), child.Name(), child.Short)
		}
	}
	return lines
}

// flagUsages describes flags: those of the command itself, and those of a connection.
func flagUsages(flags *pflag.FlagSet) (own, connections string) {
	ofCommand, ofConnection := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(flag *pflag.Flag) {
		if isConnection(flag) {
			ofConnection.AddFlag(flag)
		} else {
			ofCommand.AddFlag(flag)
		}
	})
	return ofCommand.FlagUsages(), ofConnection.FlagUsages()
}
