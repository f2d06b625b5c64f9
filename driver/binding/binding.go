// Package binding binds kernel drivers to PCI functions, and gives a function back the
// driver that it had. It uses the sysfs files that
// Documentation/ABI/testing/sysfs-bus-pci describes. It decides nothing about claims.
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

// State is the kernel driver of a function and its driver_override. The zero value is a
// function with neither.
type State struct {
	Driver   string `json:"driver,omitempty"`   // bound now
	Override string `json:"override,omitempty"` // the only driver that the kernel would bind
}

// Validate refuses a text that cannot be the name of a driver.
func (s State) Validate() error {
	for _, name := range []string{s.Driver, s.Override} {
		if !isName(name) {
			return fmt.Errorf("kernel driver %q: want the name of a folder below /sys/bus/pci/drivers", name)
		}
	}
	return nil
}

// isName reports whether sysfs could have a folder with this name. An empty name is
// accepted.
func isName(text string) bool {
	return text != "." && text != ".." && !strings.ContainsFunc(text, func(c rune) bool { return c == '/' || c < ' ' })
}

// Host is a machine whose functions can be bound to drivers. Its methods can be called
// again after an error or a crash: they do not repeat what is already done. They return a
// [BusyError] rather than wait for long.
type Host struct {
	files fs.FS
	proc  fs.FS // the host's processes
	write func(name, text string) error

	mu      sync.Mutex
	pending map[string]*writing // by address: the kernel has not finished this write
}

// writing is a write that is going on. err is set before done is closed.
type writing struct {
	done chan struct{}
	err  error
}

// patience is how long the methods of a Host wait for a write. The kernel finishes most
// at once, but a driver releases a function only when its last user does.
const patience = time.Second

// BusyError says that the kernel has not finished a write yet. It goes on.
type BusyError struct {
	what    string
	writing *writing
}

func (e *BusyError) Error() string {
	return e.what + ": the kernel has not finished: the function may be in use"
}

// Wait waits until the kernel has finished. Then the method that returned the error can
// be called again: it goes on where it was. If the time is over first, Wait returns the
// BusyError.
func (e *BusyError) Wait(limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-e.writing.done:
		if e.writing.err != nil {
			return fmt.Errorf("%s: %w", e.what, e.writing.err)
		}
		return nil
	case <-timer.C:
		return e
	}
}

// On returns the machine whose sysfs is the folder sys in root. Its methods write to
// that folder. proc is the folder of the host's processes; if it is empty, that of root.
func On(root, proc string) *Host {
	h := New(os.DirFS(root), func(name, text string) error {
		file, err := os.OpenFile(filepath.Join(root, name), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = file.WriteString(text)
		return errors.Join(err, file.Close())
	})
	h.proc = os.DirFS(cmp.Or(proc, filepath.Join(root, "proc")))
	return h
}

// New returns a machine with these files, which include sys and proc. write does what write(2)
// to one of the files does.
func New(files fs.FS, write func(name, text string) error) *Host {
	proc, _ := fs.Sub(files, "proc") // the name is valid
	return &Host{files: files, proc: proc, write: write, pending: make(map[string]*writing)}
}

// Read returns the state of a function of the machine below files.
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
	if name := strings.TrimSpace(string(text)); name != "(null)" { // the kernel prints (null) for none
		state.Override = name
	}
	return state, state.Validate()
}

func folder(address string) string { return "sys/bus/pci/devices/" + address }

// gone returns devnode.ErrGone if the function does not exist.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return devnode.ErrGone
	}
	return err
}

// Bind binds the driver to the function, in place of the current driver. It refuses a
// function that the host uses, and a driver that could not use the function; see mayBind.
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
	return h.change(address, now, State{Driver: driver, Override: driver})
}

// Restore gives the function the state that it had before. It does nothing if the
// function is gone.
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
	return h.change(address, now, before)
}

