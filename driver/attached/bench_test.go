package attached

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	samples "github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// BenchmarkDevices publishes anew, as after each change of the machine: of 47
// functions and their ports, and of 4 cards with 126 virtual functions each.
func BenchmarkDevices(b *testing.B) {
	cards := fake.Machine{CoresPerSocket: 8}
	for i, address := range []string{"0000:11:00.0", "0000:21:00.0", "0000:31:00.0", "0000:41:00.0"} {
		cards.PCI = append(cards.PCI, fake.ConnectX(address, 0, "ens", i, 126))
	}
	many, err := numa.Read(cards.FS())
	if err != nil {
		b.Fatal(err)
	}
	for name, machine := range map[string]numa.Machine{"dgx-h100": samples.Machine(b, "dgx-h100"), "504 virtual functions": many} {
		selection := selected(b, deviceclasses.DeviceSelection{Presets: deviceclasses.Presets(), Exclude: []string{"0000:21:00.0"}})
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if devices := WithCounters(Devices(machine, selection)); len(devices) < 44 || CounterSets(devices) == nil {
					b.Fatal(len(devices))
				}
			}
		})
	}
}
