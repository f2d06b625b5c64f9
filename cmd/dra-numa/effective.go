package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/version"
)

// effectiveConfigKind is the kind of the document.
const effectiveConfigKind = "EffectiveConfig"

// effectiveConfig is the configuration of a daemon, and where it comes from.
type effectiveConfig struct {
	metav1.TypeMeta `json:",inline"`

	Version  string `json:"version"` // of this program
	NodeName string `json:"nodeName"`
	// ZoneBy is what a zone is, as in a NodeConfig.
	ZoneBy string `json:"zoneBy"`
	// Exclusivity is the mode of the node: never auto.
	Exclusivity string `json:"exclusivity"`
	// ReservedCPUs are the CPUs that no claim gets, as a list.
	ReservedCPUs string `json:"reservedCPUs"`
	// NUMANodes say what no claim gets of each NUMA node.
	NUMANodes []reservedNode `json:"numaNodes"`
	// NodeConfig are the settings of the file for this node, with those of its profiles. It
	// is null without a file.
	NodeConfig *deviceclasses.NodeSettings `json:"nodeConfig"`
	// Flags are all flags with their values.
	Flags map[string]string `json:"flags"`
}

// reservedNode is what no claim gets of a NUMA node.
type reservedNode struct {
	ID        int                          `json:"id"`
	Memory    resource.Quantity            `json:"reservedMemory"`
	Hugepages map[string]resource.Quantity `json:"reservedHugepages"` // by size of a page, such as 2Mi
}

// runConfig prints the configuration of a daemon.
func runConfig(ctx context.Context, c cli.Call, env func(string) string) error {
	o := options{}
	flags := o.flags(c, env)
	pid := flags.Int("pid", 0, "take the flags of the process with this `id` in this container; a daemon has 1")
	if err := c.ParseAll(flags); err != nil {
		return err
	}
	if *pid != 0 {
		if flags.NFlag() > 1 {
			return cli.Usagef("--pid %d: cannot be combined with other flags", *pid)
		}
		var err error
		if o, flags, err = optionsOf(os.DirFS("/proc"), *pid, env); err != nil {
			return err
		}
	}
	if err := o.validate(); err != nil {
		return err
	}
	o.readOnly = true
	document, err := o.effective(ctx)
	if err != nil {
		return err
	}
	flags.VisitAll(func(f *flag.Flag) {
		if f.Name != "pid" {
			document.Flags[f.Name] = f.Value.String()
		}
	})
	text, err := yaml.Marshal(document)
	if err != nil {
		return err
	}
	_, err = c.Stdout.Write(text)
	return err
}

// optionsOf returns the options of a process, which must be a daemon, and its flags.
func optionsOf(proc fs.FS, pid int, env func(string) string) (o options, flags *flag.FlagSet, err error) {
	arguments, err := argumentsOf(proc, pid)
	if err != nil {
		return options{}, nil, fmt.Errorf("read the flags of process %d: %w", pid, err)
	}
	c := cli.Call{Name: "dra-numa", Args: arguments, Stdout: io.Discard}
	flags = o.flags(c, env)
	if err := c.ParseAll(flags); err != nil {
		return options{}, nil, fmt.Errorf("process %d is no dra-numa daemon: %w", pid, err)
	}
	return o, flags, nil
}

// argumentsOf returns the arguments of a process, without its name.
func argumentsOf(proc fs.FS, pid int) ([]string, error) {
	text, err := fs.ReadFile(proc, strconv.Itoa(pid)+"/cmdline")
	if err != nil {
		return nil, err
	}
	arguments := strings.Split(string(bytes.TrimSuffix(text, []byte{0})), "\x00")
	return arguments[1:], nil
}

// effective returns the document, without flags. It reads the node as the daemon does
// when it starts.
func (o options) effective(ctx context.Context) (effectiveConfig, error) {
	o, err := o.withConfig(ctx)
	if err != nil {
		return effectiveConfig{}, err
	}
	n, err := readNode(o)
	if err != nil {
		return effectiveConfig{}, err
	}
	mode, err := o.mode(ctx, n.config.BootID)
	if err != nil {
		return effectiveConfig{}, err
	}
	c := effectiveConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: deviceclasses.APIVersion, Kind: effectiveConfigKind},
		Version:  version.String(), NodeName: o.nodeName, ZoneBy: o.zoneBy, Exclusivity: string(mode),
		ReservedCPUs: n.config.Reserved.String(), NUMANodes: []reservedNode{}, NodeConfig: o.settings, Flags: make(map[string]string),
	}
	if c.ZoneBy == "" {
		c.ZoneBy = deviceclasses.ZoneByNUMA
	}
	for _, zone := range n.machine.Zones {
		node := reservedNode{ID: zone.ID, Memory: quantity(n.config.ReservedBytes(&zone, "")), Hugepages: make(map[string]resource.Quantity)}
		for _, pool := range zone.Hugepages {
			size := quantity(pool.PageBytes)
			node.Hugepages[size.String()] = quantity(n.config.ReservedBytes(&zone, size.String()))
		}
		c.NUMANodes = append(c.NUMANodes, node)
	}
	return c, nil
}

func quantity(bytes uint64) resource.Quantity {
	return *resource.NewQuantity(int64(bytes), resource.BinarySI)
}

// mode returns the exclusivity of the node. Before a daemon's first start, the kernel was
// not probed.
func (o options) mode(ctx context.Context, bootID string) (driver.Exclusivity, error) {
	probed := driver.ExclusivityNone
	state, err := os.OpenRoot(o.pluginDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err == nil {
		defer state.Close()
		if probed, err = readProbe(ctx, state, bootID); err != nil {
			return "", err
		}
	}
	mode, _, err := o.exclusivity(probed)
	return mode, err
}
