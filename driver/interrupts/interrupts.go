// Package interrupts moves interrupts away from the CPUs of claims, or to them, and back. It
// uses the files that Documentation/core-api/irq/irq-affinity.rst describes. Plan is pure;
// the methods of a [Host] read and write. It decides nothing about claims.
package interrupts

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Refusal is an interrupt that the kernel does not move.
type Refusal struct {
	Number int    `json:"number"`
	Name   string `json:"name"` // of its handler
	Why    string `json:"why"`
}

// Reasons for which the kernel does not move an interrupt.
const (
	Managed  = "managed by the kernel"            // EIO; managed interrupts in Documentation/core-api/irq/irq-affinity.rst, and those of the machine itself
	NoVector = "no CPU has a free vector for it"  // ENOSPC
	NoCPU    = "none of the other CPUs is online" // EINVAL
	Pending  = "it moves when it next occurs"     // CONFIG_GENERIC_PENDING_IRQ
)

// Host is a machine whose interrupts can be moved. Its methods can be called again after an
// error or a crash.
type Host struct {
	files fs.FS
	write func(name, text string) error
}

// New returns a machine with these files, which include sys and proc. write does what
// write(2) to one of the files does.
func New(files fs.FS, write func(name, text string) error) *Host { return &Host{files, write} }

// Read returns which CPUs handle interrupts, and the CPUs of the machine.
func (h *Host) Read() (state numa.Interrupts, machine CPUs, err error) {
	for name, cpus := range map[string]*cpuset.Set{"possible": &machine.Possible, "online": &machine.Online} {
		text, err := fs.ReadFile(h.files, "sys/devices/system/cpu/"+name)
		if err != nil {
			return numa.Interrupts{}, CPUs{}, err
		}
		if *cpus, err = cpuset.Parse(string(text)); err != nil {
			return numa.Interrupts{}, CPUs{}, fmt.Errorf("read sys/devices/system/cpu/%s: %w", name, err)
		}
	}
	state, err = numa.ReadInterrupts(h.files)
	return state, machine, err
}

// Began returns the CPUs that handled new interrupts when the kernel began: those of
// irqaffinity= on its command line, else all that the machine can have.
func (h *Host) Began() (cpuset.Set, error) {
	_, machine, err := h.Read()
	if err != nil {
		return cpuset.Set{}, err
	}
	began, asked, err := numa.ReadBootAffinity(h.files)
	if began = began.Intersection(machine.Possible); !asked || began.IsEmpty() {
		began = machine.Possible
	}
	return began, err
}

// Numbers returns the numbers of all interrupts. It is a cheap way to see that there are
// new ones.
func (h *Host) Numbers() ([]int, error) { return numa.InterruptNumbers(h.files) }

// OfFunction returns the numbers of a PCI function's interrupts.
func (h *Host) OfFunction(address string) ([]int, error) {
	return numa.ReadFunctionInterrupts(h.files, address)
}

// Apply writes, and reads back. The interrupts that the kernel does not move are no error.
// An interrupt that has ended is left out.
func (h *Host) Apply(writes []Write) (refused []Refusal, err error) {
	for _, w := range writes {
		why, err := h.apply(w)
		if err != nil {
			return nil, err
		}
		if why != "" {
			refused = append(refused, Refusal{w.Line.Number, w.Line.Name, why})
		}
	}
	return refused, nil
}

// apply returns the kernel's reason not to move an interrupt; "" if it was moved.
func (h *Host) apply(w Write) (why string, err error) {
	name, text := numa.AffinityFile(w.Line.Number), w.Should.String()
	if w.Line.Number == ofDefault {
		name, text = numa.DefaultAffinityFile, w.Should.Mask()
	}
	switch err := h.write(name, text); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, syscall.EIO), errors.Is(err, fs.ErrPermission) && h.isReadOnly(name):
		return Managed, nil
	case errors.Is(err, syscall.ENOSPC):
		return NoVector, nil
	case errors.Is(err, syscall.EINVAL):
		return NoCPU, nil
	case err != nil:
		return "", fmt.Errorf("move interrupts to cpus %s: %w", w.Should, err)
	case w.Line.Number == ofDefault:
		return "", nil
	}
	now, found, err := numa.ReadInterrupt(h.files, w.Line.Number)
	if err == nil && found && !now.Effective.IsSubsetOf(w.Should) {
		why = Pending
	}
	return why, err
}

// isReadOnly reports whether the file has no permission to write. The kernel makes the
// files of interrupts that it does not move like that (register_irq_proc in
// kernel/irq/proc.c). A process with the capability DAC_OVERRIDE can still open them for
// writing, and gets EIO.
func (h *Host) isReadOnly(name string) bool {
	info, err := fs.Stat(h.files, name)
	return err == nil && info.Mode().Perm()&0o222 == 0
}

// Staying returns the interrupts that some CPUs handle although they should not, and those
// of their own that they do not handle yet: what is refused, and what moves later. own are
// numbers of interrupts that the CPUs should handle.
func Staying(state numa.Interrupts, refused []Refusal, demand Demand) (stay []Refusal) {
	reasons := make(map[int]string, len(refused))
	for _, refusal := range refused {
		reasons[refusal.Number] = refusal.Why
	}
	for _, line := range state.Lines {
		handle := line.Effective
		if handle.IsEmpty() {
			handle = line.CPUs
		}
		why := reasons[line.Number]
		if why == "" && !handle.IsSubsetOf(line.CPUs) {
			why = Pending
		}
		if why != "" && handle.Overlaps(demand.CPUs) != slices.Contains(demand.Own, line.Number) {
			stay = append(stay, Refusal{line.Number, line.Name, why})
		}
	}
	return stay
}

// Due returns the writes that may succeed later: those for which no CPU had room.
func Due(writes []Write, refused []Refusal) (due []Write) {
	for _, w := range writes {
		if slices.ContainsFunc(refused, func(r Refusal) bool { return r.Number == w.Line.Number && isPassing(r.Why) }) {
			due = append(due, w)
		}
	}
	return due
}

func isPassing(why string) bool { return why == NoVector || why == NoCPU }

// Retry makes writes that were due, and returns those that still are. An interrupt that has
// ended is left out, and so is one that another program has moved since.
func (h *Host) Retry(due []Write) (left []Write, err error) {
	for i, w := range due {
		now, found, err := h.now(w.Line.Number)
		if err != nil {
			return append(left, due[i:]...), err
		}
		if !found || now.CPUs != w.Line.CPUs {
			continue
		}
		why, err := h.apply(w)
		if err != nil {
			return append(left, due[i:]...), err
		}
		if isPassing(why) {
			left = append(left, w)
		}
	}
	return left, nil
}

// now reads one interrupt, or the default.
func (h *Host) now(number int) (line numa.Interrupt, found bool, err error) {
	if number != ofDefault {
		return numa.ReadInterrupt(h.files, number)
	}
	text, err := fs.ReadFile(h.files, numa.DefaultAffinityFile)
	if err == nil {
		line.CPUs, err = cpuset.ParseMask(string(text))
	}
	return line, err == nil, err
}
