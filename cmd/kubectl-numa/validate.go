package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
)

// inspection is the command validate with its flags.
type inspection struct {
	reading
	askNodes bool
}

func validateCommand(c cli, command *cobra.Command) runner {
	v := inspection{reading: c.reads(listFormats())}
	command.Flags().BoolVar(&v.askNodes, "ask-nodes", false, "also run a program in the driver's pod on each node; needs the verbs get and create on pods/exec there")
	v.addDiagnosisTo(command)
	v.output.addSortTo(command, func() columns { return findingColumns })
	v.from.scope.addSelectorTo(command, "nodes")
	return withContext(v.run)
}

func (v *inspection) run(ctx context.Context) error {
	facts, err := v.from.Facts(ctx)
	if err != nil {
		return err
	}
	chosen, err := v.from.nodes(facts.Objects, "")
	if err == nil && v.askNodes {
		err = v.ask(ctx, facts, chosen)
	}
	if err != nil {
		return err
	}
	findings := slices.DeleteFunc(diagnosis.Validate(facts), func(f diagnosis.Finding) bool { return f.Node != "" && !chosen(f.Node) })
	if err := printFindings(&v.reading, kindFindings, findings, findingColumns, 1, findingRow); err != nil {
		return err
	}
	return problemsError(diagnosis.CountProblems(findings))
}

// ask adds what the chosen nodes say to the facts.
func (v *inspection) ask(ctx context.Context, facts *diagnosis.Facts, chosen func(node string) bool) error {
	if !v.from.live() {
		return errors.New("--ask-nodes: a bundle has the answers of the nodes, want a cluster without --from")
	}
	config, client, err := v.from.connect()
	if err != nil {
		return err
	}
	nodes := slices.DeleteFunc(facts.Nodes(), func(node string) bool { return !chosen(node) })
	states, unread := collect.HostStates(ctx, collect.NewExec(config, client), facts, nodes)
	facts.States, facts.Unread = states, append(facts.Unread, unread...)
	return nil
}

const findingColumns columns = "NODE,CHECK,COMPONENT,SETTING,EXPECTED,DETECTED,AREA"

func findingRow(f diagnosis.Finding) []string {
	return []string{cmp.Or(f.Node, "-"), f.Check, f.Component, f.Setting, f.Expected, f.Detected, f.Area}
}
