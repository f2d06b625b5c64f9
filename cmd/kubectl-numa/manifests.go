package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
)

// manifestFlags are the flags that the commands for classes and for claims have in
// common.
type manifestFlags struct {
	config      manifest.Config
	cores       *choice
	l3          *choice
	placement   *choice
	partition   *choice
	policy      *choice
	coreType    *choice
	exclusivity *choice
	performance manifest.Performance
	interrupts  *choice
	energy      *choice
	latency     int
	tier        int64
	socket      int64
	node        int64
	output      *printer
}

func newManifestFlags() *manifestFlags {
	return &manifestFlags{
		cores:       newOption(deviceclasses.CoresWhole, deviceclasses.CoresThread, deviceclasses.CoresOneThreadPerCore),
		l3:          newOption(deviceclasses.L3Any, deviceclasses.L3Prefer, deviceclasses.L3Require),
		placement:   newOption(deviceclasses.PlacementPack, deviceclasses.PlacementSpread, deviceclasses.PlacementDistribute),
		partition:   newOption(deviceclasses.PartitionRoot, deviceclasses.PartitionIsolated, deviceclasses.PartitionNone),
		policy:      newOption(deviceclasses.MemoryBind, deviceclasses.MemoryPreferred, deviceclasses.MemoryInterleave, deviceclasses.MemoryWeightedInterleave),
		coreType:    newOption(deviceclasses.CoreTypes()...),
		exclusivity: newOption(deviceclasses.Exclusivities()...),
		interrupts:  newOption(deviceclasses.InterruptsAway, deviceclasses.InterruptsOwn),
		energy:      newOption(deviceclasses.EnergyPerformance, deviceclasses.EnergyBalancePerformance, deviceclasses.EnergyBalancePower, deviceclasses.EnergyPower),
		output:      newPrinter(manifestFormats()...),
	}
}

func (m *manifestFlags) addTo(command *cobra.Command) {
	flags := command.Flags()
	m.cores.addTo(command, "cores", "", "how the CPUs share physical cores with other claims (default: the driver's, whole)")
	m.l3.addTo(command, "l3", "", "whether all CPUs must share one level-3 cache (default: the driver's, any)")
	m.placement.addTo(command, "placement", "", "how to choose among CPUs that are equally good (default: the driver's, pack)")
	m.partition.addTo(command, "partition", "", "how the kernel keeps other tasks off the CPUs (default: the driver's)")
	flags.BoolVar(&m.config.Mixed, "mixed", false, "let the containers run on the node's shared CPUs as well")
	m.policy.addTo(command, "memory-policy", "", "memory policy of the containers (default: memory of the NUMA nodes where they run)")
	flags.StringVar(&m.performance.MinFrequency, "min-frequency", "", "lowest `frequency` of the CPUs: such as 2.4GHz, min, base, max or \"1.5x base\"")
	flags.StringVar(&m.performance.MaxFrequency, "max-frequency", "", "highest `frequency` of the CPUs, in the same form")
	for _, flag := range []string{"min-frequency", "max-frequency"} {
		complete(command, flag, func(*cobra.Command) []string {
			return []string{deviceclasses.FrequencyMin, deviceclasses.FrequencyBase, deviceclasses.FrequencyMax}
		})
	}
	flags.StringVar(&m.performance.Governor, "governor", "", "`name` of the frequency governor, such as performance")
	m.energy.addTo(command, "energy-preference", "", "how the processor weighs speed against energy")
	flags.StringVar(&m.performance.MinUncoreFrequency, "min-uncore-frequency", "", "lowest `frequency` of the uncore of the CPUs' dies: such as 2GHz, min or max")
	complete(command, "min-uncore-frequency", func(*cobra.Command) []string {
		return []string{deviceclasses.FrequencyMin, deviceclasses.FrequencyMax}
	})
	flags.IntVar(&m.latency, "idle-latency", 0, "longest time in `microseconds` that an idle CPU may need to wake up; 0 if it must never be idle (default: no limit)")
	m.interrupts.addTo(command, "interrupts", "", "which interrupts the CPUs handle (default: those that they handle now)")
	m.coreType.addTo(command, "core-type", "", "only NUMA nodes with cores of this type")
	m.exclusivity.addTo(command, "exclusivity", "", "only nodes with this exclusivity: who keeps other tasks off the CPUs")
	flags.Int64Var(&m.tier, "memory-tier", 0, "only NUMA nodes with memory of this tier `number`; ordinary memory is tier 4")
	flags.Int64Var(&m.socket, "socket", 0, "only NUMA nodes of this socket `number`")
	flags.Int64Var(&m.node, "numa-node", 0, "only this NUMA node `number`")
	m.output.addTo(command)
}

