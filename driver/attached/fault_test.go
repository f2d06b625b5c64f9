package attached

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	samples "github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// Of the machine, 3b:00.0 has 8 virtual functions, and 3b:00.2 is the first.
func TestAFunctionThatIsBrokenIsTainted(t *testing.T) {
	machine := samples.Machine(t, "intel-2s")
	want := map[string]string{"nic-0000-3b-00-0": "fatal-errors", "nic-0000-3b-00-2": "fatal-errors"}
	whys := map[string]string{
		"0000:3b:00.0": "PCI function 0000:3b:00.0: the link had fatal PCIe errors, 0000:3b:00.0 has counted 2 since the kernel found it",
		"0000:3b:00.2": "PCI function 0000:3b:00.2: the link had fatal PCIe errors, 0000:3b:00.0 has counted 2 since the kernel found it",
	}
	for i := range machine.PCI {
		switch f := &machine.PCI[i]; {
		case f.Address == "0000:3b:00.0":
			f.FatalErrors = 2
		case len(f.NVMe) > 0 && len(want) < 3:
			f.Dead, f.FatalErrors = true, 1
			want[name(deviceclasses.KindNVMe, f.Address)] = "dead"
			whys[f.Address] = "PCI function " + f.Address + " is dead: its NVMe driver has given it up"
		}
	}
	if len(want) < 3 {
		t.Fatal("the machine has no NVMe drive")
	}
	for _, device := range Devices(machine, selected(t, deviceclasses.DeviceSelection{Presets: []string{"nic", "vf", "nvme"}})) {
		taint, has := want[device.Name]
		if !has && device.Attributes[deviceclasses.AttributePhysicalFunction].StringValue != nil && *device.Attributes[deviceclasses.AttributePhysicalFunction].StringValue == "0000:3b:00.0" {
			taint, has = "fatal-errors", true
		}
		wrong := len(device.Taints) > 0
		if wrong {
			wrong = device.Taints[0].Value != taint || device.Taints[0].Key != "dra.numa/fault" || device.Taints[0].Effect != resourceapi.DeviceTaintEffectNoSchedule
		}
		if wrong || has != (len(device.Taints) == 1) {
			t.Errorf("device %s has taints %+v, want %q", device.Name, device.Taints, taint)
		}
		delete(want, device.Name)
	}
	if len(want) > 0 {
		t.Errorf("not published: %v", want)
	}
	for i := range machine.PCI {
		f := &machine.PCI[i]
		_, why := Fault(machine, f)
		if expected, has := whys[f.Address]; has && why != expected || !has && f.PhysFn != "0000:3b:00.0" && why != "" {
			t.Errorf("of %s it says %q, want %q", f.Address, why, expected)
		}
	}
}

func TestAPortCountsErrorsOfWhatIsPluggedIn(t *testing.T) {
	machine := numa.Machine{PCI: []numa.PCIFunction{
		{Address: "0000:3a:00.0", FatalErrors: 1},
		{Address: "0000:3b:00.0", Parent: "0000:3a:00.0"},
		{Address: "0000:3c:00.0", Parent: "0000:3a:01.0"},
	}}
	if taint, why := Fault(machine, &machine.PCI[1]); taint != "fatal-errors" ||
		why != "PCI function 0000:3b:00.0: the link had fatal PCIe errors, 0000:3a:00.0 has counted 1 since the kernel found it" {
		t.Errorf("taint %q: %q", taint, why)
	}
	if taint, why := Fault(machine, &machine.PCI[2]); taint != "" {
		t.Errorf("taint %q of what is plugged in elsewhere: %q", taint, why)
	}
}
