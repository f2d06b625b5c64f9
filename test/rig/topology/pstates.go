package topology

import (
	"fmt"
	"slices"
)

// Limits of P-states: what one byte of a control register can say, and what no CPU
// exceeds.
const (
	MaxPStates = 16
	MaxMHz     = 10_000
)

// PStates are frequencies that the kernel can choose for each CPU, and states in which it
// can be idle. Firmware describes them in a table of ACPI, with which the kernel's driver
// acpi-cpufreq has a policy for every CPU. They have no effect on the speed of the machine.
type PStates struct {
	MHz []int `json:"mhz"` // the highest first
	// Idle is the time in microseconds that a CPU needs to wake up from its only idle
	// state; 0 if the kernel shall have no driver of idle states.
	Idle int `json:"idle,omitempty"`
}

func (t Topology) checkPStates() error {
	if t.PStates == nil {
		return nil
	}
	p := t.PStates
	if n := len(p.MHz); n < 2 || n > MaxPStates {
		return fmt.Errorf("topology: pstates.mhz: %d frequencies, allowed are 2-%d", n, MaxPStates)
	}
	for i, mhz := range p.MHz {
		if mhz < 1 || mhz > MaxMHz {
			return fmt.Errorf("topology: pstates.mhz[%d]: %d is not in 1-%d", i, mhz, MaxMHz)
		}
		if i > 0 && mhz >= p.MHz[i-1] {
			return fmt.Errorf("topology: pstates.mhz[%d]: %d is not less than the frequency before it, %d", i, mhz, p.MHz[i-1])
		}
	}
	if p.Idle < 0 || p.Idle > 1<<16-1 {
		return fmt.Errorf("topology: pstates.idle: %d is not in 0-%d", p.Idle, 1<<16-1)
	}
	return nil
}

// PStatePort is the control register of all CPUs: the scratch register of a second serial
// port, which keeps what is written to it. The kernel only compares it with the state that
// it has written last for a CPU.
const PStatePort = 0x2f8 + 7

// PStateTable returns the table of ACPI that describes the P-states of all CPUs, with its
// header, as QEMU's -acpitable reads it from a file; nil if the machine has none. QEMU 10.0
// names CPUs \_SB.CPUS.C000, C001, …
func (t Topology) PStateTable() []byte {
	if t.PStates == nil {
		return nil
	}
	states := make([][]byte, len(t.PStates.MHz))
	for i, mhz := range t.PStates.MHz {
		power, latency, value := uint64(10*mhz), uint64(10), uint64(len(states)-i)
		states[i] = packageOf(integer(uint64(mhz)), integer(power), integer(latency), integer(latency), integer(value), integer(value))
	}
	control := register(systemIO, 8, PStatePort)
	objects := slices.Concat(
		named("_PCT", packageOf(control, control)),
		named("_PSS", packageOf(states...)),
		named("_PPC", integer(0)))
	if idle := uint64(t.PStates.Idle); idle > 0 { // state C1, which the instruction HLT enters
		c1 := packageOf(register(fixedHardware, 0, 0), integer(1), integer(idle), integer(1000))
		objects = append(objects, named("_CST", packageOf(integer(1), c1))...)
	}
	var body []byte
	for cpu := range t.CPUs() {
		body = append(body, scope([]string{"_SB_", "CPUS", fmt.Sprintf("C%03X", cpu)}, objects)...)
	}
	return table("SSDT", 2, body)
}
