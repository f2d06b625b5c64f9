package inventory

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

// Classes are the device classes by name, in the form that the allocator reads.
type Classes map[string]*resourceapi.DeviceClass

// List returns all classes, in no particular order.
func (c Classes) List() (list []*resourceapi.DeviceClass, err error) {
	for _, class := range c {
		list = append(list, class)
	}
	return list, nil
}

// Get returns the class, or an error that contains its name.
func (c Classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("device class %s does not exist", name)
}
