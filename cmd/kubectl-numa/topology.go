package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
)

// topology is what its flags say.
type topology struct {
	cli
	root   string
	output *choice
	width  int
}

func (c cli) topologyCommand() *cobra.Command {
	t := topology{cli: c, output: newChoice("table", "json", "yaml", "svg")}
	command := &cobra.Command{
		Use:   "topology",
		Short: "Draw a machine: NUMA nodes, caches, cores, memory and PCI devices",
		Long: `Draw a machine: NUMA nodes, caches, cores, memory and PCI devices.

table is a drawing for a terminal; svg is the same as a picture. json and yaml
have all CPUs and devices one by one; what the kernel does not say is null.`,
		Example: c.examples(`
# this machine
topology
# a copy of another one's sys and proc, as a picture
topology --root /tmp/machine -o svg >machine.svg
# the CPUs of NUMA node 1
topology -o json | jq -r '.nodes[] | select(.id == 1).cpus'`),
		Args: c.flagsOnly,
		RunE: func(*cobra.Command, []string) error { return t.run() },
	}
	addRoot(command, &t.root)
	t.output.addTo(command, "output", "o", "how to show it")
	command.Flags().IntVar(&t.width, "width", 0, fmt.Sprintf(
		"`characters` that a line of the table may have, %d or more (default that of the terminal, else %d)", draw.MinWidth, draw.DefaultWidth))
	return command
}

func (t *topology) run() error {
	if t.width != 0 && t.width < draw.MinWidth {
		return fmt.Errorf("--width %d: want %d or more", t.width, draw.MinWidth)
	}
	machine, err := readMachine(t.root)
	if err != nil {
		return err
	}
	if err := t.write(machine); err != nil {
		return &failure{fmt.Errorf("write topology: %w", err)}
	}
	return nil
}

func (t *topology) write(machine numa.Machine) error {
	switch t.output.value {
	case "json":
		return draw.JSON(t.stdout, draw.Topology(machine))
	case "yaml":
		text, err := yaml.Marshal(draw.Topology(machine))
		if err != nil {
			return err
		}
		_, err = t.stdout.Write(text)
		return err
	case "svg":
		return draw.SVG(t.stdout, machine)
	}
	return draw.Text(t.stdout, machine, t.textOptions(t.width))
}

// textOptions are those of the terminal, if there is one; a width that is not 0 is
// the user's.
func (c cli) textOptions(width int) draw.TextOptions {
	terminal, isTerminal := terminalWidth(c.stdout)
	return draw.TextOptions{Width: cmp.Or(width, terminal), Colour: isTerminal && c.env("NO_COLOR") == "" && c.env("TERM") != "dumb"}
}

// terminalWidth is 0 for what is no terminal, or does not know.
func terminalWidth(w io.Writer) (width int, isTerminal bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, true
	}
	return width, true
}
