package main

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// published is what the flags of slices say.
type published struct {
	cli
	root        string
	nodeName    string
	config      nodeConfig
	exclusivity *choice
	output      *choice
}

func (c cli) slicesCommand() *cobra.Command {
	return c.slicesOf(func(_ *cobra.Command, root string) (numa.Machine, error) { return readMachine(root) })
}

// slicesOf prints those of the machine that the flags name.
func (c cli) slicesOf(read func(command *cobra.Command, root string) (numa.Machine, error)) *cobra.Command {
	p := published{
		cli:         c,
		exclusivity: newChoice(string(driver.ExclusivityKernel), string(driver.ExclusivityNone)),
		output:      newChoice("yaml", "json"),
	}
	command := &cobra.Command{
		Use:   "slices",
		Short: "Print the ResourceSlices that the driver would publish for a machine",
		Long: `Print the ResourceSlices that the driver would publish for a machine.

The kernel's part in exclusivity cannot be probed from files, so a flag says it,
unless the NodeConfig does.`,
		Example: c.examples(`
# this machine as the node worker-1
slices --node-name worker-1
# a copy of another one's sys and proc, with what its operator reserves
slices --root /tmp/machine --node-name worker-1 --config node.yaml --node-labels pool=batch -o json`),
		Args: c.flagsOnly,
		RunE: func(command *cobra.Command, _ []string) error {
			return p.run(func() (numa.Machine, error) { return read(command, p.root) }, command.Flags().Changed("exclusivity"))
		},
	}
	addRoot(command, &p.root)
	p.config.addTo(command)
	command.Flags().StringVar(&p.nodeName, "node-name", "", "`name` of the Node whose machine it is; required")
	p.exclusivity.addTo(command, "exclusivity", "", "who keeps other tasks off the CPUs of a claim on that node")
	p.output.addTo(command, "output", "o", "how to print them")
	return command
}

func (p *published) run(read func() (numa.Machine, error), exclusivityGiven bool) error {
	if p.nodeName == "" {
		return fmt.Errorf("node name is missing: set --node-name")
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
		return fmt.Errorf("--config %q: exclusivity: set --exclusivity or this, not both", p.config.file)
	}
	config.Exclusivity = cmp.Or(config.Exclusivity, driver.Exclusivity(p.exclusivity.value))
	list := resourceSlices(p.nodeName, driver.Devices(machine, config, nil))
	if err := p.write(list); err != nil {
		return &failure{fmt.Errorf("write slices: %w", err)}
	}
	return nil
}

// resourceSlices are the objects of the node's pool, as they are created for a
// node that has none yet.
func resourceSlices(nodeName string, devices []resourceapi.Device) (list []resourceapi.ResourceSlice) {
	pool := driver.Resources(nodeName, devices).Pools[nodeName]
	digits := len(fmt.Sprintf("%x", len(pool.Slices)-1)) // names sort as the slices do
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

// write prints several objects as the documents of a YAML stream, or in JSON as
// a List: both can be piped to kubectl create.
func (p *published) write(list []resourceapi.ResourceSlice) error {
	if p.output.value == "json" {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		if len(list) == 1 {
			return encoder.Encode(list[0])
		}
		return encoder.Encode(struct {
			metav1.TypeMeta `json:",inline"`
			Items           []resourceapi.ResourceSlice `json:"items"`
		}{metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, list})
	}
	for i := range list {
		text, err := yaml.Marshal(list[i])
		if err != nil {
			return err
		}
		separator := ""
		if i > 0 {
			separator = "---\n"
		}
		if _, err := fmt.Fprintf(p.stdout, "%s%s", separator, text); err != nil {
			return err
		}
	}
	return nil
}
