package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/lint"
)

// linting is what the flags of lint say.
type linting struct {
	cli
	from   source
	ignore []string
	output *choice
}

func (c cli) lintCommand() *cobra.Command {
	l := linting{cli: c, output: newChoice("table", "json", "yaml")}
	command := &cobra.Command{
		Use:   "lint",
		Short: "Find what is wrong with claims, templates, classes and pods",
		Long: fmt.Sprintf(`Find what is wrong with claims, templates, classes and pods.

It says what the admission webhook would: errors, which would be refused, and
warnings. What objects refer to is looked up where they are, and classes that are
not there among those of the driver. Of --from-cluster with --filename, the files'
objects are looked at, and the cluster's only looked up.

The rules are %s;
docs/rules.md explains them. The exit code is 1 if there is a finding, of either
kind, and 2 if a file cannot be read.`, ruleList()),
		Example: c.examples(`
# what is wrong with manifests
lint -f manifests/
# the same where the classes and nodes are those of a cluster
lint --from-cluster -f manifests/
# all that a cluster has, for a program
lint -o json
# without a rule that does not matter here
lint -f pod.yaml --ignore cpu-limit-on-claim-pod`),
		Args: c.flagsOnly,
		RunE: func(command *cobra.Command, _ []string) error { return l.run(command.Context()) },
	}
	l.from.addTo(command)
	command.Flags().StringSliceVar(&l.ignore, "ignore", nil, "`rules` that find nothing")
	complete(command, "ignore", func(*cobra.Command) []string { return ruleNames() })
	l.output.addTo(command, "output", "o", "how to say it")
	return command
}

func ruleNames() (names []string) {
	for _, rule := range lint.Rules() {
		names = append(names, rule.Name)
	}
	return names
}

// ruleList is for a line of at most 80 characters each.
func ruleList() string {
	var b strings.Builder
	width := len("The rules are ")
	for i, name := range ruleNames() {
		switch {
		case i == 0:
		case width+len(name)+2 > 79:
			b.WriteString(",\n")
			width = 0
		default:
			b.WriteString(", ")
			width += 2
		}
		b.WriteString(name)
		width += len(name)
	}
	return b.String()
}

func (l *linting) run(ctx context.Context) error {
	for _, name := range l.ignore {
		if !slices.Contains(ruleNames(), name) {
			return fmt.Errorf("--ignore %q: there is no such rule, allowed are %s", name, strings.Join(ruleNames(), ", "))
		}
	}
	objects, err := l.from.Snapshot(ctx)
	if err != nil {
		return err
	}
	classes, err := deviceclasses.All()
	if err != nil {
		return &failure{err}
	}
	if kinds := objects.IgnoredKinds(); len(kinds) > 0 {
		l.note("there are no rules for these objects, they are ignored: %s", strings.Join(kinds, ", "))
	}
	report := findings{Looked: 0, Objects: []found{}}
	report.add(newKnown(objects, classes), func(where string) bool {
		return len(l.from.files) == 0 || where != inCluster
	}, l.ignore)
	if err := write(l.stdout, l.output.value, report, report.text); err != nil {
		return &failure{fmt.Errorf("write findings: %w", err)}
	}
	return report.verdict()
}
