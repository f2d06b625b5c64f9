package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// inspection is the command validate with its flags.
type inspection struct{ reading }

func (c cli) validateCommand() *cobra.Command {
	v := inspection{c.reads(listFormats())}
	command := &cobra.Command{
		Use:   "validate",
		Short: "Find problems of a cluster and its nodes",
		Long: `Find problems of a cluster and its nodes, as far as the driver depends on them:
versions, feature gates, what the chart installed, zones, settings of the
kubelets, and pods that hold more than they request. validate changes nothing.
With --selector, it leaves out findings about other nodes.

The exit code is 0 if nothing is wrong, 1 if something is wrong, and 2 if the
cluster cannot be read. If you are not allowed to read something, validate says
so, but does not count it as a problem.`,
		Example: c.examples(`
# is anything wrong?
validate
# is anything wrong with the cluster or these nodes?
validate -l pool=batch
# the same for a bundle that gather wrote, as JSON
validate --from bundle.tar.gz -o json`),
		Args: c.flagsOnly,
		RunE: withContext(v.run),
	}
	v.addDiagnosisTo(command)
	v.from.scope.addSelectorTo(command, "nodes")
	return command
}

func (v *inspection) run(ctx context.Context) error {
	facts, err := v.from.Facts(ctx)
	if err != nil {
		return err
	}
	chosen, err := v.from.nodes(facts.Objects, "")
	if err != nil {
		return err
	}
	findings := slices.DeleteFunc(diagnosis.Validate(facts), func(f diagnosis.Finding) bool { return f.Node != "" && !chosen(f.Node) })
	if err := printFindings(&v.reading, kindFindings, findings, "NODE CHECK COMPONENT SETTING EXPECTED DETECTED AREA", 1, findingRow); err != nil {
		return err
	}
	return problemsError(diagnosis.CountProblems(findings))
}

func findingRow(f diagnosis.Finding) []string {
	return []string{cmp.Or(f.Node, "-"), f.Check, f.Component, f.Setting, f.Expected, f.Detected, f.Area}
}
