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

func (c cli) validateCommand() *cobra.Command {
	v := inspection{reading: c.reads(listFormats())}
	command := &cobra.Command{
		Use:   "validate",
		Short: "Find problems of a cluster and its nodes",
		Long: `Find problems of a cluster and its nodes, as far as the driver depends on them:
versions, feature gates, what the chart installed, zones, settings of the
kubelets, and pods that hold more than they request. validate changes nothing.
With --selector, it leaves out findings about other nodes.

The exit code is 0 if nothing is wrong, 1 if something is wrong, and 2 if the
cluster cannot be read. If you are not allowed to read something, validate says
so, but does not count it as a problem.

With --ask-nodes, validate also finds what only a node knows, such as a
container runtime without NRI. For that, it runs a program in the driver's pod
on each node, as drift does. A bundle of gather has these answers.`,
		Example: c.examples(`
# is anything wrong?
validate
# also ask the nodes
validate --ask-nodes
# is anything wrong with the cluster or these nodes?
validate -l pool=batch
# the same for a bundle that gather wrote, as JSON
validate --from bundle.tar.gz -o json`),
		Args: c.flagsOnly,
		RunE: withContext(v.run),
	}
	command.Flags().BoolVar(&v.askNodes, "ask-nodes", false, "also run a program in the driver's pod on each node; needs the verbs get and create on pods/exec there")
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
	if err == nil && v.askNodes {
		err = v.ask(ctx, facts, chosen)
	}
	if err != nil {
		return err
	}
	findings := slices.DeleteFunc(diagnosis.Validate(facts), func(f diagnosis.Finding) bool { return f.Node != "" && !chosen(f.Node) })
	if err := printFindings(&v.reading, kindFindings, findings, "NODE CHECK COMPONENT SETTING EXPECTED DETECTED AREA", 1, findingRow); err != nil {
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

func findingRow(f diagnosis.Finding) []string {
	return []string{cmp.Or(f.Node, "-"), f.Check, f.Component, f.Setting, f.Expected, f.Detected, f.Area}
}
