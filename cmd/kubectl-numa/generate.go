package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

// generated holds the flags that declare a machine.
type generated struct {
	preset    string
	make      *choice
	numbering *choice
	counts    fake.Machine // only the fields that have a flag
	memory    string
	hugepages map[string]int
}

func newGenerated() *generated {
	return &generated{
		make:      newChoice("intel", "amd", "arm"),
		numbering: newChoice("blocks", "interleaved", "adjacent"),
		counts:    fake.Machine{Sockets: 2, ZonesPerSocket: 1, L3sPerSocket: 1, CoresPerSocket: 8, Threads: 2},
		memory:    "16Gi",
	}
}

// layoutFlags are the flags that cannot be combined with --preset.
var layoutFlags = [...]string{"make", "numbering", "sockets", "nodes-per-socket", "l3s-per-socket", "cores-per-socket", "threads", "memory", "hugepages"}

func (g *generated) addTo(command *cobra.Command) {
	flags := command.Flags()
	addPreset(command, &g.preset)
	g.make.addTo(command, "make", "", "maker of the processors")
	g.numbering.addTo(command, "numbering", "", "order of CPU ids: siblings last (blocks), the same with alternating sockets (interleaved), or siblings side by side (adjacent)")
	flags.IntVar(&g.counts.Sockets, "sockets", g.counts.Sockets, "`number` of sockets")
	flags.IntVar(&g.counts.ZonesPerSocket, "nodes-per-socket", g.counts.ZonesPerSocket, "`number` of NUMA nodes per socket")
	flags.IntVar(&g.counts.L3sPerSocket, "l3s-per-socket", g.counts.L3sPerSocket, "`number` of L3 caches per socket")
	flags.IntVar(&g.counts.CoresPerSocket, "cores-per-socket", g.counts.CoresPerSocket, "`number` of cores per socket")
	flags.IntVar(&g.counts.Threads, "threads", g.counts.Threads, "`number` of CPUs per core, 1 or 2")
	flags.StringVar(&g.memory, "memory", g.memory, "`amount` of memory per NUMA node")
	flags.StringToIntVar(&g.hugepages, "hugepages", nil, "`pages` per NUMA node by page size, such as 2Mi=512,1Gi=4")
	withoutDefault(command, "hugepages")
}

// addPreset adds the flag for a known machine.
func addPreset(command *cobra.Command, preset *string) {
	command.Flags().StringVar(preset, "preset", "", "`name` of a known machine: "+strings.Join(presetNames(), ", "))
	complete(command, "preset", func(*cobra.Command) []string { return presetNames() })
}

// presetNamed returns the machine that is the value of --preset.
func presetNamed(name string) (fake.Machine, error) {
	for _, preset := range fake.Presets() {
		if preset.Name == name {
			return preset.Machine, nil
		}
	}
	return fake.Machine{}, fmt.Errorf("--preset %q: there is no such machine, allowed are %s", name, strings.Join(presetNames(), ", "))
}

func presetNames() (names []string) {
	for _, preset := range fake.Presets() {
		names = append(names, preset.Name)
	}
	return names
}

// asked reports whether the user set a flag that declares a machine.
func (g *generated) asked(command *cobra.Command) bool {
	return slices.ContainsFunc(append(layoutFlags[:], "preset"), command.Flags().Changed)
}

// machine returns the machine that the flags declare.
func (g *generated) machine(command *cobra.Command) (fake.Machine, error) {
	if command.Flags().Changed("preset") {
		for _, name := range layoutFlags {
			if command.Flags().Changed(name) {
				return fake.Machine{}, fmt.Errorf("--preset %s declares the whole machine: remove --%s", g.preset, name)
			}
		}
		return presetNamed(g.preset)
	}
	machine := g.counts
	machine.Make = fake.Make(slices.Index(g.make.allowed, g.make.value))
	machine.Numbering = fake.Numbering(slices.Index(g.numbering.allowed, g.numbering.value))
	memory, err := bytesOf(g.memory)
	if err != nil {
		return machine, fmt.Errorf("--memory: %w", err)
	}
	machine.MemoryBytes = memory
	for _, size := range sortedNames(g.hugepages) {
		page, err := bytesOf(size)
		if err != nil || g.hugepages[size] < 1 {
			return machine, fmt.Errorf("--hugepages %s=%d: want a size and 1 page or more, such as 2Mi=512", size, g.hugepages[size])
		}
		pages := uint64(g.hugepages[size])
		machine.Hugepages = append(machine.Hugepages, fake.Hugepages{PageBytes: page, Pages: pages, FreePages: pages})
	}
	return machine, machine.Validate()
}

// bytesOf reads an amount of memory.
func bytesOf(text string) (uint64, error) {
	amount, err := resource.ParseQuantity(text)
	if err != nil || amount.Sign() <= 0 {
		return 0, fmt.Errorf("%q: want an amount such as 16Gi", text)
	}
	return uint64(amount.Value()), nil
}

func generateMachineCommand(_ cli, command *cobra.Command) runner {
	g := newGenerated()
	g.addTo(command)
	command.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return func(_ context.Context, args []string) error { return g.write(command, args[0]) }
}

func (g *generated) write(command *cobra.Command, dir string) error {
	machine, err := g.machine(command)
	if err != nil {
		return err
	}
	for _, name := range []string{"sys", "proc"} {
		if path := filepath.Join(dir, name); exists(path) {
			return fmt.Errorf("%s exists already: want a folder without sys and proc", path)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &failure{err}
	}
	if err := machine.Write(dir); err != nil {
		return &failure{err}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func generateSlicesCommand(c cli, command *cobra.Command) runner {
	return slicesOf(c, command, machineOrDeclared(command))
}

// machineOrDeclared adds the flags for a machine, and returns what reads the one that they name
// or declare.
func machineOrDeclared(command *cobra.Command) func() (numa.Machine, error) {
	var root string
	addRoot(command, &root)
	g := newGenerated()
	g.addTo(command)
	return func() (numa.Machine, error) {
		switch {
		case !g.asked(command):
			return readMachine(root)
		case command.Flags().Changed("root"):
			return numa.Machine{}, fmt.Errorf("--root names a machine, and other flags declare one: want only one of the two")
		}
		machine, err := g.machine(command)
		if err != nil {
			return numa.Machine{}, err
		}
		return numa.Read(machine.FS())
	}
}
