package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// inspection is what the flags of validate say.
type inspection struct {
	cli
	from   source
	output *choice
}

func (c cli) validateCommand() *cobra.Command {
	v := inspection{cli: c, output: newChoice("table", "json", "yaml")}
	command := &cobra.Command{
		Use:   "validate",
		Short: "Say what is wrong with a cluster and its nodes",
		Long: `Say what is wrong with a cluster and its nodes, as far as the driver depends on
them: versions, feature gates, what the chart installed, zones, settings of the
kubelets, and pods that hold more than they request. Nothing is changed.

The exit code is 0 if nothing is wrong, 1 if something is, and 2 if the cluster
cannot be read. What you may not read is said, but it is nothing wrong.`,
		Example: c.examples(`
# is everything as it should be?
validate
# the same for a program, in a cluster that somebody else gathered
validate --from bundle.tar.gz -o json`),
		Args: c.flagsOnly,
		RunE: func(command *cobra.Command, _ []string) error { return v.run(command.Context()) },
	}
	v.from.addDiagnosisTo(command)
	v.output.addTo(command, "output", "o", "how to say it")
	return command
}

func (v *inspection) run(ctx context.Context) error {
	facts, err := v.from.Facts(ctx)
	if err != nil {
		return err
	}
	findings := diagnosis.Validate(facts)
	if err := write(v.stdout, v.output.value, findings, func() string { return findingsTable(findings) }); err != nil {
		return &failure{fmt.Errorf("write findings: %w", err)}
	}
	return foundVerdict(diagnosis.Wrong(findings))
}

func findingsTable(findings []diagnosis.Finding) string {
	if len(findings) == 0 {
		return "nothing found\n"
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tCHECK\tCOMPONENT\tSETTING\tEXPECTED\tDETECTED")
	for _, f := range findings {
		fmt.Fprintln(table, strings.Join([]string{cmp.Or(f.Node, "-"), f.Check, f.Component, f.Setting, f.Expected, f.Detected}, "\t"))
	}
	_ = table.Flush() // a Builder takes everything
	return text.String()
}
