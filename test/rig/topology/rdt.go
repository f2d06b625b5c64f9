package topology

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"strconv"
)

// Limits of RDT: what CPUID leaf 0x10 can say of ways, and what processors have of
// classes.
const (
	MaxWays    = 32
	MaxClasses = 16
)

// RDT is what each L3 cache of the machine has of Intel's Resource Director Technology,
// which the kernel shows as the file system resctrl.
type RDT struct {
	Ways    int `json:"ways"`    // parts of the cache that a group's mask chooses from, 2-MaxWays
	Classes int `json:"classes"` // groups that the kernel can make, the root's included, 2-MaxClasses
	// Shareable are the ways that devices use as well: shareable_bits of the kernel.
	Shareable  Ways `json:"shareable,omitempty"`
	Bandwidth  bool `json:"bandwidth,omitempty"`  // groups can have a limit of memory bandwidth
	Monitoring bool `json:"monitoring,omitempty"` // there are counters of occupancy and bandwidth
}

// Ways is a mask of an L3 cache's ways. Its text is hexadecimal without a prefix, as the
// kernel writes it: c00.
type Ways uint32

// UnmarshalJSON reads the text of a mask. A number is an error: YAML has read it as
// decimal.
func (w *Ways) UnmarshalJSON(text []byte) error {
	var mask string
	if err := json.Unmarshal(text, &mask); err != nil {
		return fmt.Errorf("mask %s is no string, write it with quotes", text)
	}
	value, err := strconv.ParseUint(mask, 16, 32)
	if err != nil {
		return fmt.Errorf("mask %q is not hexadecimal, such as c00", mask)
	}
	*w = Ways(value)
	return nil
}

func (t Topology) checkRDT() error {
	if t.RDT == nil {
		return nil
	}
	r := t.RDT
	if r.Ways < 2 || r.Ways > MaxWays {
		return fmt.Errorf("topology: rdt.ways: %d is not in 2-%d", r.Ways, MaxWays)
	}
	if r.Classes < 2 || r.Classes > MaxClasses {
		return fmt.Errorf("topology: rdt.classes: %d is not in 2-%d", r.Classes, MaxClasses)
	}
	if bits.Len32(uint32(r.Shareable)) > r.Ways {
		return fmt.Errorf("topology: rdt.shareable: %x has ways that the cache does not have, allowed are those in %x", r.Shareable, uint64(1)<<r.Ways-1)
	}
	return nil
}

// CPUProperties are what the patch of the rig gives to QEMU's -cpu: a list that begins
// with a comma, or nothing for a machine without RDT.
func (t Topology) CPUProperties() string {
	if t.RDT == nil {
		return ""
	}
	return fmt.Sprintf(",rdt-ways=%d,rdt-classes=%d,rdt-shareable=%#x,rdt-bandwidth=%t,rdt-monitoring=%t",
		t.RDT.Ways, t.RDT.Classes, uint32(t.RDT.Shareable), t.RDT.Bandwidth, t.RDT.Monitoring)
}
