package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pciname"
)

// topology is the command topology with its flags.
type topology struct {
	cli
	root   string
	output *printer
	width  int
}

func (c cli) topologyCommand() *cobra.Command {
	t := topology{cli: c, output: newPrinter(formatTable, formatJSON, formatYAML, formatPath, formatSVG)}
	command := &cobra.Command{
		Use:   "topology",
		Short: "Draw a machine: NUMA nodes, caches, cores, memory and PCI devices",
		Long: `Draw a machine: NUMA nodes, caches, cores, memory and PCI devices.

table is a drawing for a terminal, and svg is the same as a picture. json and
yaml list all CPUs and devices; values that the kernel does not say are null.
jsonpath=TEMPLATE reads json.`,
		Example: c.examples(`
# this machine
topology
# another machine, whose sys and proc were copied, as a picture
topology --root /tmp/machine -o svg >machine.svg
# the CPUs of NUMA node 1
topology -o jsonpath='{.nodes[?(@.id==1)].cpus}'`),
		Args: c.flagsOnly,
		RunE: func(*cobra.Command, []string) error { return t.run() },
	}
	addRoot(command, &t.root)
	t.output.addTo(command)
	addWidth(command, &t.width)
	return command
}

func (t *topology) run() error {
	if err := checkWidth(t.width); err != nil {
		return err
	}
	machine, names, err := t.read()
	if err != nil {
		return err
	}
	content := draw.Topology(machine)
	drawing := document{
		what: "topology", kind: kindTopology, value: content,
		json: func(w io.Writer) error { return draw.JSON(w, content) }, // with short lists in one line
		svg:  func(w io.Writer) error { return draw.SVGWithNames(w, machine, names.Lookup) },
	}
	if t.output.format != formatTable {
		return t.output.print(t.stdout, drawing)
	}
	options := t.textOptions(t.width)
	options.Names = names.Lookup
	if err := draw.Text(raw(t.stdout), machine, options); err != nil {
		return drawing.unwritten(err)
	}
	return nil
}

// read reads the machine and the names of its PCI functions. Without names, the drawing
// has their ids.
func (t *topology) read() (machine numa.Machine, names pciname.Names, err error) {
	if machine, err = readMachine(t.root); err != nil {
		return machine, names, err
	}
	names, unnamed := pciname.Read(t.root)
	if unnamed != nil {
		t.note("PCI functions are drawn without names: %s", message.OneLine(unnamed.Error()))
	}
	return machine, names, nil
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
