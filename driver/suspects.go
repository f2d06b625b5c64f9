package driver

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Suspect is a driver that may give out CPUs of a node, although its devices do not prove it
// as those of a [Rival] do. Nothing is withdrawn because of it.
type Suspect struct {
	Driver string
	Shares bool       // claims share its devices, and get a part of a capacity cpu or cpus
	Slots  cpuset.Set // CPUs on which its devices are time slots
}

// SuspectsOf returns the drivers of the slices that are suspects, by name. Rivals are none.
func SuspectsOf(all []*resourceapi.ResourceSlice) (suspects []Suspect) {
	found, rivals := make(map[string]Suspect), make(map[string]bool)
	for _, slice := range all {
		name := slice.Spec.Driver
		rivals[name] = rivals[name] || name == Name || RivalOf(slice).CPUs
		suspect := found[name]
		for i := range slice.Spec.Devices {
			suspect.Shares = suspect.Shares || sharesCPUs(&slice.Spec.Devices[i])
			if cpu, isSlot := slotOf(name, &slice.Spec.Devices[i]); isSlot {
				suspect.Slots.Insert(cpu)
			}
		}
		found[name] = suspect
	}
	for name, suspect := range found {
		if suspect.Driver = name; !rivals[name] && suspect.says() {
			suspects = append(suspects, suspect)
		}
	}
	slices.SortFunc(suspects, func(a, b Suspect) int { return strings.Compare(a.Driver, b.Driver) })
	return suspects
}

// slotOf returns the CPU of a device that is a time slot: its driver gives it the attributes
// core and slotIndex. Read in time-share.fabiendupont.io.
func slotOf(driver string, device *resourceapi.Device) (cpu int, isSlot bool) {
	core, _ := spelling.Attribute(driver, device.Attributes, spelling.FullName(driver, "core"))
	if _, has := spelling.Attribute(driver, device.Attributes, spelling.FullName(driver, "slotIndex")); !has || core.IntValue == nil {
		return 0, false
	}
	return int(*core.IntValue), *core.IntValue >= 0 && *core.IntValue < cpuset.MaxCPUs
}

func (s Suspect) says() bool { return s.Shares || !s.Slots.IsEmpty() }

// On returns what remains of the suspicion where claims may get only these CPUs.
func (s Suspect) On(cpus cpuset.Set) (rest Suspect, remains bool) {
	s.Slots = s.Slots.Intersection(cpus)
	return s, s.says()
}

// String says what the driver publishes.
func (s Suspect) String() string {
	slots := fmt.Sprintf("time slots of CPUs %s", s.Slots)
	switch {
	case s.Slots.IsEmpty():
		return "a capacity of CPUs that claims share"
	case s.Shares:
		return "a capacity of CPUs that claims share, and " + slots
	}
	return slots
}

// Suspects returns the suspects of the slices as they are for this node, without the drivers
// that the configuration names.
func (d *Driver) Suspects(all []*resourceapi.ResourceSlice) (suspects []Suspect) {
	grantable := d.Grantable()
	for _, suspect := range SuspectsOf(all) {
		if here, remains := suspect.On(grantable); remains && !slices.Contains(d.config.CPUDrivers, suspect.Driver) {
			suspects = append(suspects, here)
		}
	}
	return suspects
}

// Grantable returns the CPUs that claims may get, whoever has them now.
func (d *Driver) Grantable() (cpus cpuset.Set) {
	for _, zone := range d.shown.Load().machine.Zones {
		cpus = cpus.Union(zone.CPUs)
	}
	return cpus.Difference(d.config.Reserved)
}
