// Package tuning makes the CPUs of claims fast and quiet: frequencies, idle states, the uncore
// of their dies and interrupts. The other CPUs have the default of the NodeConfig. What the
// host had first is on record before it is changed, and is restored.
package tuning
