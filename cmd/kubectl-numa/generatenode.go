package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// madeNode is the command generate node with its flags.
type madeNode struct {
	cli
	config nodeConfig
	kwok   bool
	output *printer
}

func generateNodeCommand(c cli, command *cobra.Command) runner {
	n := madeNode{cli: c, output: newPrinter(formatYAML, formatJSON, formatPath)}
	read := machineOrDeclared(command)
	n.config.addTo(command)
	command.Flags().BoolVar(&n.kwok, "kwok", false, "have KWOK keep the node ready, and run its pods")
	n.output.addTo(command)
	return func(_ context.Context, args []string) error { return n.run(read, args[0]) }
}

func (n *madeNode) run(read func() (numa.Machine, error), name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("NAME %q: %s", name, problems[0])
	}
	machine, err := read()
	if err != nil {
		return err
	}
	config, err := n.config.read(machine)
	if err != nil {
		return err
	}
	return n.output.print(n.stdout, objects("node", []corev1.Node{nodeOf(name, machine, config, n.kwok)}))
}

// podsOfNode is the kubelet's default.
const podsOfNode = 110

// nodeOf returns the Node of a machine. Its allocatable is without what the driver reserves.
func nodeOf(name string, machine numa.Machine, config driver.Config, kwok bool) corev1.Node {
	node := corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
	}
	if kwok {
		node.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake"}
		node.Labels["type"] = "kwok"
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:  *resource.NewQuantity(int64(machine.Online.Size()), resource.DecimalSI),
		corev1.ResourcePods: *resource.NewQuantity(podsOfNode, resource.DecimalSI),
	}
	allocatable := capacity.DeepCopy()
	allocatable[corev1.ResourceCPU] = *resource.NewQuantity(int64(machine.Online.Difference(config.Reserved).Size()), resource.DecimalSI)
	add := func(list corev1.ResourceList, name corev1.ResourceName, bytes uint64) {
		sum := list[name]
		sum.Add(*resource.NewQuantity(int64(bytes), resource.BinarySI))
		list[name] = sum
	}
	for i := range machine.Zones {
		zone := &machine.Zones[i]
		if zone.MemoryBytes != nil {
			add(capacity, corev1.ResourceMemory, *zone.MemoryBytes)
			add(allocatable, corev1.ResourceMemory, *zone.MemoryBytes-min(*zone.MemoryBytes, config.ReservedMemory.Bytes(zone.ID, "")))
		}
		for _, pool := range zone.Hugepages {
			size := resource.NewQuantity(int64(pool.PageBytes), resource.BinarySI).String()
			name := corev1.ResourceName(corev1.ResourceHugePagesPrefix + size)
			all := pool.TotalPages * pool.PageBytes
			add(capacity, name, all)
			add(allocatable, name, all-min(all, config.ReservedMemory.Bytes(zone.ID, size)))
			// As in the kubelet, hugepages are no memory that pods can ask for.
			memory := allocatable[corev1.ResourceMemory]
			memory.Sub(*resource.NewQuantity(int64(all), resource.BinarySI))
			allocatable[corev1.ResourceMemory] = memory
		}
	}
	node.Status.Capacity, node.Status.Allocatable = capacity, allocatable
	return node
}
