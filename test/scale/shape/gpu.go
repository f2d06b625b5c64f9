package shape

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// GPUsPerNode is how many GPUs a node has. Each pod gets one.
const GPUsPerNode = 8

// GPUs is what a GPU driver with this name publishes, with a class of the same name.
func GPUs(driver string) Shape {
	s := Shape{
		Name: GPU,
		Means: fmt.Sprintf("As GPU drivers do: %d exclusive devices with 22 attributes and a capacity, and a class that selects the driver and the type. "+
			"A claim is of one GPU.", GPUsPerNode),
		Drivers: []Driver{{Name: driver}},
		Classes: []resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourceapi.DeviceClassSpec{
			Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
				Expression: fmt.Sprintf("device.driver == '%s' && device.attributes['%s'].type == 'gpu'", driver, driver),
			}}},
		}}},
		Claim:   claim(nil, request(driver, capacity{})),
		OneSize: true,
	}
	for i := range GPUsPerNode {
		gpu := resourceapi.Device{
			Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"type":                            {StringValue: ptr.To("gpu")},
				"resource.kubernetes.io/pcieRoot": {StringValue: ptr.To(fmt.Sprintf("pci0000:%d", i))},
			},
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		}
		for k := range 20 {
			gpu.Attributes[resourceapi.QualifiedName(fmt.Sprintf("attribute%d", k))] = resourceapi.DeviceAttribute{StringValue: ptr.To(fmt.Sprintf("value-%d", k))}
		}
		s.Drivers[0].Devices = append(s.Drivers[0].Devices, gpu)
	}
	return s
}

// beside is a claim of a GPU on nodes that another shape is published on, too.
func beside(gpus, other Shape) Shape {
	gpus.Name = Beside
	gpus.Means = "The same, on nodes that this driver publishes, too. The allocator tries drivers in the order of their names, and this one's is the first."
	gpus.Drivers = slices.Concat(other.Drivers, gpus.Drivers)
	return gpus
}
