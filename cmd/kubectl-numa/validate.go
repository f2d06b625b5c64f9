package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// inspection is the command validate with its flags.
type inspection struct{ reading }

func (c cli) validateCommand() *cobra.Command {
	v := inspection{c.reads()}
	command := &cobra.Command{
		Use:   "validate",
		Short: "Find problems of a cluster and its nodes",
		Long: `Find problems of a cluster and its nodes, as far as the driver depends on them:
versions, feature gates, what the chart installed, zones, settings of the
kubelets, and pods that hold more than they request. validate changes nothing.

The exit code is 0 if nothing is wrong, 1 if something is wrong, and 2 if the
cluster cannot be read. If you are not allowed to read something, validate says
so, but does not count it as a problem.`,
		Example: c.examples(`
# is anything wrong?
validate
# the same for a bundle that gather wrote, as JSON
validate --from bundle.tar.gz -o json`),
		Args: c.flagsOnly,
		RunE: withContext(v.run),
	}
	v.from.addDiagnosisTo(command)
	v.from.addDriverTo(command)
	v.output.addOutputTo(command)
	return command
}

func (v *inspection) run(ctx context.Context) error {
	facts, err := v.from.Facts(ctx)
	if err != nil {
		return err
	}
	findings := diagnosis.Validate(facts)
	if err := v.print("findings", kindFindings, itemList[diagnosis.Finding]{findings}, func() string { return findingsTable(findings) }); err != nil {
		return err
	}
	return problemsError(diagnosis.CountProblems(findings))
}

func findingsTable(findings []diagnosis.Finding) string {
	if len(findings) == 0 {
		return noProblems
	}
	rows := [][]string{{"NODE", "CHECK", "COMPONENT", "SETTING", "EXPECTED", "DETECTED"}}
	for _, f := range findings {
		rows = append(rows, []string{cmp.Or(f.Node, "-"), f.Check, f.Component, f.Setting, f.Expected, f.Detected})
	}
	return table(rows)
}
