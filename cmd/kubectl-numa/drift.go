package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/drift"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// driftDelay is the time between the two comparisons of a cluster. In this time, the
// keeper of a node repairs a partition, and the driver finishes preparing a claim.
const driftDelay = 2 * time.Second

// comparison is the command drift with its flags and argument.
type comparison struct {
	reading
	node  string // "" means all nodes
	delay time.Duration
}

func driftCommand(c cli, command *cobra.Command) runner {
	d := comparison{reading: c.reads(listFormats()), delay: driftDelay}
	d.addDiagnosisTo(command)
	d.output.addSortTo(command, func() columns { return driftColumns })
	d.from.scope.addSelectorTo(command, "nodes")
	command.ValidArgsFunction = d.from.completeNode(func(objects *snapshot.Snapshot) []string {
		return (&diagnosis.Facts{Objects: objects}).Nodes()
	})
	return withNode(&d.node, d.run)
}

func (d *comparison) run(ctx context.Context) error {
	findings, unread, err := d.compare(ctx, nil)
	if err != nil {
		return err
	}
	if len(findings) > 0 && d.from.live() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d.delay):
		}
		again, more, err := d.compare(ctx, nodesWith(findings))
		if err != nil {
			return err
		}
		findings, unread = drift.Lasting(findings, again), append(unread, more...)
	}
	if err := printFindings(&d.reading, kindDifferences, findings, driftColumns, 0, driftRow); err != nil {
		return err
	}
	if len(unread) > 0 {
		return unreadError(unread)
	}
	return problemsError(len(findings))
}

// nodesWith returns the nodes with findings.
func nodesWith(findings []drift.Finding) []string {
	nodes := make(map[string]bool)
	for _, finding := range findings {
		nodes[finding.Node] = true
	}
	return slices.Sorted(maps.Keys(nodes))
}

// compare compares each node once. The second time, only the nodes with findings are
// compared again; the first time, again is nil, and compare also says which pods it ignores.
func (d *comparison) compare(ctx context.Context, again []string) (findings []drift.Finding, unread []diagnosis.Unread, err error) {
	facts, nodes, states, unread, err := d.read(ctx, again)
	if err != nil {
		return nil, nil, err
	}
	if again == nil {
		d.noteLookAlikes(facts)
	}
	findings = []drift.Finding{}
	objects := drift.Index(facts.Objects)
	for _, node := range nodes {
		if state := states[node]; state != nil {
			findings = append(findings, drift.Compare(node, state, objects)...)
		}
	}
	return findings, unread, nil
}

// read reads the claims first, and then the states of the nodes.
func (d *comparison) read(ctx context.Context, again []string) (facts *diagnosis.Facts, nodes []string, states map[string]*nodestate.State, unread []diagnosis.Unread, err error) {
	if !d.from.live() {
		if facts, err = d.from.Facts(ctx); err == nil {
			nodes, err = d.nodes(facts)
		}
		if err != nil {
			return nil, nil, nil, nil, err
		}
		for _, node := range nodes {
			if facts.States[node] == nil {
				unread = append(unread, whyNotGathered(facts, node))
			}
		}
		return facts, nodes, facts.States, unread, nil
	}
	config, client, err := d.from.connect()
	if err != nil {
		return nil, nil, nil, nil, err
	}
	objects, err := d.from.Snapshot(ctx)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	facts, err = collect.Driver(ctx, client, objects, d.from.driver)
	if err != nil {
		return nil, nil, nil, nil, &hintedError{err, []string{"set --driver-namespace if you may not list ClusterRoleBindings; in that namespace, you need the verb list on daemonsets"}}
	}
	if nodes = again; nodes == nil {
		if nodes, err = d.nodes(facts); err != nil {
			return nil, nil, nil, nil, err
		}
	}
	states, unread = collect.States(ctx, collect.NewExec(config, client), facts, nodes)
	return facts, nodes, states, unread, nil
}

// noteLookAlikes says which pods are not believed.
func (c cli) noteLookAlikes(facts *diagnosis.Facts) {
	for _, found := range facts.LookAlikes() {
		c.note("ignoring pods that have the driver's label and are not the driver's: %s", found)
	}
}

// whyNotGathered returns the reason why a bundle does not have the state of a node.
func whyNotGathered(facts *diagnosis.Facts, node string) diagnosis.Unread {
	for _, unread := range facts.Missing {
		if unread.Setting == collect.StateSetting && (unread.Node == node || unread.Node == "") {
			return unread
		}
	}
	return diagnosis.Unread{Node: node, Why: "the bundle does not have it: an older kubectl-numa wrote the bundle"}
}

// nodes returns the names of the nodes to compare.
func (d *comparison) nodes(facts *diagnosis.Facts) ([]string, error) {
	chosen, err := d.from.nodes(facts.Objects, d.node)
	if err != nil || d.node != "" {
		return []string{d.node}, err
	}
	nodes := slices.DeleteFunc(facts.Nodes(), func(node string) bool { return !chosen(node) })
	if len(nodes) == 0 {
		return nil, fmt.Errorf("no node in %s has the driver", strings.TrimSpace(d.from.String()+" "+d.from.scope.String()))
	}
	return nodes, nil
}

// unreadError returns one error, in one line, for all nodes that could not be read.
func unreadError(unread []diagnosis.Unread) error {
	first := unread[0]
	err := fmt.Errorf("read the state of %s: %s", cmp.Or(first.Node, "nodes"), message.OneLine(first.Why))
	if more := len(unread) - 1; more > 0 {
		err = fmt.Errorf("%w; the state of %d more nodes cannot be read either", err, more)
	}
	if first.Denied {
		return &hintedError{err, []string{"bind a Role with the verbs get and create on pods/exec in the namespace of the driver, or ask an administrator for a bundle of gather"}}
	}
	return err
}

const driftColumns columns = "NODE,CHECK,CLAIM,CPUS,WHERE,EXPECTED,DETECTED"

func driftRow(f drift.Finding) []string {
	return []string{f.Node, string(f.Check), cmp.Or(f.Claim, "-"), cmp.Or(f.CPUs.String(), "-"), f.Where, f.Expected, f.Detected}
}
