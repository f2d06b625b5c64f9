package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
)

// status is what its flags and argument say.
type status struct {
	cli
	from   source
	node   string // "" is all
	output *choice
	width  int
	watch  bool

	shown []byte // what was written last
}

func (c cli) statusCommand() *cobra.Command {
	s := status{cli: c, output: newChoice("table", "json", "yaml", "svg")}
	command := &cobra.Command{
		Use:   "status [NODE]",
		Short: "Show who holds what: CPUs, memory, hugepages and devices of every NUMA node",
		Long: `Show who holds what: CPUs, memory, hugepages and devices of every NUMA node.

It reads ResourceSlices, ResourceClaims, Pods and Nodes, and talks to no node. In
table each letter is a claim, and the dots are free; svg is the same as a
picture. A cluster with many NUMA nodes is a line for each node. json and yaml
have everything; what is not known is null.`,
		Example: c.examples(`
# the cluster that kubectl talks to
status
# one node, drawn anew whenever something changes
status worker-1 --watch
# as a picture
status worker-1 -o svg >worker-1.svg
# the free CPUs of each zone of files that somebody sent
status -f cluster/ -o json | jq '.nodes[].numaNodes[].devices[] | select(.zone).resources[0].free'`),
		Args: oneNodeOrNone,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				s.node = args[0]
			}
			return s.run(command.Context())
		},
		ValidArgsFunction: s.completeNode,
	}
	s.from.addTo(command)
	s.output.addTo(command, "output", "o", "how to show it")
	command.Flags().IntVar(&s.width, "width", 0, fmt.Sprintf(
		"`characters` that a line of the table may have, %d or more (default that of the terminal, else %d)", draw.MinWidth, draw.DefaultWidth))
	command.Flags().BoolVarP(&s.watch, "watch", "w", false, "show it again whenever something changes in the cluster")
	return command
}

// oneNodeOrNone refuses more than the name of a node.
func oneNodeOrNone(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("unexpected argument %q, want one node or none", args[1])
	}
	return nil
}

// completeNode knows the names if what there is can be read.
func (s *status) completeNode(command *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	objects, err := s.from.Snapshot(command.Context())
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, node := range objects.Nodes {
		names = append(names, node.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (s *status) run(ctx context.Context) error {
	if s.width != 0 && s.width < draw.MinWidth {
		return fmt.Errorf("--width %d: want %d or more", s.width, draw.MinWidth)
	}
	if !s.watch {
		objects, err := s.from.Snapshot(ctx)
		if err != nil {
			return err
		}
		return s.show(objects)
	}
	if !s.from.canFollow() {
		return errors.New("--watch: what files say does not change, want a cluster without --filename")
	}
	if s.output.value == "svg" {
		return errors.New("--watch: several pictures make no file, allowed outputs are table, json, yaml")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return s.from.follow(ctx, s.show, func(err error) { s.note("this is not up to date: %s", oneLine(err.Error())) })
}

// show writes what a snapshot says, if it is not what was written last.
func (s *status) show(objects *snapshot.Snapshot) error {
	cluster := holdings.Of(objects)
	if s.node != "" {
		only, found := cluster.Only(s.node)
		if !found {
			return fmt.Errorf("there is no Node %q in %s", s.node, &s.from)
		}
		cluster = only
	}
	var out bytes.Buffer
	if err := s.write(&out, cluster); err != nil {
		return err
	}
	if bytes.Equal(out.Bytes(), s.shown) {
		return nil
	}
	text := append(s.separator(), out.Bytes()...)
	s.shown = out.Bytes()
	if _, err := s.stdout.Write(text); err != nil {
		return &failure{fmt.Errorf("write status: %w", err)}
	}
	return nil
}

// separator is between one writing and the next: a terminal is cleared.
func (s *status) separator() []byte {
	if _, isTerminal := terminalWidth(s.stdout); s.watch && isTerminal && s.output.value == "table" {
		return []byte("\x1b[H\x1b[2J\x1b[3J") // home, clear, and what was scrolled
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
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(cluster)
	case "yaml":
		text, err := yaml.Marshal(cluster)
		out.Write(text)
		return err
	case "svg":
		return chart.SVG(out, cluster)
	}
	return chart.Text(out, cluster, s.textOptions(s.width))
}
