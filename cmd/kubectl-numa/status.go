package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// status is the command status with its flags and argument.
type status struct {
	reading
	node  string // "" means all nodes
	width int
	watch bool

	shown []byte // what was last written
}

func (c cli) statusCommand() *cobra.Command {
	s := status{reading: c.reads("table", "json", "yaml", "svg")}
	command := &cobra.Command{
		Use:   "status [NODE]",
		Short: "Show which claims hold the CPUs, memory, hugepages and devices of every NUMA node",
		Long: `Show which claims hold the CPUs, memory, hugepages and devices of every NUMA
node.

status reads Nodes, Pods, ResourceSlices, ResourceClaims and DeviceTaintRules.
It does not talk to nodes. In a table, each letter is a claim and each dot is
free; svg is the same as a picture. For a cluster with many NUMA nodes, the
table has one line for each node. json and yaml have everything; unknown values
are null.`,
		Example: c.examples(`
# the cluster that kubectl talks to
status
# one node, drawn again whenever something changes
status worker-1 --watch
# one node as a picture
status worker-1 -o svg >worker-1.svg
# the free CPUs of each zone, from files with the objects of a cluster
status -f cluster/ -o json | jq '.nodes[].numaNodes[].devices[] | select(.zone).resources[0].free'`),
		Args: oneNodeOrNone,
		RunE: withNode(&s.node, s.run),
		ValidArgsFunction: s.completeNode(func(objects *snapshot.Snapshot) (names []string) {
			for _, node := range objects.Nodes {
				names = append(names, node.Name)
			}
			return names
		}),
	}
	s.from.addTo(command)
	s.output.addOutputTo(command)
	addWidth(command, &s.width)
	command.Flags().BoolVarP(&s.watch, "watch", "w", false, "show the status again whenever something changes in the cluster")
	return command
}

func (s *status) run(ctx context.Context) error {
	if err := checkWidth(s.width); err != nil {
		return err
	}
	if !s.watch {
		objects, err := s.from.Snapshot(ctx)
		if err != nil {
			return err
		}
		return s.show(objects)
	}
	if !s.from.canFollow() {
		return errors.New("--watch: files do not change, want a cluster without --filename")
	}
	if s.output.value == "svg" {
		return errors.New("--watch: a file cannot hold several pictures, allowed outputs are table, json, yaml")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return s.from.follow(ctx, s.show, func(err error) { s.note("the status is out of date: %s", message.OneLine(err.Error())) })
}

// show writes the status if it differs from what was last written.
func (s *status) show(objects *snapshot.Snapshot) error {
	cluster := holdings.Of(objects)
	if s.node != "" {
		only, found := cluster.Only(s.node)
		if !found {
			return fmt.Errorf("there is no Node %q in %s", s.node, &s.from)
		}
		cluster = only
	}
	var drawn bytes.Buffer
	if err := s.write(&drawn, cluster); err != nil {
		return err
	}
	if bytes.Equal(drawn.Bytes(), s.shown) {
		return nil
	}
	text := append(s.separator(), drawn.Bytes()...)
	s.shown = drawn.Bytes()
	out := s.stdout
	if s.output.value == "table" {
		out = raw(out)
	}
	if _, err := out.Write(text); err != nil {
		return &failure{fmt.Errorf("write status: %w", err)}
	}
	return nil
}

// separator returns what to write before the next status. On a terminal, it clears the
// screen.
func (s *status) separator() []byte {
	if _, isTerminal := terminalWidth(s.stdout); s.watch && isTerminal && s.output.value == "table" {
		return []byte("\x1b[H\x1b[2J\x1b[3J") // move to the top, clear the screen, clear the scrollback
	}
	switch {
	case s.shown == nil || s.output.value == "json":
		return nil
	case s.output.value == "yaml":
		return []byte("---\n")
	}
	return []byte("\n")
}

func (s *status) write(out *bytes.Buffer, cluster holdings.Cluster) error {
	switch s.output.value {
	case "json", "yaml":
		return write(out, s.output.value, kindStatus, cluster, nil)
	case "svg":
		return chart.SVG(out, cluster)
	}
	return chart.Text(out, cluster, s.textOptions(s.width))
}
