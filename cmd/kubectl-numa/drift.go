package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/drift"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// driftLasts is how long something has to differ in a cluster: the keeper of a
// node has repaired a partition before, and a claim is prepared.
const driftLasts = 2 * time.Second

// drifting is what its flags and argument say.
type drifting struct {
	cli
	from   source
	node   string // "" is all
	output *choice
	lasts  time.Duration
}

func (c cli) driftCommand() *cobra.Command {
	d := drifting{cli: c, output: newChoice("table", "json", "yaml"), lasts: driftLasts}
	command := &cobra.Command{
		Use:   "drift [NODE]",
		Short: "Say where claims, checkpoint, CDI specs and cgroups of nodes do not agree",
		Long: `Say where claims, checkpoint, CDI specs and cgroups of nodes do not agree. Nothing
is changed.

The node's side comes from a program that is run in the pod of the driver there:
you need the verbs get and create on pods/exec in its namespace. What was there
only for a moment is not a finding.

The exit code is 0 if nothing is found, 1 if something is, and 2 if the cluster
or a node cannot be read.`,
		Example: c.examples(`
# every node with the driver
drift
# one node, for a program
drift worker-1 -o json
# of what somebody else gathered
drift --from bundle.tar.gz`),
		Args: oneNodeOrNone,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				d.node = args[0]
			}
			return d.run(command.Context())
		},
		ValidArgsFunction: d.completeNode,
	}
	d.from.addDiagnosisTo(command)
	d.output.addTo(command, "output", "o", "how to say it")
	return command
}

// completeNode knows the nodes with the driver if what there is can be read.
func (d *drifting) completeNode(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	objects, err := d.from.Snapshot(command.Context())
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return (&diagnosis.Facts{Objects: objects}).Nodes(), cobra.ShellCompDirectiveNoFileComp
}

func (d *drifting) run(ctx context.Context) error {
	findings, unread, err := d.look(ctx)
	if err != nil {
		return err
	}
	if len(findings) > 0 && d.from.live() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d.lasts):
		}
		var again []drift.Finding
		if again, unread, err = d.look(ctx); err != nil {
			return err
		}
		findings = drift.Lasting(findings, again)
	}
	if err := write(d.stdout, d.output.value, findings, func() string { return driftTable(findings) }); err != nil {
		return &failure{fmt.Errorf("write findings: %w", err)}
	}
	if len(unread) > 0 {
		return d.unreadError(unread)
	}
	return foundVerdict(len(findings))
}

// look compares each node once.
func (d *drifting) look(ctx context.Context) (findings []drift.Finding, unread []diagnosis.Unread, err error) {
	facts, states, unread, err := d.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	findings = []drift.Finding{}
	for _, node := range d.nodes(facts) {
		if state := states[node]; state != nil {
			findings = append(findings, drift.Compare(node, state, facts.Objects)...)
		}
	}
	return findings, unread, nil
}

// read reads the claims, and then what nodes have of them.
func (d *drifting) read(ctx context.Context) (facts *diagnosis.Facts, states map[string]*nodestate.State, unread []diagnosis.Unread, err error) {
	if d.from.live() {
		config, client, err := d.from.connect()
		if err != nil {
			return nil, nil, nil, err
		}
		objects, err := d.from.Snapshot(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		facts = &diagnosis.Facts{Objects: objects}
		if err := d.check(facts); err != nil {
			return nil, nil, nil, err
		}
		states, unread = collect.States(ctx, collect.NewExec(config, client), facts, d.nodes(facts))
		return facts, states, unread, nil
	}
	if facts, err = d.from.Facts(ctx); err == nil {
		err = d.check(facts)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	for _, node := range d.nodes(facts) {
		if facts.States[node] == nil {
			unread = append(unread, notGathered(facts, node))
		}
	}
	return facts, facts.States, unread, nil
}

// notGathered is why a bundle does not have the state of a node.
func notGathered(facts *diagnosis.Facts, node string) diagnosis.Unread {
	for _, unread := range facts.Missing {
		if unread.Setting == collect.StateSetting && (unread.Node == node || unread.Node == "") {
			return unread
		}
	}
	return diagnosis.Unread{Node: node, Why: "the bundle does not have it: it was gathered by an older kubectl-numa"}
}

// nodes are those to compare.
func (d *drifting) nodes(facts *diagnosis.Facts) []string {
	if d.node != "" {
		return []string{d.node}
	}
	return facts.Nodes()
}

func (d *drifting) check(facts *diagnosis.Facts) error {
	switch nodes := facts.Nodes(); {
	case d.node != "" && facts.Objects.Node(d.node) == nil:
		return fmt.Errorf("there is no Node %q in %s", d.node, &d.from)
	case d.node == "" && len(nodes) == 0:
		return fmt.Errorf("no node in %s has the driver", &d.from)
	}
	return nil
}

// unreadError is one line for all nodes that could not be read.
func (d *drifting) unreadError(unread []diagnosis.Unread) error {
	first := unread[0]
	err := fmt.Errorf("read the state of %s: %s", cmp.Or(first.Node, "nodes"), oneLine(first.Why))
	if more := len(unread) - 1; more > 0 {
		err = fmt.Errorf("%w; and of %d more", err, more)
	}
	if first.Denied {
		return &hintedError{err, []string{"bind a Role with the verbs get and create on pods/exec in the namespace of the driver, or ask for a bundle of gather"}}
	}
	return err
}

func driftTable(findings []drift.Finding) string {
	if len(findings) == 0 {
		return "nothing found\n"
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tCHECK\tCLAIM\tCPUS\tWHERE\tEXPECTED\tDETECTED")
	for _, f := range findings {
		fmt.Fprintln(table, strings.Join([]string{
			f.Node, string(f.Check), cmp.Or(f.Claim, "-"), cmp.Or(f.CPUs.String(), "-"), f.Where, f.Expected, f.Detected,
		}, "\t"))
	}
	_ = table.Flush() // a Builder takes everything
	return text.String()
}

// foundVerdict is an error if something was found.
func foundVerdict(found int) error {
	switch found {
	case 0:
		return nil
	case 1:
		return &failure{errors.New("1 thing is not as it should be")}
	}
	return &failure{fmt.Errorf("%d things are not as they should be", found)}
}
