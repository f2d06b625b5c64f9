package main

import (
	"cmp"
	"context"
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
	settings    []string // field=value
	coreType    *choice
	exclusivity *choice
	tier        int64
	socket      int64
	node        int64
	output      *printer
}

func newManifestFlags() *manifestFlags {
	return &manifestFlags{
		coreType:    newOption(deviceclasses.CoreTypes()...),
		exclusivity: newOption(deviceclasses.Exclusivities()...),
		output:      newPrinter(manifestFormats()...),
	}
}

func (m *manifestFlags) addTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&m.settings, "set", nil, "`field=value` of a configuration, such as cores=thread; can be repeated. The fields are "+strings.Join(deviceclasses.SettableFields(), ", "))
	complete(command, "set", func(*cobra.Command) []string { return settings() })
	m.coreType.addTo(command, "core-type", "", "only NUMA nodes with cores of this type")
	m.exclusivity.addTo(command, "exclusivity", "", "only nodes with this exclusivity: who keeps other tasks off the CPUs")
	flags.Int64Var(&m.tier, "memory-tier", 0, "only NUMA nodes with memory of this tier `number`; ordinary memory is tier 4")
	flags.Int64Var(&m.socket, "socket", 0, "only NUMA nodes of this socket `number`")
	flags.Int64Var(&m.node, "numa-node", 0, "only this NUMA node `number`")
	m.output.addTo(command)
}

// settings returns the values of --set, as far as they are a list.
func settings() (values []string) {
	for _, field := range deviceclasses.SettableFields() {
		for _, value := range deviceclasses.ValuesOf(field) {
			values = append(values, field+"="+value)
		}
	}
	return values
}

// config returns the configurations that --set describes.
func (m *manifestFlags) config() (config deviceclasses.RequestConfig, err error) {
	for _, setting := range m.settings {
		field, value, found := strings.Cut(setting, "=")
		if !found {
			return config, fmt.Errorf("--set %q: want field=value", setting)
		}
		if err := config.Set(field, value); err != nil {
			return config, fmt.Errorf("--set %w", err)
		}
	}
	return config, nil
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

// manifests returns the document of objects.
func manifests(what string, list ...manifest.Object) document {
	d := objects(what, list)
	d.names = func() (names []objectName) {
		for _, object := range list {
			names = append(names, objectName{object.Kind, object.GroupVersionKind().Group, object.Metadata.Namespace, object.Metadata.Name})
		}
		return names
	}
	return d
}

func generateClassCommand(c cli, command *cobra.Command) runner {
	m := newManifestFlags()
	var locked []string
	m.addTo(command)
	command.Flags().StringSliceVar(&locked, "locked", nil, "`fields` that claims must not change: "+strings.Join(deviceclasses.LockableFields(), ", "))
	return func(_ context.Context, args []string) error {
		config, err := m.config()
		if err != nil {
			return err
		}
		if err := config.Lock(locked); err != nil {
			return err
		}
		object, err := manifest.Class(args[0], m.filter(command), config)
		if err != nil {
			return err
		}
		return m.output.print(c.stdout, manifests("manifest", object))
	}
}

func generateClassesCommand(c cli, command *cobra.Command) runner {
	output := newPrinter(manifestFormats()...)
	output.addTo(command)
	installed, err := deviceclasses.All()
	var all []string
	for i := range installed {
		all = append(all, installed[i].Name)
	}
	command.ValidArgs, command.ValidArgsFunction = all, nil
	return func(_ context.Context, args []string) error {
		if err != nil {
			return err
		}
		list := installed
		if len(args) > 0 {
			list = nil
		}
		for _, name := range args {
			i := slices.Index(all, name)
			if i < 0 {
				return fmt.Errorf("the chart installs no DeviceClass %q, but %s", name, strings.Join(all, ", "))
			}
			list = append(list, installed[i])
		}
		d := objects("classes", list)
		d.names = func() (names []objectName) {
			for i := range list {
				names = append(names, objectName{list[i].Kind, resourceapi.GroupName, "", list[i].Name})
			}
			return names
		}
		return output.print(c.stdout, d)
	}
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
	zoneBy    *choice
	pairs     pairFlags
}

func newWishFlags() *wishFlags {
	return &wishFlags{
		manifestFlags: newManifestFlags(),
		same:          newOption(manifest.SameNode, manifest.SameSocket),
		zoneBy:        newOption(deviceclasses.ZoneByL3),
	}
}

// generateWishCommand is for claims and claim templates.
func generateWishCommand(c cli, command *cobra.Command) runner {
	w := newWishFlags()
	w.addTo(command)
	return func(_ context.Context, args []string) error { return w.run(c, command, args[0]) }
}

// generateWorkloadCommand is for what has pods, and is named after its kind.
func generateWorkloadCommand(c cli, command *cobra.Command) runner {
	w := newWishFlags()
	w.addTo(command)
	workload := manifest.Workload{Kind: map[string]string{"pod": "Pod", "deployment": "Deployment", "statefulset": "StatefulSet", "job": "Job"}[command.Name()], Replicas: 1}
	command.Flags().StringVar(&workload.Image, "image", "", "`image` of the container; required")
	if workload.Kind != "Pod" {
		command.Flags().Int32Var(&workload.Replicas, "replicas", 1, "`number` of pods")
	}
	return func(_ context.Context, args []string) error {
		w.name.Name, workload.Command = args[0], args[1:]
		wish, err := w.read(command)
		if err != nil {
			return err
		}
		objects, err := workload.Objects(w.name, wish)
		if err != nil {
			return err
		}
		if err := w.output.print(c.stdout, manifests("manifest", objects...)); err != nil {
			return err
		}
		return c.noteSockets(wish)
	}
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
	w.zoneBy.addTo(command, "zone-by", "", "take the CPUs of each share from one level-3 cache, on nodes with this zoneBy; its memory is a request of its own, of the same NUMA node")
	w.pairs.addTo(command)
	w.same.addTo(command, "same", "", "put all shares and devices on the same NUMA node or socket")
	flags.StringSliceVar(&w.wish.Places, "first-available", nil, "`alternatives` in this order: one-node, then one-socket, any, or both")
	flags.IntVar(&w.wish.Parts, "parts", 0, "`number` of NUMA nodes that give equal parts, with --first-available (default 2; with --device, 1)")
	complete(command, "first-available", func(*cobra.Command) []string {
		return []string{"one-node,one-socket,any", "one-node,one-socket", "one-node,any"}
	})
	w.manifestFlags.addTo(command)
}

func (w *wishFlags) run(c cli, command *cobra.Command, name string) error {
	w.name.Name = name
	wish, err := w.read(command)
	if err != nil {
		return err
	}
	var object manifest.Object
	if command.Name() == "claim" {
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
	wish.CPUs, wish.Same, wish.Filter = w.cpus, w.same.value, w.filter(command)
	wish.Filter.L3 = w.zoneBy.value == deviceclasses.ZoneByL3
	if wish.Config, err = w.config(); err != nil {
		return wish, err
	}
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
	if wish.Cache, err = w.cache(command); err != nil {
		return wish, err
	}
	return w.pairs.choose(command.Context(), wish)
}
