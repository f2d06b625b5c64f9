// Package foreign finds the CDI device of a PCI function in the CDI specs that other
// vendors put on the host. Such a spec has more than device nodes: libraries, hooks,
// firmware. The package only reads.
package foreign

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// maxSpecBytes is the size of the largest file that is read. A generated spec for eight
// GPUs has 60 KiB.
const maxSpecBytes = 1 << 20

// Function is what identifies the CDI device of a PCI function.
type Function struct {
	Names []string // its PCI address and, if it has one, its UUID
	Nodes []string // paths of the device nodes that belong to this function only
}

// Find returns the fully qualified name of the CDI device that stands for the
// function, or "" if there is none. A device with one of the function's names comes
// first. Otherwise Find looks for a device that has one of the function's nodes and no
// foreign node, which is a node of another function: a device for all GPUs has both.
// Of several devices it returns the first by name, so the answer is always the same.
// It never returns devices of claims, which are transient, and it skips files that are
// not CDI specs.
func Find(dirs []fs.FS, f Function, foreign func(path string) bool) (id string, err error) {
	var named, reached []string
	for _, dir := range dirs {
		found, err := read(dir)
		if err != nil {
			return "", err
		}
		for _, spec := range found {
			for i := range spec.Devices {
				id := spec.Kind + "=" + spec.Devices[i].Name
				switch {
				case !isID(id):
				case slices.Contains(f.Names, spec.Devices[i].Name):
					named = append(named, id)
				case reaches(spec.Devices[i].ContainerEdits.DeviceNodes, f.Nodes, foreign):
					reached = append(reached, id)
				}
			}
		}
	}
	for _, ids := range [][]string{named, reached} {
		if len(ids) > 0 {
			return slices.Min(ids), nil
		}
	}
	return "", nil
}

// read parses the specs of a directory, if the directory exists.
func read(dir fs.FS) ([]specs.Spec, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, ignoreMissing(err)
	}
	var found []specs.Spec
	for _, entry := range entries {
		if extension := path.Ext(entry.Name()); extension != ".json" && extension != ".yaml" {
			continue
		}
		if info, err := fs.Stat(dir, entry.Name()); err != nil || !info.Mode().IsRegular() || info.Size() > maxSpecBytes {
			continue
		}
		data, err := fs.ReadFile(dir, entry.Name())
		if err != nil {
			if err := ignoreMissing(err); err != nil {
				return nil, err
			}
			continue // removed meanwhile: its claim has ended
		}
		var spec specs.Spec
		if yaml.Unmarshal(data, &spec) == nil && !isTransient(spec.Kind) {
			found = append(found, spec)
		}
	}
	return found, nil
}

// isTransient reports whether a spec belongs to a claim, of this or of another driver:
// all drivers name this class "claim".
func isTransient(kind string) bool { return path.Base(kind) == "claim" }

// reaches reports whether a device has one of the function's own nodes and no foreign
// node.
func reaches(nodes []*specs.DeviceNode, own []string, foreign func(path string) bool) bool {
	hasOwn := false
	for _, node := range nodes {
		if node == nil {
			continue
		}
		path := cmp.Or(node.HostPath, node.Path)
		if foreign(path) {
			return false
		}
		hasOwn = hasOwn || slices.Contains(own, path)
	}
	return hasOwn
}

// isID reports whether runtimes accept id as the fully qualified name of a device.
func isID(id string) bool {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*$`).MatchString(id)
}

// Validate returns an error if id is not the fully qualified name of a CDI device.
func Validate(id string) error {
	if !isID(id) {
		return fmt.Errorf("CDI device %q: want vendor/class=name", id)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
