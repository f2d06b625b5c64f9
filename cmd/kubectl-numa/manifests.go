package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
)

// manifestFlags are those of classes and claims.
type manifestFlags struct {
	config      manifest.Config
	cores       *choice
	l3          *choice
	placement   *choice
	partition   *choice
	policy      *choice
	coreType    *choice
	exclusivity *choice
	tier        int64
	socket      int64
	node        int64
	output      *choice
}

func newManifestFlags() *manifestFlags {
	return &manifestFlags{
		cores:       newOption(deviceclasses.CoresWhole, deviceclasses.CoresThread, deviceclasses.CoresOneThreadPerCore),
		l3:          newOption(deviceclasses.L3Any, deviceclasses.L3Prefer, deviceclasses.L3Require),
		placement:   newOption(deviceclasses.PlacementPack, deviceclasses.PlacementSpread, deviceclasses.PlacementDistribute),
		partition:   newOption(deviceclasses.PartitionRoot, deviceclasses.PartitionIsolated, deviceclasses.PartitionNone),
		policy:      newOption(deviceclasses.MemoryBind, deviceclasses.MemoryPreferred, deviceclasses.MemoryInterleave, deviceclasses.MemoryWeightedInterleave),
		coreType:    newOption("standard", "performance", "efficient", "mixed"),
		exclusivity: newOption("kernel", "cooperative", "none"),
		output:      newChoice("yaml", "json"),
	}
}

func (m *manifestFlags) addTo(command *cobra.Command) {
	flags := command.Flags()
	m.cores.addTo(command, "cores", "", "how the CPUs share physical cores with others (default: as the driver does, whole)")
	m.l3.addTo(command, "l3", "", "how much it matters that the CPUs share one level-3 cache (default: as the driver does, any)")
	m.placement.addTo(command, "placement", "", "which CPUs it is where several would do (default: as the driver does, pack)")
	m.partition.addTo(command, "partition", "", "how the kernel keeps other tasks off the CPUs (default: as the driver does)")
	flags.BoolVar(&m.config.Mixed, "mixed", false, "let the containers run on the node's shared CPUs, too")
	m.policy.addTo(command, "memory-policy", "", "where the containers' memory comes from (default: where they run)")
	m.coreType.addTo(command, "core-type", "", "only NUMA nodes with such cores")
	m.exclusivity.addTo(command, "exclusivity", "", "only nodes where others are kept off the CPUs so")
	flags.Int64Var(&m.tier, "memory-tier", 0, "only NUMA nodes with memory of the tier with this `number`; ordinary memory is 4")
	flags.Int64Var(&m.socket, "socket", 0, "only NUMA nodes of the socket with this `number`")
	flags.Int64Var(&m.node, "numa-node", 0, "only the NUMA node with this `number`")
	m.output.addTo(command, "output", "o", "how to print it")
}

func (m *manifestFlags) zoneConfig() manifest.Config {
	m.config.Cores, m.config.L3, m.config.Placement = m.cores.value, m.l3.value, m.placement.value
	m.config.Partition, m.config.MemoryPolicy = m.partition.value, m.policy.value
	return m.config
}

func (m *manifestFlags) filter(command *cobra.Command) manifest.Filter {
	number := func(flag string, value int64) *int64 {
		if command.Flags().Changed(flag) {
			return &value
		}
		return nil
	}
	return manifest.Filter{
		CoreType: m.coreType.value, Exclusivity: m.exclusivity.value,
		MemoryTier: number("memory-tier", m.tier), Socket: number("socket", m.socket), Node: number("numa-node", m.node),
	}
}

// print writes the manifest; an error of making it is about the flags.
func (c cli) print(object manifest.Object, err error, format string) error {
	if err != nil {
		return err
	}
	if err := write(c.stdout, format, object, nil); err != nil {
		return &failure{fmt.Errorf("write manifest: %w", err)}
	}
	return nil
}

