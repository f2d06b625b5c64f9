// Package binding binds kernel drivers to PCI functions, by the files of sysfs that
// Documentation/ABI/testing/sysfs-bus-pci describes, and gives them back what they
// had. It decides nothing about claims.
package binding

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// State is which driver a function has, and which it would be given. The zero
// value is a function that has none, and of which nobody said anything.
type State struct {
	Driver   string `json:"driver,omitempty"`   // bound now
	Override string `json:"override,omitempty"` // the only one that the kernel would bind
}

// Validate refuses what is no name of a driver.
func (s State) Validate() error {
	for _, name := range []string{s.Driver, s.Override} {
		if !isName(name) {
			return fmt.Errorf("kernel driver %q: want the name of a folder below /sys/bus/pci/drivers", name)
		}
	}
	return nil
}

// isName says whether sysfs could have a folder of that name.
func isName(text string) bool {
	return text != "." && text != ".." && !strings.ContainsFunc(text, func(c rune) bool { return c == '/' || c < ' ' })
}

// Host is a machine whose functions may be bound. Its methods may be called again
// after an error or a crash: what is done already is not done twice.
type Host struct {
	files fs.FS
	write func(name, text string) error

	mu      sync.Mutex
	pending map[string]bool // by address: a write that the kernel has not finished
}

// patience is how long the kernel is waited for. A driver lets go of a function
// when its last user does.
const patience = 20 * time.Second

// On is the machine whose sys is in the folder root, to be written to.
func On(root string) *Host {
	return New(os.DirFS(root), func(name, text string) error {
		file, err := os.OpenFile(filepath.Join(root, name), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = file.WriteString(text)
		return errors.Join(err, file.Close())
	})
}

// New is a machine of whose sys these are the files, and where write is what
// write(2) to one of them does.
func New(files fs.FS, write func(name, text string) error) *Host {
	return &Host{files: files, write: write, pending: make(map[string]bool)}
}

// Read says which driver a function of the machine below files has.
func Read(files fs.FS, address string) (State, error) {
	if _, err := fs.Stat(files, folder(address)); err != nil {
		return State{}, fmt.Errorf("PCI function %s: %w", address, gone(err))
	}
	var state State
	if link, err := fs.ReadLink(files, folder(address)+"/driver"); err == nil {
		state.Driver = path.Base(link)
	}
	text, err := fs.ReadFile(files, folder(address)+"/driver_override")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return State{}, fmt.Errorf("PCI function %s: %w", address, err)
	}
	if name := strings.TrimSpace(string(text)); name != "(null)" { // what the kernel prints of none
		state.Override = name
	}
	return state, state.Validate()
}

func folder(address string) string { return "sys/bus/pci/devices/" + address }

// gone is devnode.ErrGone for a function that is not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return devnode.ErrGone
	}
	return err
}

// Bind has the driver bound to the function, in place of the one that is. One that
// the host uses, or that the driver would not be of use to, is an error.
func (h *Host) Bind(address, driver string) error {
	now, err := h.read(address)
	if err != nil {
		return err
	}
	if now.Driver == driver {
		return nil
	}
	if err := h.mayBind(address, driver); err != nil {
		return fmt.Errorf("PCI function %s: %w", address, err)
	}
	return h.change(address, State{Driver: driver, Override: driver})
}

// Restore has the function as it was. One that is gone has nothing to be restored.
func (h *Host) Restore(address string, before State) error {
	now, err := h.read(address)
	switch {
	case errors.Is(err, devnode.ErrGone):
		return nil
	case err != nil:
		return err
	case now == before:
		return nil
	}
	return h.change(address, before)
}

func (h *Host) read(address string) (State, error) {
	if !numa.IsPCIAddress(address) {
		return State{}, fmt.Errorf("PCI address %q: want one such as 0000:3b:00.0", address)
	}
	return Read(h.files, address)
}

// change goes from what is to what is wanted, and reads back whether it is.
func (h *Host) change(address string, want State) error {
	now, err := h.read(address)
	if err != nil {
		return err
	}
	if now.Override != want.Override {
		if err := h.set(address, folder(address)+"/driver_override", want.Override+"\n"); err != nil {
			return err
		}
	}
	if now.Driver == want.Driver {
		return nil
	}
	if now.Driver != "" {
		if err := h.set(address, folder(address)+"/driver/unbind", address); err != nil {
			return err
		}
	}
	if want.Driver == "" {
		return nil
	}
	refused := h.set(address, "sys/bus/pci/drivers_probe", address)
	if now, err = h.read(address); err == nil && now.Driver == "" { // it was bound by hand
		refused = h.set(address, "sys/bus/pci/drivers/"+want.Driver+"/bind", address)
		now, err = h.read(address)
	}
	if err == nil && now.Driver != want.Driver {
		err = fmt.Errorf("PCI function %s: kernel driver %s does not take it, it has %s: %w", address, want.Driver, cmp.Or(now.Driver, "none"), cmp.Or(refused, errNoReason))
	}
	return err
}