func (h *Host) read(address string) (State, error) {
	if !numa.IsPCIAddress(address) {
		return State{}, fmt.Errorf("PCI address %q: want one such as 0000:3b:00.0", address)
	}
	return Read(h.files, address)
}

// change sets the driver and then the override. The kernel binds a driver that it would not
// choose itself only while the override names it.
func (h *Host) change(address string, now, want State) error {
	if now.Driver != want.Driver {
		if err := h.rebind(address, now, want.Driver); err != nil {
			return err
		}
		now.Override = cmp.Or(want.Driver, now.Override)
	}
	return h.override(address, now, want.Override)
}

func (h *Host) override(address string, now State, driver string) error {
	if now.Override == driver {
		return nil
	}
	return h.set(address, folder(address)+"/driver_override", driver+"\n")
}

// rebind binds another driver, and reads back whether it is bound. If it is "", none is bound
// then.
func (h *Host) rebind(address string, now State, driver string) error {
	if driver != "" {
		if err := h.override(address, now, driver); err != nil {
			return err
		}
	}
	if now.Driver != "" {
		if err := h.set(address, folder(address)+"/driver/unbind", address); err != nil {
			return err
		}
	}
	if driver == "" {
		return nil
	}
	refused := h.set(address, "sys/bus/pci/drivers_probe", address)
	now, err := h.read(address)
	if err == nil && now.Driver == "" { // this file says why the driver refuses the function
		refused = h.set(address, "sys/bus/pci/drivers/"+driver+"/bind", address)
		now, err = h.read(address)
	}
	if err == nil && now.Driver != driver {
		err = fmt.Errorf("PCI function %s: kernel driver %s did not bind, the bound driver is %s: %w", address, driver, cmp.Or(now.Driver, "none"), cmp.Or(refused, errNoReason))
	}
	return err
}

var errNoReason = errors.New("the kernel log may say why")

// set writes to a sysfs file of a function. It returns a BusyError if the kernel does not
// finish soon.
func (h *Host) set(address, name, text string) error {
	busy := &BusyError{fmt.Sprintf("PCI function %s: write %q to %s", address, strings.TrimSpace(text), name), nil}
	var started bool
	busy.writing, started = h.start(address, name, text)
	if !started {
		busy.what = fmt.Sprintf("PCI function %s: the previous write", address)
		return busy
	}
	return busy.Wait(patience)
}

// start starts a write. A function has one write at a time, because a second one would
// also wait in the kernel: started is false if the write is another one.
func (h *Host) start(address, name, text string) (w *writing, started bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.pending[address]; before != nil {
		return before, false
	}
	w = &writing{done: make(chan struct{})}
	h.pending[address] = w
	go func() {
		w.err = h.write(name, text)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.pending, address)
		close(w.done)
	}()
	return w, true
}

// mayBind refuses a driver that is not loaded and a function that the host uses. It
// also refuses a function that has no IOMMU group, because nothing would keep it from
// the memory of others, and a function whose IOMMU group has another function with a
// driver of the host.
func (h *Host) mayBind(address, driver string) error {
	if _, err := fs.Stat(h.files, "sys/bus/pci/drivers/"+driver); err != nil {
		return fmt.Errorf("kernel driver %s is not loaded on this node: modprobe %s", driver, driver)
	}
	members, err := fs.ReadDir(h.files, folder(address)+"/iommu_group/devices")
	if err != nil {
		return errors.New("it is in no IOMMU group: enable the IOMMU in the firmware and on the kernel command line")
	}
	for _, member := range members {
		other, err := Read(h.files, member.Name())
		if err != nil {
			return err
		}
		if member.Name() != address && !slices.Contains([]string{"", driver, "pcieport"}, other.Driver) {
			return fmt.Errorf("PCI function %s with driver %s is in the same IOMMU group: a claim cannot have one function of a group while the host has another", member.Name(), other.Driver)
		}
	}
	user, err := h.userOf(address)
	if err == nil && user != "" {
		err = fmt.Errorf("the host uses it: %s", user)
	}
	return err
}
