package numa

import (
	"fmt"
	"slices"
	"strings"
)

// nvmeDrive reads the model of an NVMe drive and its namespaces;
// Documentation/ABI/stable/sysfs-driver-nvme. A drive with several paths has an entry
// for each path to a namespace, such as nvme0c1n1, but programs open nvme0n1. Before
// Linux 4.5 the block devices belong to the function, not to the controller.
func (t tree) nvmeDrive(folder string, f *PCIFunction) error {
	folders := []string{folder + "/block"}
	for _, controller := range f.NVMe {
		folders = append(folders, folder+"/nvme/"+controller)
	}
	for _, folder := range folders {
		model, found, err := t.text(folder + "/model")
		if err != nil {
			return err
		}
		if found {
			f.Model = model
		}
		names, err := t.entries(folder)
		if err != nil {
			return err
		}
		for _, name := range names {
			if namespace, ok := Namespace(name); ok && !slices.Contains(f.Namespaces, namespace) {
				f.Namespaces = append(f.Namespaces, namespace)
			}
		}
	}
	return nil
}

// Namespace returns the name of the block device that programs open for a name below an
// NVMe controller. It is nvme<S>n<N>, both for that name itself and for a path to it,
// nvme<S>c<C>n<N>. ok is false for any other name.
func Namespace(name string) (namespace string, ok bool) {
	head, number, _ := strings.Cut(strings.TrimPrefix(name, "nvme"), "n")
	subsystem, controller, isPath := strings.Cut(head, "c")
	if !strings.HasPrefix(name, "nvme") || !isNumbered(subsystem, "") || !isNumbered(number, "") || isPath && !isNumbered(controller, "") {
		return "", false
	}
	return fmt.Sprintf("nvme%sn%s", subsystem, number), true
}
