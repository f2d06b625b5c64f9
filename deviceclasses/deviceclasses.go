// Package deviceclasses holds the DeviceClasses that are installed with the driver, and
// the configuration that nodes, classes and claims can have. It defines what can be
// requested by name, and reads configurations strictly. It installs nothing and decides
// nothing about a machine.
//
// It is larger than other packages because all names and formats that users write or read
// are here, so that each has one place. Rules over them are in the packages below it.
package deviceclasses

import (
	"embed"
	"fmt"
	"io/fs"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

// Manifests are the classes as they are installed, one YAML file each, named
// after the class.
//
//go:embed *.yaml
var Manifests embed.FS

// All returns the classes, sorted by name.
func All() ([]resourceapi.DeviceClass, error) {
	files, err := fs.Glob(Manifests, "*.yaml")
	if err != nil {
		return nil, err
	}
	var classes []resourceapi.DeviceClass
	for _, name := range files {
		text, err := fs.ReadFile(Manifests, name)
		if err != nil {
			return nil, err
		}
		var class resourceapi.DeviceClass
		if err := yaml.UnmarshalStrict(text, &class); err != nil {
			return nil, fmt.Errorf("parse device class %s: %w", name, err)
		}
		classes = append(classes, class)
	}
	return classes, nil
}
