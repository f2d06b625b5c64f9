package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
)

// status is the command status with its flags and argument.
type status struct {
	reading
	node     string // "" means all nodes
	width    int
	watch    bool
	cache    bool // only level-3 caches
	askNodes bool // also what only nodes know of them

	shown []byte // what was last written
}

func statusCommand(c cli, command *cobra.Command) runner {
	s := status{reading: c.reads(append(listFormats(), formatSVG))}
	s.from.addTo(command)
	s.from.scope.addNamespacesTo(command, "claims")
	s.from.scope.addSelectorTo(command, "nodes")
	s.output.addTo(command)
	s.output.addSortTo(command, s.columns)
	addWidth(command, &s.width)
	command.Flags().BoolVar(&s.cache, "cache", false, "show only the ways of level-3 caches, their classes and limits of bandwidth")
	command.Flags().BoolVar(&s.askNodes, "ask-nodes", false, "with --cache: also run a program in the driver's pod on each node; needs the verbs get and create on pods/exec there")
	command.Flags().BoolVarP(&s.watch, "watch", "w", false, "show the status again whenever something changes in the cluster")
	command.ValidArgsFunction = s.from.completeNode(func(objects *snapshot.Snapshot) (names []string) {
		for _, node := range objects.Nodes {
			names = append(names, node.Name)
		}
		return names
	})
	return withNode(&s.node, s.run)
}

func (s *status) run(ctx context.Context) error {
	if err := checkWidth(s.width); err != nil {
		return err
	}
	if err := s.checkAsk(); err != nil {
		return err
	}
	show := func(objects *snapshot.Snapshot) error { return s.show(ctx, objects) }
	if !s.watch {
		objects, err := s.from.Snapshot(ctx)
		if err != nil {
			return err
		}
		return show(objects)
	}
	if !s.from.canFollow() {
		return errors.New("--watch: files do not change, want a cluster without --filename")
	}
	if s.output.format == formatSVG {
		return errors.New("--watch and --output svg: a file holds only one picture, set another format")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return s.from.follow(ctx, show, func(err error) { s.note("the status is out of date: %s", message.OneLine(err.Error())) })
}

// show writes the status if it differs from what was last written.
func (s *status) show(ctx context.Context, objects *snapshot.Snapshot) error {
	cluster, err := s.chosen(objects)
	if err != nil {
		return err
	}
	d, drawing, err := s.answer(ctx, objects, cluster)
	if err != nil {
		return err
	}
	out := s.stdout
	var shown []byte
	if s.draws() {
		var text bytes.Buffer
		err = drawing(&text, s.textOptions(s.width))
		shown, out = text.Bytes(), raw(out)
	} else {
		shown, err = d.in(s.output)
	}
	if err != nil || bytes.Equal(shown, s.shown) {
		return err
	}
	text := append(s.separator(), shown...)
	s.shown = shown
	if _, err := out.Write(text); err != nil {
		return d.unwritten(err)
	}
	return nil
}

// drawing writes an answer for people.
type drawing func(w io.Writer, o draw.TextOptions) error

// answer returns the answer about the cluster, or about its caches.
func (s *status) answer(ctx context.Context, objects *snapshot.Snapshot, cluster holdings.Cluster) (document, drawing, error) {
	if !s.cache {
		return statusOf(cluster), func(w io.Writer, o draw.TextOptions) error { return chart.Text(w, cluster, o) }, nil
	}
	d, asked := cachesOf(cluster), chart.Resctrl(nil)
	if s.askNodes {
		var err error
		if asked, err = s.ask(ctx, objects, cluster); err != nil {
			return document{}, nil, err
		}
		d = cacheUseOf(cluster, asked)
	}
	return d, func(w io.Writer, o draw.TextOptions) error { return chart.CachesText(w, cluster, asked, o) }, nil
}

// statusOf returns the answer about everything that claims hold.
func statusOf(cluster holdings.Cluster) document {
	return document{
		what: "status", kind: kindStatus, value: cluster,
		text: func(style style) string { return devicesTable(style, cluster) },
		svg:  func(w io.Writer) error { return chart.SVG(w, cluster) },
		names: func() []objectName {
			return nodesOf(cluster.Nodes, func(n holdings.Node) string { return n.Name })
		},
	}
}

// chosen returns the part of the cluster that the user wants to see.
func (s *status) chosen(objects *snapshot.Snapshot) (holdings.Cluster, error) {
	cluster, scope := holdings.Of(objects), &s.from.scope
	if scope.labels.given() {
		chosen, err := s.from.nodes(objects, s.node)
		if err != nil {
			return cluster, err
		}
		cluster = cluster.On(chosen)
	}
	if s.node != "" {
		only, found := cluster.Only(s.node)
		if !found {
			return cluster, fmt.Errorf("there is no Node %q in %s", s.node, &s.from)
		}
		cluster = only
	}
	if scope.namespace != "" {
		cluster = cluster.In(scope.namespace)
	}
	return cluster, nil
}

const deviceColumns columns = "NODE,NUMA NODE,DEVICE,STATE,FREE,CLAIMS"

// columns returns those of the rows that the flags ask for.
func (s *status) columns() columns {
	switch {
	case s.cache && s.askNodes:
		return useColumns
	case s.cache:
		return poolColumns
	}
	return deviceColumns
}

// draws reports whether the status is a drawing instead of rows.
func (s *status) draws() bool { return s.output.format == formatTable && s.output.sortBy == "" }

// devicesTable returns a row for each device.
func devicesTable(s style, cluster holdings.Cluster) string {
	rows := [][]string{deviceColumns.headers()}
	add := func(node, zone string, devices []holdings.Device) {
		for i := range devices {
			device := &devices[i]
			var free []string
			for _, r := range device.Shown() {
				free = append(free, fmt.Sprintf("%s %s of %s", r.Name, amountText(r.Free), amountText(r.Total)))
			}
			name := deviceName{device.Driver, device.Pool, device.Name}.String()
			rows = append(rows, []string{node, zone, name, string(device.State), cmp.Or(strings.Join(free, ", "), "-"), claimsOf(device.Shares)})
		}
	}
	for _, node := range cluster.Nodes {
		for _, place := range node.View().Places {
			zone := "-"
			if place.NUMANode != nil {
				zone = strconv.FormatInt(*place.NUMANode, 10)
			}
			add(node.Name, zone, place.Devices)
		}
	}
	add("-", "-", cluster.Elsewhere)
	return s.table(rows, 0)
}

// claimsOf returns the names of the claims of some shares, or "-" if there are none.
func claimsOf(shares []holdings.Share) string {
	var claims []string
	for i := range shares {
		if claim := shares[i].Claim; !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	return cmp.Or(strings.Join(claims, ","), "-")
}

// amountText returns "?" for an amount that is not known.
func amountText(amount *resource.Quantity) string {
	if amount == nil {
		return "?"
	}
	return spelling.Text(*amount)
}

// separator returns what to write before the next status. On a terminal, it clears the
// screen.
func (s *status) separator() []byte {
	if _, isTerminal := terminal(s.stdout); s.watch && isTerminal && s.draws() {
		return []byte("\x1b[H\x1b[2J\x1b[3J") // move to the top, clear the screen, clear the scrollback
	}
	switch {
	case s.shown == nil || s.output.format == formatJSON:
		return nil
	case s.output.format == formatYAML:
		return []byte("---\n")
	}
	return []byte("\n")
}
