package numa

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Interrupts is which CPUs handle interrupts; Documentation/core-api/irq/irq-affinity.rst.
type Interrupts struct {
	Default cpuset.Set  // of interrupts that are requested from now on
	Lines   []Interrupt // those that are in use, ascending by number
}

// Interrupt is one interrupt that is in use.
type Interrupt struct {
	Number    int
	Name      string     // of those that handle it, such as nvme0q1; several are separated by commas
	CPUs      cpuset.Set // smp_affinity_list: may handle it
	Effective cpuset.Set // effective_affinity_list: handle it; a part of CPUs. Empty if the kernel does not say
}

// DefaultAffinityFile is the file with the CPUs that may handle interrupts which are
// requested from now on, as a mask.
const DefaultAffinityFile = "proc/irq/default_smp_affinity"

// ReadBootAffinity returns the CPUs of irqaffinity= on the kernel's command line;
// Documentation/admin-guide/kernel-parameters.txt. asked is false if it is not there, or not
// a plain list. As irq_affinity_setup in kernel/irq/irqdesc.c, it adds the CPU that booted.
func ReadBootAffinity(root fs.FS) (cpus cpuset.Set, asked bool, err error) {
	text, err := fs.ReadFile(root, "proc/cmdline")
	if err != nil {
		return cpuset.Set{}, false, gone(err)
	}
	for parameter := range strings.FieldsSeq(string(text)) {
		list, found := strings.CutPrefix(parameter, "irqaffinity=")
		if !found {
			continue
		}
		cpus, err = cpuset.Parse(list) // the last one counts
		if asked = err == nil; asked {
			cpus.Insert(0)
		}
	}
	if !asked {
		cpus = cpuset.Set{}
	}
	return cpus, asked, nil
}

// AffinityFile is the file with the CPUs that may handle an interrupt, as a list.
func AffinityFile(number int) string { return fmt.Sprintf("proc/irq/%d/smp_affinity_list", number) }

// ReadInterrupts reads which CPUs handle interrupts. An interrupt that ends meanwhile is
// left out.
func ReadInterrupts(root fs.FS) (read Interrupts, err error) {
	t := newTree(root)
	if read.Default, err = t.set(DefaultAffinityFile); err != nil {
		return Interrupts{}, err
	}
	numbers, err := InterruptNumbers(root)
	if err != nil {
		return Interrupts{}, err
	}
	for _, number := range numbers {
		line, inUse, err := t.interrupt(number)
		if err != nil {
			return Interrupts{}, err
		}
		if inUse {
			read.Lines = append(read.Lines, line)
		}
	}
	return read, nil
}

// ReadInterrupt reads one interrupt; found is false if it is not in use.
func ReadInterrupt(root fs.FS, number int) (line Interrupt, found bool, err error) {
	return newTree(root).interrupt(number)
}

// InterruptNumbers returns the numbers of all interrupts, also of those that are not in
// use, ascending.
func InterruptNumbers(root fs.FS) (numbers []int, err error) {
	return newTree(root).named("proc/irq")
}

// ReadFunctionInterrupts returns the numbers of the message-signalled interrupts of a PCI
// function, ascending.
func ReadFunctionInterrupts(root fs.FS, address string) (numbers []int, err error) {
	return newTree(root).named("sys/bus/pci/devices/" + address + "/msi_irqs")
}

// named returns the names in a folder that are numbers, ascending.
func (t tree) named(folder string) (numbers []int, err error) {
	names, err := t.entries(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if number, err := strconv.ParseUint(name, 10, 31); err == nil {
			numbers = append(numbers, int(number))
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// interrupt reads one interrupt. An interrupt without a handler keeps the affinity that it
// has, and gets the default one when a driver requests it.
func (t tree) interrupt(number int) (line Interrupt, inUse bool, err error) {
	line.Number = number
	if line.Name, _, err = t.text(fmt.Sprintf("sys/kernel/irq/%d/actions", number)); err != nil || line.Name == "" {
		return Interrupt{}, false, err
	}
	if line.CPUs, err = t.set(AffinityFile(number)); err != nil || line.CPUs.IsEmpty() {
		return Interrupt{}, false, gone(err)
	}
	line.Effective, err = t.set(fmt.Sprintf("proc/irq/%d/effective_affinity_list", number))
	return line, err == nil, gone(err)
}

// gone returns nil for the error of an interrupt that has ended.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
