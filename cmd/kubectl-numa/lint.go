package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/lint"
)

// linting is the command lint with its flags.
type linting struct {
	reading
	ignore []string
}

func lintCommand(c cli, command *cobra.Command) runner {
	l := linting{reading: c.reads(listFormats())}
	command.Long += "\n" + wrap(strings.Join(ruleNames(), ", ")+".")
	l.from.addTo(command)
	command.Flags().StringSliceVar(&l.ignore, "ignore", nil, "`rules` to leave out")
	complete(command, "ignore", func(*cobra.Command) []string { return ruleNames() })
	l.from.scope.addNamespacesTo(command, "objects")
	l.from.scope.addSelectorTo(command, "objects")
	l.output.addTo(command)
	l.output.addSortTo(command, func() columns { return lintColumns })
	return withContext(l.run)
}

func ruleNames() (names []string) {
	for _, rule := range lint.Rules() {
		names = append(names, rule.Name)
	}
	return names
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
		l.note("ignoring objects for which there are no rules: %s", strings.Join(kinds, ", "))
	}
	scope, report := &l.from.scope, findings{Looked: 0, Objects: []found{}}
	report.check(newKnown(objects, classes), func(object metav1.Object, where string) bool {
		return (len(l.from.files) == 0 || where != inCluster) && scope.has(object)
	}, l.ignore)
	if asked := scope.String(); asked != "" && report.Looked == 0 {
		return fmt.Errorf("there are no objects %s in %s", asked, &l.from)
	}
	if err := l.print(document{
		what: "findings", kind: kindLint, value: report, text: report.text, names: report.names, scope: scope,
	}); err != nil {
		return err
	}
	return report.verdict()
}
