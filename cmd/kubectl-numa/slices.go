package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// published is the command slices with its flags.
type published struct {
	cli
	nodeName    string
	config      nodeConfig
	exclusivity *choice
	output      *printer
}

func slicesCommand(c cli, command *cobra.Command) runner {
	var from origin
	from.addTo(command)
	return slicesOf(c, command, from.read)
}

// slicesOf is for a command that prints the slices of the machine that read returns.
func slicesOf(c cli, command *cobra.Command, read func() (numa.Machine, error)) runner {
	p := published{
		cli:         c,
		exclusivity: newChoice(string(driver.ExclusivityKernel), string(driver.ExclusivityNone)),
		output:      newPrinter(formatYAML, formatJSON, formatPath),
	}
	p.config.addTo(command)
	command.Flags().StringVar(&p.nodeName, "node-name", "", "`name` of the machine's Node; required")
	p.exclusivity.addTo(command, "exclusivity", "", "whether the kernel keeps other tasks off the CPUs of a claim")
	command.Flags().BoolVar(&p.config.lists, "numa-node-lists", false, "print lists of NUMA nodes, as where the feature gate DRAListTypeAttributes is on; numaNodeLists: never in --config prevents that")
	p.output.addTo(command)
	return func(context.Context, []string) error {
		return p.run(read, command.Flags().Changed("exclusivity"))
	}
}

func (p *published) run(read func() (numa.Machine, error), exclusivityGiven bool) error {
	if p.nodeName == "" {
		return errors.New("the name of the node is missing: set --node-name")
	}
	if problems := validation.IsDNS1123Subdomain(p.nodeName); len(problems) > 0 {
		return fmt.Errorf("--node-name %q: %s", p.nodeName, problems[0])
	}
	machine, err := read()
	if err != nil {
		return err
	}
	config, err := p.config.read(machine)
	if err != nil {
		return err
	}
	if config.Exclusivity != "" && exclusivityGiven {
		return fmt.Errorf("--config %q: exclusivity: set it here or with --exclusivity, not in both", p.config.file)
	}
	config.Exclusivity = cmp.Or(config.Exclusivity, driver.Exclusivity(p.exclusivity.value))
	for _, text := range dividing.Notes(machine, config.Dividing()) {
		p.note("%s", text)
	}
	return p.output.print(p.stdout, objects("slices", resourceSlices(p.nodeName, driver.Devices(machine, config, nil))))
}

// resourceSlices returns the ResourceSlices that the driver creates for a node that has
// none yet.
func resourceSlices(nodeName string, devices []resourceapi.Device) (list []resourceapi.ResourceSlice) {
	pool := driver.Resources(nodeName, devices).Pools[nodeName]
	// With leading zeros, the names sort in the order of the slices.
	digits := len(fmt.Sprintf("%x", len(pool.Slices)-1))
	for i := range pool.Slices {
		list = append(list, resourceapi.ResourceSlice{
			TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceSlice"},
			ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("%0*x-%s-%s-", digits, i, driver.Name, nodeName)},
			Spec: resourceapi.ResourceSliceSpec{
				Driver:         driver.Name,
				NodeName:       &nodeName,
				Pool:           resourceapi.ResourcePool{Name: nodeName, Generation: 1, ResourceSliceCount: int64(len(pool.Slices))},
				Devices:        pool.Slices[i].Devices,
				SharedCounters: pool.Slices[i].SharedCounters,
			},
		})
	}
	return list
}