var errNoReason = errors.New("the kernel's log may say why")

// set writes to a file of sysfs for a function.
func (h *Host) set(address, name, text string) error {
	what := fmt.Sprintf("PCI function %s: write %q to %s", address, strings.TrimSpace(text), name)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-h.start(address, name, text):
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("%s: the kernel has not done it after %s: somebody may use the function", what, patience)
	}
}

// start writes, and says when that is done. For one function there is one write at
// a time: a second one would wait in the kernel as well.
func (h *Host) start(address, name, text string) <-chan error {
	h.mu.Lock()
	defer h.mu.Unlock()
	done := make(chan error, 1)
	if h.pending[address] {
		done <- errors.New("the kernel has not done what it was told before: somebody may use the function")
		return done
	}
	h.pending[address] = true
	go func() {
		err := h.write(name, text)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.pending, address)
		done <- err
	}()
	return done
}

// mayBind refuses a driver that is not loaded, a function that no IOMMU keeps from
// the memory of others, and one whose loss the host would feel.
func (h *Host) mayBind(address, driver string) error {
	if _, err := fs.Stat(h.files, "sys/bus/pci/drivers/"+driver); err != nil {
		return fmt.Errorf("kernel driver %s is not loaded on this node: modprobe %s", driver, driver)
	}
	members, err := fs.ReadDir(h.files, folder(address)+"/iommu_group/devices")
	if err != nil {
		return errors.New("it is in no IOMMU group: turn the IOMMU on, on the kernel's command line and in the firmware")
	}
	for _, member := range members {
		other, err := Read(h.files, member.Name())
		if err != nil {
			return err
		}
		if member.Name() != address && !slices.Contains([]string{"", driver, "pcieport"}, other.Driver) {
			return fmt.Errorf("PCI function %s with driver %s is in the same IOMMU group: none of it can be had while the host has another part", member.Name(), other.Driver)
		}
	}
	user, err := h.userOf(address)
	if err == nil && user != "" {
		err = fmt.Errorf("the host uses it: %s", user)
	}
	return err
}

// userOf says what of the host uses a function; "" if nothing that sysfs tells.
// What cannot be read is an error: it may be in use.
func (h *Host) userOf(address string) (user string, err error) {
	access, err := devnode.Read(h.files, address)
	if err != nil {
		return "", fmt.Errorf("whether the host uses it: %w", err)
	}
	for _, node := range access.Nodes {
		if node.Type == devnode.TypeBlock {
			if user := h.userOfDisk(path.Base(node.Path)); user != "" {
				return user, nil
			}
		}
	}
	for _, name := range access.Interfaces {
		uppers, _ := fs.Glob(h.files, folder(address)+"/net/"+name+"/upper_*")
		if len(uppers) > 0 {
			return fmt.Sprintf("network interface %s is part of %s", name, strings.TrimPrefix(path.Base(uppers[0]), "upper_")), nil
		}
	}
	if numbers, err := fs.ReadFile(h.files, folder(address)+"/sriov_numvfs"); err == nil && strings.TrimSpace(string(numbers)) != "0" {
		return "it has virtual functions", nil
	}
	return "", nil
}

// userOfDisk looks for what is mounted or made of a disk and of its partitions.
func (h *Host) userOfDisk(disk string) string {
	parts, _ := fs.Glob(h.files, "sys/class/block/"+disk+"/"+disk+"*/partition")
	names := []string{disk}
	for _, part := range parts {
		names = append(names, path.Base(path.Dir(part)))
	}
	for _, name := range names {
		if holders, _ := fs.ReadDir(h.files, "sys/class/block/"+name+"/holders"); len(holders) > 0 {
			return fmt.Sprintf("disk %s is part of %s", name, holders[0].Name())
		}
		for _, kind := range []string{"ext4", "xfs", "f2fs"} {
			if _, err := fs.Stat(h.files, "sys/fs/"+kind+"/"+name); err == nil {
				return fmt.Sprintf("disk %s has a file system that is mounted", name)
			}
		}
		if mounted, _ := fs.Glob(h.files, "sys/fs/btrfs/*/devices/"+name); len(mounted) > 0 {
			return fmt.Sprintf("disk %s has a file system that is mounted", name)
		}
	}
	return ""
}
