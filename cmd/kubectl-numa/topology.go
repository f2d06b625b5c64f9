package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pciname"
)

// topology is the command topology with its flags.
type topology struct {
	cli
	root   string
	bundle string // path of a bundle that gather wrote, instead of root
	node   string // of the bundle
	output *printer
	width  int
}

func topologyCommand(c cli, command *cobra.Command) runner {
	t := topology{cli: c, output: newPrinter(formatTable, formatJSON, formatYAML, formatPath, formatSVG)}
	addRoot(command, &t.root)
	command.Flags().StringVar(&t.bundle, "from", "", "`bundle` that gather wrote, to read instead of --root")
	command.Flags().StringVar(&t.node, "node", "", "`name` of a node of the bundle")
	_ = command.MarkFlagFilename("from", "tar.gz") // for completion in shells; the flag exists
	complete(command, "node", func(*cobra.Command) []string {
		read, _ := readBundle(t.bundle) // without one, there are no names to complete
		return slices.Sorted(maps.Keys(read.Machines))
	})
	t.output.addTo(command)
	addWidth(command, &t.width)
	return func(context.Context, []string) error { return t.run(command.Flags().Changed("root")) }
}

func (t *topology) run(rootGiven bool) error {
	if err := checkWidth(t.width); err != nil {
		return err
	}
	machine, err := t.read(rootGiven)
	if err != nil {
		return err
	}
	content := draw.Topology(machine)
	drawing := document{
		what: "topology", kind: kindTopology, value: content,
		json: func(w io.Writer) error { return draw.JSON(w, content) }, // with short lists in one line
		svg:  func(w io.Writer) error { return draw.SVG(w, machine, pciname.Lookup) },
	}
	if t.output.format != formatTable {
		return t.output.print(t.stdout, drawing)
	}
	options := t.textOptions(t.width)
	options.Names = pciname.Lookup
	if err := draw.Text(raw(t.stdout), machine, options); err != nil {
		return drawing.unwritten(err)
	}
	return nil
}

func (t *topology) read(rootGiven bool) (numa.Machine, error) {
	switch {
	case t.bundle != "" && rootGiven:
		return numa.Machine{}, errors.New("--root and --from: set only one of them")
	case t.bundle != "" && t.node == "":
		return numa.Machine{}, errors.New("--from: a bundle has a machine for each node: set --node")
	case t.bundle == "" && t.node != "":
		return numa.Machine{}, errors.New("--node names a node of a bundle: set --from")
	case t.bundle != "":
		return gatheredMachine(t.bundle, t.node)
	}
	return readMachine(t.root)
}

// addWidth adds the flag for the width of a drawing.
func addWidth(command *cobra.Command, width *int) {
	command.Flags().IntVar(width, "width", 0, fmt.Sprintf(
		"`characters` per line of the table, %d or more (default: the width of the terminal, else %d)", draw.MinWidth, draw.DefaultWidth))
}

func checkWidth(width int) error {
	if width != 0 && width < draw.MinWidth {
		return fmt.Errorf("--width %d: want %d or more", width, draw.MinWidth)
	}
	return nil
}

// textOptions returns the options for stdout. width is the user's choice, or 0 for the
// width of the terminal.
func (c cli) textOptions(width int) draw.TextOptions {
	terminal, isTerminal := terminalWidth(c.stdout)
	return draw.TextOptions{Width: cmp.Or(width, terminal), Colour: isTerminal && c.env("NO_COLOR") == "" && c.env("TERM") != "dumb"}
}

// terminalWidth returns 0 if the writer is not a terminal, or if the terminal does not
// know its width.
func terminalWidth(w io.Writer) (width int, isTerminal bool) {
	file, ok := raw(w).(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, true
	}
	return width, true
}
