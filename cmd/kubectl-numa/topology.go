package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pciname"
)

// topology is the command topology with its flags.
type topology struct {
	cli
	from   origin
	bundle string // path of a bundle that gather wrote, instead of from
	node   string // of the bundle
	output *printer
	width  int
	matrix bool
}

func topologyCommand(c cli, command *cobra.Command) runner {
	t := topology{cli: c, output: newPrinter(formatTable, formatJSON, formatYAML, formatPath, formatSVG)}
	t.from.addTo(command)
	command.Flags().StringVar(&t.bundle, "from", "", "`bundle` that gather wrote, to read instead of --root or --preset")
	command.Flags().StringVar(&t.node, "node", "", "`name` of a node of the bundle")
	_ = command.MarkFlagFilename("from", "tar.gz") // for completion in shells; the flag exists
	complete(command, "node", func(*cobra.Command) []string {
		read, _ := readBundle(t.bundle) // without one, there are no names to complete
		return slices.Sorted(maps.Keys(read.Machines))
	})
	command.Flags().BoolVar(&t.matrix, "matrix", false, "show how near devices and NUMA nodes are to each GPU or, without one, to each network card or drive")
	t.output.addTo(command)
	addWidth(command, &t.width)
	return func(context.Context, []string) error { return t.run() }
}

func (t *topology) run() error {
	if err := checkWidth(t.width); err != nil {
		return err
	}
	machine, err := t.read()
	if err != nil {
		return err
	}
	if t.matrix {
		return t.printMatrix(machine)
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

func (t *topology) printMatrix(machine numa.Machine) error {
	if t.output.format == formatSVG {
		return errors.New("--matrix has no picture: want another --output than svg")
	}
	matrix := draw.NewMatrix(machine)
	return t.output.print(t.stdout, document{
		what: "matrix", kind: kindMatrix, value: matrix,
		text: func(s style) string {
			if len(matrix.Columns) == 0 {
				return "no GPUs, network cards or drives\n"
			}
			text := s.table(matrix.Table(), 0) + "\n"
			for _, word := range matrix.Legend() {
				text += fmt.Sprintf("%-6s  %s\n", word, word.Meaning())
			}
			return text
		},
	})
}

func (t *topology) read() (numa.Machine, error) {
	if t.bundle == "" {
		if t.node != "" {
			return numa.Machine{}, errors.New("--node names a node of a bundle: set --from")
		}
		return t.from.read()
	}
	for _, name := range []string{"root", "preset"} {
		if t.from.flags.Changed(name) {
			return numa.Machine{}, fmt.Errorf("--%s and --from: set only one of them", name)
		}
	}
	if t.node == "" {
		return numa.Machine{}, errors.New("--from: a bundle has a machine for each node: set --node")
	}
	return gatheredMachine(t.bundle, t.node)
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