func (m *manifestFlags) zoneConfig() manifest.Config {
	m.config.Cores, m.config.L3, m.config.Placement = m.cores.value, m.l3.value, m.placement.value
	m.config.Partition, m.config.MemoryPolicy = m.partition.value, m.policy.value
	return m.config
}

func (m *manifestFlags) performanceConfig(command *cobra.Command) manifest.Performance {
	m.performance.EnergyPreference, m.performance.Interrupts = m.energy.value, m.interrupts.value
	if command.Flags().Changed("idle-latency") {
		m.performance.IdleLatency = &m.latency
	}
	return m.performance
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

// manifestFormats returns the formats of commands that print manifests.
func manifestFormats() []string { return []string{formatYAML, formatJSON, formatName, formatPath} }

// manifests returns the document of objects of resource.k8s.io.
func manifests(what string, list ...manifest.Object) document {
	d := objects(what, list)
	d.names = func() (names []objectName) {
		for _, object := range list {
			names = append(names, objectName{object.Kind, resourceapi.GroupName, object.Metadata.Namespace, object.Metadata.Name})
		}
		return names
	}
	return d
}

func (c cli) generateClassCommand() *cobra.Command {
	m := newManifestFlags()
	var locked []string
	command := &cobra.Command{
		Use:   "class NAME",
		Short: "Print a DeviceClass of NUMA nodes",
		Long: `Print a DeviceClass of NUMA nodes.

Claims for the class get NUMA nodes that pass the filters. The class says how
their CPUs and memory are used, and how fast and undisturbed the CPUs are. A
claim can override all of this but the filters, unless --locked names the
field.`,
		Example: c.examples(`
# NUMA nodes whose kernel keeps other tasks off the CPUs, without load balancing
generate class quiet --exclusivity kernel --partition isolated --locked partition,mixed
# one thread per core, and as few level-3 caches as possible
generate class latency --cores one-thread-per-core --l3 prefer
# CPUs at base frequency that wake up at once and handle no interrupts
generate class steady --min-frequency base --max-frequency base --idle-latency 0 --interrupts away --locked idleLatency
# memory on CXL devices
generate class cxl --memory-tier 22 --memory-policy bind`),
		Args: oneArgument("NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			config, performance := m.zoneConfig(), m.performanceConfig(command)
			if err := manifest.Lock(&config, &performance, locked); err != nil {
				return err
			}
			object, err := manifest.Class(args[0], m.filter(command), config, performance)
			if err != nil {
				return err
			}
			return m.output.print(c.stdout, manifests("manifest", object))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	m.addTo(command)
	command.Flags().StringSliceVar(&locked, "locked", nil, "`fields` that claims must not change: "+strings.Join(slices.Concat(deviceclasses.ZoneFields(), deviceclasses.PerformanceFields()), ", "))
	return command
}

// wishFlags are the flags of claims and claim templates.
type wishFlags struct {
	*manifestFlags
	wish      manifest.Wish
	name      manifest.Metadata
	cpus      int64
	memory    string
	hugepages map[string]string
	devices   []string
	ways      int64
	caches    string // class of caches
	bandwidth string
	same      *choice
}

func (c cli) generateClaimCommand(use string) *cobra.Command {
	w := wishFlags{manifestFlags: newManifestFlags(), same: newOption(manifest.SameNode, manifest.SameSocket)}
	kind := map[string]string{"claim": "ResourceClaim", "template": "ResourceClaimTemplate"}[use]
	command := &cobra.Command{
		Use:   use + " NAME",
		Short: "Print a " + kind + " for CPUs, memory and hugepages of NUMA nodes",
		Long: "Print a " + kind + ` for CPUs, memory and hugepages of NUMA nodes.

A share is what one NUMA node gives. With --first-available, the scheduler
takes the first alternative that fits: if no NUMA node has enough left, several
NUMA nodes give equal parts (--parts). With devices, the alternatives say how
near each device is: on the NUMA node of the share, on its socket, or anywhere.`,
		Example: strings.ReplaceAll(c.examples(`
# 8 CPUs and their memory from one NUMA node
generate USE NAME --cpus 8 --memory 16Gi
# the same; else 4 and 4 CPUs of one socket, else of any two NUMA nodes
generate USE NAME --cpus 8 --memory 16Gi --first-available one-node,one-socket,any
# two shares on different NUMA nodes of one socket
generate USE NAME --cpus 4 --memory 8Gi --hugepages 1Gi=2Gi --shares 2 --apart --same socket
# CPUs on the same NUMA node as a device of another driver
generate USE NAME --cpus 4 --memory 8Gi --device gpu.example.com --same node
# CPUs as near to a GPU as there are: on its NUMA node, else on its socket, else anywhere
generate USE NAME --cpus 4 --memory 8Gi --device gpu.dra.numa --first-available one-node,one-socket,any
# CPUs with ways of their level-3 cache to themselves, and less memory bandwidth
generate USE NAME --cpus 8 --memory 16Gi --ways 4 --bandwidth 40%
# fast CPUs that handle no interrupts
generate USE NAME --cpus 4 --memory 8Gi --governor performance --min-frequency max --interrupts away
# two GPUs and CPUs of one socket
generate USE NAME --cpus 4 --memory 8Gi --device gpu.dra.numa=2 --same socket`), "USE NAME", use+" "+map[string]string{"claim": "trainer", "template": "workers"}[use]),
		Args:              oneArgument("NAME"),
		RunE:              func(command *cobra.Command, args []string) error { return w.run(c, command, kind, args[0]) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	w.addTo(command)
	return command
}

func (w *wishFlags) addTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&w.name.Namespace, "namespace", "n", "", "`name` of the namespace (default: none)")
	flags.StringVar(&w.wish.Class, "class", "zone.dra.numa", "`name` of the DeviceClass of NUMA nodes")
	flags.Int64Var(&w.cpus, "cpus", 0, "`number` of CPUs per share")
	flags.StringVar(&w.memory, "memory", "", "`amount` of memory per share, without hugepages")
	flags.StringToStringVar(&w.hugepages, "hugepages", nil, "`amounts` of hugepages per share by page size, such as 2Mi=512Mi,1Gi=4Gi")
	withoutDefault(command, "hugepages")
	flags.IntVar(&w.wish.Shares, "shares", 1, "`number` of shares")
	flags.BoolVar(&w.wish.Apart, "apart", false, "put each share on another NUMA node")
	flags.StringArrayVar(&w.devices, "device", nil, "`class` of a whole device, or CLASS=NUMBER for several; can be repeated")
	flags.Int64Var(&w.ways, "ways", 0, "`number` of ways of the level-3 cache per share (default: that of the pool)")
	flags.StringVar(&w.caches, "cache-class", "cache.dra.numa", "`name` of the DeviceClass of level-3 caches")
	flags.StringVar(&w.bandwidth, "bandwidth", "", "`limit` of the memory bandwidth: of each core, such as 40%, or of a share, such as 20000MBps")
	w.same.addTo(command, "same", "", "put all shares and devices on the same NUMA node or socket")
	flags.StringSliceVar(&w.wish.Places, "first-available", nil, "`alternatives` in this order: one-node, then one-socket, any, or both")
	flags.IntVar(&w.wish.Parts, "parts", 0, "`number` of NUMA nodes that give equal parts, with --first-available (default 2; with --device, 1)")
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
	var object manifest.Object
	if kind == "ResourceClaim" {
		object, err = manifest.Claim(w.name, wish)
	} else {
		object, err = manifest.Template(w.name, wish)
	}
	if err != nil {
		return err
	}
	if err := w.output.print(c.stdout, manifests("manifest", object)); err != nil {
		return err
	}
	return c.noteSockets(wish)
}

// noteSockets says which devices perhaps have no socket. The command does not know what the
// classes of others select.
func (c cli) noteSockets(wish manifest.Wish) error {
	if wish.Same != manifest.SameSocket && !slices.Contains(wish.Places, manifest.OneSocket) {
		return nil
	}
	shipped, err := fs.Glob(deviceclasses.Manifests, "*.yaml")
	if err != nil {
		return &failure{err}
	}
	for _, devices := range wish.Devices {
		if !slices.Contains(shipped, devices.Class+".yaml") {
			c.note("if class %s selects devices of another driver, the claim gets none: only devices of this driver have the attribute %s", devices.Class, deviceclasses.FullName(deviceclasses.AttributeSocket))
		}
	}
	return nil
}

// read returns the wish that the flags describe.
func (w *wishFlags) read(command *cobra.Command) (wish manifest.Wish, err error) {
	wish = w.wish
	wish.CPUs, wish.Same, wish.Config, wish.Filter = w.cpus, w.same.value, w.zoneConfig(), w.filter(command)
	wish.Performance = w.performanceConfig(command)
	if command.Flags().Changed("cpus") && w.cpus < 1 {
		return wish, fmt.Errorf("--cpus %d: want 1 or more", w.cpus)
	}
	if command.Flags().Changed("parts") && len(wish.Places) == 0 {
		return wish, fmt.Errorf("--parts %d: want --first-available as well", wish.Parts)
	}
	if !command.Flags().Changed("parts") {
		wish.Parts = 2
		if len(w.devices) > 0 {
			wish.Parts = 1
		}
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
	wish.Cache, err = w.cache(command)
	return wish, err
}