func (c cli) generateClassCommand() *cobra.Command {
	m := newManifestFlags()
	command := &cobra.Command{
		Use:   "class NAME",
		Short: "Print a DeviceClass of NUMA nodes",
		Long: `Print a DeviceClass of NUMA nodes.

Claims for it get NUMA nodes that pass the filters, used as it says; what a claim
says itself of --cores, --l3, --placement, --partition, --mixed and
--memory-policy overrides the class's.`,
		Example: c.examples(`
# NUMA nodes whose kernel keeps others off the CPUs, without load balancing
generate class quiet --exclusivity kernel --partition isolated
# one thread of each core, and as few level-3 caches as possible
generate class latency --cores one-thread-per-core --l3 prefer
# memory of CXL cards
generate class cxl --memory-tier 22 --memory-policy bind`),
		Args: oneArgument("NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			object, err := manifest.Class(args[0], m.filter(command), m.zoneConfig())
			return c.print(object, err, m.output.value)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	m.addTo(command)
	return command
}

// wishFlags are what a claim asks for.
type wishFlags struct {
	*manifestFlags
	wish      manifest.Wish
	name      manifest.Metadata
	cpus      int64
	memory    string
	hugepages map[string]string
	devices   []string
	same      *choice
}

func (c cli) generateClaimCommand(use string) *cobra.Command {
	w := wishFlags{manifestFlags: newManifestFlags(), same: newOption(manifest.SameNode, manifest.SameSocket)}
	kind := map[string]string{"claim": "ResourceClaim", "template": "ResourceClaimTemplate"}[use]
	command := &cobra.Command{
		Use:   use + " NAME",
		Short: "Print a " + kind + " for CPUs, memory and hugepages of NUMA nodes",
		Long: "Print a " + kind + ` for CPUs, memory and hugepages of NUMA nodes.

A share is what one NUMA node gives. With --first-available, what no NUMA node has
left is taken in equal parts from several: the scheduler takes the first of the
alternatives that a node has.`,
		Example: strings.ReplaceAll(c.examples(`
# 8 CPUs and their memory from one NUMA node
generate USE NAME --cpus 8 --memory 16Gi
# the same, else 4 and 4 of one socket, else of any two NUMA nodes
generate USE NAME --cpus 8 --memory 16Gi --first-available one-node,one-socket,any
# two shares on different NUMA nodes of one socket
generate USE NAME --cpus 4 --hugepages 1Gi=2Gi --shares 2 --apart --same socket
# CPUs on the NUMA node of a device of another driver
generate USE NAME --cpus 4 --device gpu.example.com --same node`), "USE NAME", use+" "+map[string]string{"claim": "trainer", "template": "workers"}[use]),
		Args:              oneArgument("NAME"),
		RunE:              func(command *cobra.Command, args []string) error { return w.run(c, command, kind, args[0]) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	w.addTo(command)
	return command
}

func (w *wishFlags) addTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&w.name.Namespace, "namespace", "n", "", "`name` of the namespace (default: it does not say)")
	flags.StringVar(&w.wish.Class, "class", "zone.dra.numa", "`name` of the class of NUMA nodes")
	flags.Int64Var(&w.cpus, "cpus", 0, "`number` of CPUs of a share")
	flags.StringVar(&w.memory, "memory", "", "`amount` of memory of a share, hugepages not included")
	flags.StringToStringVar(&w.hugepages, "hugepages", nil, "`amounts` of hugepages of a share by their size, such as 2Mi=512Mi,1Gi=4Gi")
	flags.IntVar(&w.wish.Shares, "shares", 1, "`number` of shares")
	flags.BoolVar(&w.wish.Apart, "apart", false, "each share on a NUMA node of its own")
	flags.StringArrayVar(&w.devices, "device", nil, "`class` of a whole device, or CLASS=NUMBER; may be repeated")
	w.same.addTo(command, "same", "", "what all shares and devices are on the same of")
	flags.StringSliceVar(&w.wish.Places, "first-available", nil, "`alternatives` in their order: one-node, then one-socket or any or both")
	flags.IntVar(&w.wish.Parts, "parts", 2, "`number` of NUMA nodes that share what one does not have, with --first-available")
	complete(command, "first-available", func(*cobra.Command) []string {
		return []string{"one-node,one-socket,any", "one-node,one-socket", "one-node,any"}
	})
	w.manifestFlags.addTo(command)
}

func (w *wishFlags) run(c cli, command *cobra.Command, kind, name string) error {
	w.name.Name = name
	wish, err := w.read(command)
	if err != nil {
		return err
	}
	if kind == "ResourceClaim" {
		object, err := manifest.Claim(w.name, wish)
		return c.print(object, err, w.output.value)
	}
	object, err := manifest.Template(w.name, wish)
	return c.print(object, err, w.output.value)
}

// read is the wish that the flags say.
func (w *wishFlags) read(command *cobra.Command) (wish manifest.Wish, err error) {
	wish = w.wish
	wish.CPUs, wish.Same, wish.Config, wish.Filter = w.cpus, w.same.value, w.zoneConfig(), w.filter(command)
	if command.Flags().Changed("cpus") && w.cpus < 1 {
		return wish, fmt.Errorf("--cpus %d: want 1 or more", w.cpus)
	}
	if command.Flags().Changed("parts") && len(wish.Places) == 0 {
		return wish, fmt.Errorf("--parts %d: nothing is parted without --first-available", wish.Parts)
	}
	if w.memory != "" {
		if wish.Memory, err = resource.ParseQuantity(w.memory); err != nil || wish.Memory.Sign() <= 0 {
			return wish, fmt.Errorf("--memory %q: want an amount such as 16Gi", w.memory)
		}
	}
	for _, size := range sortedNames(w.hugepages) {
		amount, err := resource.ParseQuantity(w.hugepages[size])
		if err != nil {
			return wish, fmt.Errorf("--hugepages %s=%s: want an amount such as 2Mi=512Mi", size, w.hugepages[size])
		}
		if wish.Hugepages == nil {
			wish.Hugepages = make(map[string]resource.Quantity)
		}
		wish.Hugepages[size] = amount
	}
	for _, text := range w.devices {
		class, count, _ := strings.Cut(text, "=")
		number, err := strconv.ParseInt(cmp.Or(count, "1"), 10, 32)
		if err != nil || number < 1 || class == "" {
			return wish, fmt.Errorf("--device %q: want CLASS or CLASS=NUMBER", text)
		}
		wish.Devices = append(wish.Devices, manifest.Devices{Class: class, Count: number})
	}
	return wish, nil
}
