// Package foreign finds, among the CDI specs that others have put on the host, the
// device that stands for a function of the machine. Such a spec knows more than
// device nodes: libraries, hooks, firmware. It only reads.
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

// maxSpecBytes bounds what is read of one file; generated specs of eight GPUs
// have 60 KiB.
const maxSpecBytes = 1 << 20

// Function is what a device may be known by.
type Function struct {
	Names []string // its address and, where it has one, its UUID
	Nodes []string // paths of the device nodes that are its alone
}

// Find returns the fully qualified name of the CDI device that stands for the
// function; "" if there is none. That is the device of one of its names, else one
// that has a node of it and no foreign one, which is another function's: a device
// of all GPUs has both. Of several it is the first by name, so that the answer
// does not change from time to time. Devices of claims are transient and never
// found, and files that are no CDI specs are passed over.
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

// read parses the specs of a directory, if it is there.
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
			continue // its claim has ended meanwhile
		}
		var spec specs.Spec
		if yaml.Unmarshal(data, &spec) == nil && !isTransient(spec.Kind) {
			found = append(found, spec)
		}
	}
	return found, nil
}

// isTransient knows the specs of claims, those of this driver too: all drivers
// call the class so.
func isTransient(kind string) bool { return path.Base(kind) == "claim" }

// reaches reports whether a device has one of the function's nodes, and none that
// is foreign.
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

// isID reports whether runtimes take the text as the name of a device.
func isID(id string) bool {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*$`).MatchString(id)
}

// Validate refuses what is no fully qualified name of a CDI device.
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
