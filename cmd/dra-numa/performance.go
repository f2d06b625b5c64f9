package main

import (
	"cmp"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
)

// tuningOf returns how this node makes CPUs fast and quiet for claims; nil if it does not.
func tuningOf(o options) *driver.Tuning {
	if cmp.Or(o.performance, deviceclasses.AllowNone) == deviceclasses.AllowNone {
		return nil
	}
	files := kernelfs.Dir(o.machineRoot)
	return &driver.Tuning{
		Frequencies: cpufreq.On(files, o.performanceRoot),
		Interrupts:  interrupts.On(files, o.performanceRoot),
		ClaimsTune:  o.performance == deviceclasses.AllowClaim,
	}
}

// interruptPeriod bounds how long an interrupt that another program has moved stays on the
// CPUs of a claim. New interrupts are seen earlier.
const interruptPeriod = 30 * time.Second

// repairPerformance keeps the CPUs of claims as they should be.
func (w *watcher) repairPerformance() error {
	all := time.Since(w.moved) >= interruptPeriod
	if all {
		w.moved = time.Now()
	}
	return w.core.RepairPerformance(all)
}
