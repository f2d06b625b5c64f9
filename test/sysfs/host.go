// Package sysfs has doubles of machines whose files in /sys and /proc answer writes as the
// kernel does: [Host] binds PCI functions to drivers, [PowerHost] changes frequencies, idle
// states and interrupts. Machines whose files only say what is there are in package fake.
package sysfs

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

const functionsFolder = "sys/bus/pci/devices"

// Host is a machine on which a PCI function can be bound to another driver. Its files
// show what was written last. It follows Documentation/ABI/testing/sysfs-bus-pci for
// driver_override, bind, unbind and drivers_probe. Its methods may be called
// concurrently, except Refuse.
type Host struct {
	mu      sync.Mutex // of machine and shown
	machine fake.Machine
	shown   fs.FS
	found   map[string]string // declared drivers, by address
	refuses map[string]bool   // drivers that refuse every function
}

// NewHost returns a host on which every function has its declared driver, and no driver
// is overridden.
func NewHost(machine fake.Machine) (*Host, error) {
	if err := machine.Validate(); err != nil {
		return nil, err
	}
	h := &Host{machine: machine, shown: machine.FS(), found: make(map[string]string), refuses: make(map[string]bool)}
	functions, err := fs.ReadDir(h.shown, functionsFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	h.machine.Bound = make(map[string]fake.Binding)
	for _, function := range functions {
		driver, err := fs.ReadLink(h.shown, path.Join(functionsFolder, function.Name(), "driver"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			driver = path.Base(driver)
		}
		h.found[function.Name()] = driver
		h.machine.Bound[function.Name()] = fake.Binding{Driver: driver}
	}
	return h, nil
}

// Refuse makes a driver refuse every function or, if refuse is false, accept functions
// again.
func (h *Host) Refuse(driver string, refuse bool) {
	h.refuses[driver] = refuse
}

// Write behaves like write(2) to a file of sysfs.
func (h *Host) Write(name, text string) error {
	folder, file := path.Split(name)
	device, isDevice := strings.CutPrefix(folder, functionsFolder+"/")
	driver, isDriver := strings.CutPrefix(folder, "sys/bus/pci/drivers/")
	address := strings.TrimSuffix(text, "\n")
	switch {
	case isDevice && file == "driver_override":
		return h.change(strings.TrimSuffix(device, "/"), func(b *fake.Binding) error {
			b.Override = address // here the text is a driver
			return nil
		})
	case isDevice && file == "unbind" && strings.HasSuffix(device, "/driver/"):
		return h.change(address, func(b *fake.Binding) error {
			if b.Driver == "" {
				return syscall.ENOENT // a function without a driver has no such folder
			}
			b.Driver = ""
			return nil
		})
	case folder == "sys/bus/pci/" && file == "drivers_probe":
		return h.change(address, func(b *fake.Binding) error { return h.bind(address, b, "") })
	case isDriver && file == "bind":
		return h.change(address, func(b *fake.Binding) error { return h.bind(address, b, strings.TrimSuffix(driver, "/")) })
	}
	return syscall.EACCES
}

func (h *Host) change(address string, do func(*fake.Binding) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	binding, there := h.machine.Bound[address]
	if !there {
		return syscall.ENODEV
	}
	if err := do(&binding); err != nil {
		return err
	}
	h.machine.Bound = maps.Clone(h.machine.Bound)
	h.machine.Bound[address] = binding
	h.shown = h.machine.FS()
	return nil
}

// bind binds the driver that matches the function: the driver_override, else the
// declared driver. If only is not "", no other driver may be bound.
func (h *Host) bind(address string, b *fake.Binding, only string) error {
	if b.Driver != "" {
		return nil
	}
	matching := h.found[address]
	if b.Override != "" {
		matching = b.Override
	}
	loaded := slices.Contains(h.machine.Drivers, matching) || slices.Contains(slices.Collect(maps.Values(h.found)), matching)
	switch {
	case only != "" && only != matching:
		return syscall.ENODEV
	case !loaded:
		return nil // no such driver is loaded
	case h.refuses[matching]:
		return syscall.EINVAL
	}
	b.Driver = matching
	return nil
}

func (h *Host) files() fs.FS {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown
}

// Open implements [fs.FS].
func (h *Host) Open(name string) (fs.File, error) { return h.files().Open(name) }

// ReadLink implements [fs.ReadLinkFS].
func (h *Host) ReadLink(name string) (string, error) { return fs.ReadLink(h.files(), name) }

// Lstat implements [fs.ReadLinkFS].
func (h *Host) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(h.files(), name) }
