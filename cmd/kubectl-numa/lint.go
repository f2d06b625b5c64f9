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

func (c cli) lintCommand() *cobra.Command {
	l := linting{reading: c.reads(listFormats())}
	command := &cobra.Command{
		Use:   "lint",
		Short: "Find mistakes in claims, claim templates, device classes and pods",
		Long: fmt.Sprintf(`Find mistakes in claims, claim templates, device classes and pods.

Of files, lint also checks the pod templates of Deployments, StatefulSets,
DaemonSets, ReplicaSets, ReplicationControllers, Jobs, CronJobs and JobSets.

lint prints what the admission webhook would say: errors, for which the webhook
refuses an object, and warnings. It looks up the objects that an object refers
to in the same place. If a device class is missing there, lint uses the
driver's class of that name. With --from-cluster and --filename, lint checks
only the objects of the files, and looks up other objects in the cluster as
well. --namespace and --selector choose among the objects to check.

The rules are %s;
docs/rules.md explains them. The exit code is 1 if there is an error or a
warning, and 2 if a file cannot be read.`, ruleList()),
		Example: c.examples(`
# check manifests
lint -f manifests/
# check manifests against the classes and nodes of a cluster
lint --from-cluster -f manifests/
# check all objects of a cluster, with a row for each finding
lint -o wide
# check the objects of a team
lint -n team-a
# leave out a rule
lint -f pod.yaml --ignore cpu-limit-on-claim-pod`),
		Args: c.flagsOnly,
		RunE: withContext(l.run),
	}
	l.from.addTo(command)
	command.Flags().StringSliceVar(&l.ignore, "ignore", nil, "`rules` to leave out")
	complete(command, "ignore", func(*cobra.Command) []string { return ruleNames() })
	l.from.scope.addNamespacesTo(command, "objects")
	l.from.scope.addSelectorTo(command, "objects")
	l.output.addTo(command)
	return command
}

func ruleNames() (names []string) {
	for _, rule := range lint.Rules() {
		names = append(names, rule.Name)
	}
	return names
}

// ruleList breaks the names of the rules into lines of at most 80 characters.
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
