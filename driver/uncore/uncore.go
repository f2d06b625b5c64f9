// Package uncore sets the lowest frequency of the uncore of dies, and gives them back what
// they had. It uses the files that
// Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst describes. Resolve, Plan
// and Settled are pure; the methods of a [Host] read and write. It decides nothing about
// claims.
package uncore

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/driver/effect"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// ID names a die.
type ID struct {
	Package int `json:"package"`
	Die     int `json:"die"` // in its package
}

func (id ID) String() string { return fmt.Sprintf("die %d of package %d", id.Die, id.Package) }

func idOf(die numa.UncoreDie) ID { return ID{die.Package, die.Die} }

// Demand is what a claim asks of a die.
type Demand struct {
	ID
	WantKHz int `json:"wantKHz"`          // at least, > 0
	GotKHz  int `json:"gotKHz,omitempty"` // lowest frequency of the die once it was set for the claim; 0 until it is known
}

// Held is a die whose lowest frequency claims decide: what it had before, and what it has
// because of them. Claims may begin and end in any order, so this is a state of the node, not
// of a claim.
type Held struct {
	ID
	FirstKHz int `json:"firstKHz"`         // before claims had a say, > 0
	WasKHz   int `json:"wasKHz,omitempty"` // before the last write; 0 when GotKHz is known
	WantKHz  int `json:"wantKHz"`          // that was written last, > 0
	GotKHz   int `json:"gotKHz,omitempty"` // what the kernel made of it; 0 until it is known
}

func (h Held) value() effect.Value[int] {
	return effect.Value[int]{First: h.FirstKHz, Was: h.WasKHz, Asked: h.WantKHz, Got: h.GotKHz}
}

// Validate refuses what Plan does not return.
func (h Held) Validate() error {
	if h.Package < 0 || h.Die < 0 || h.FirstKHz <= 0 || h.WantKHz <= 0 || h.WasKHz < 0 || h.GotKHz < 0 {
		return fmt.Errorf("%d kHz of %s, and %d kHz first", h.WantKHz, h.ID, h.FirstKHz)
	}
	return nil
}

// Validate refuses what Resolve does not return.
func (d Demand) Validate() error {
	if d.Package < 0 || d.Die < 0 || d.WantKHz <= 0 || d.GotKHz < 0 {
		return fmt.Errorf("uncore: %d kHz of %s", d.WantKHz, d.ID)
	}
	return nil
}

// Host is a machine whose uncore frequency can be set. Its methods can be called again after
// an error or a crash.
type Host struct {
	files fs.FS
	write func(name, text string) error
}

// New returns a machine with these files, which include sys. write does what write(2) to
// one of the files does.
func New(files fs.FS, write func(name, text string) error) *Host { return &Host{files, write} }

// Read returns the dies of the machine; none if the kernel has no uncore driver.
func (h *Host) Read() ([]numa.UncoreDie, error) { return numa.ReadUncoreDies(h.files) }

// Apply writes the lowest frequencies.
func (h *Host) Apply(writes []Write) error {
	for _, w := range writes {
		if err := h.write(numa.UncoreMinFile(w.Package, w.Die), strconv.Itoa(w.KHz)); err != nil {
			return fmt.Errorf("uncore of %s: write %d: %w", w.ID, w.KHz, err)
		}
	}
	return nil
}

// Probe completes what is known of dies after a crash: what the kernel made of the last write
// to them. What is known of the others stays.
func (h *Host) Probe(held []Held, dies []numa.UncoreDie) (probed []Held, err error) {
	probed = slices.Clone(held)
	for i := range probed {
		one := &probed[i]
		shown := minimumOf(dies, one.ID)
		if shown == 0 || one.GotKHz != 0 {
			continue
		}
		apply := func(kHz int) (int, error) {
			if err := h.Apply([]Write{{one.ID, kHz}}); err != nil {
				return 0, err
			}
			now, err := h.Read()
			return minimumOf(now, one.ID), err
		}
		if one.GotKHz, err = one.value().Probe(shown, apply); err != nil {
			return nil, err
		}
	}
	return probed, nil
}

// minimumOf returns the lowest frequency of a die in kHz; 0 if it is not among the dies.
func minimumOf(dies []numa.UncoreDie, id ID) int {
	i := slices.IndexFunc(dies, func(die numa.UncoreDie) bool { return idOf(die) == id })
	if i < 0 {
		return 0
	}
	return dies[i].MinKHz
}
