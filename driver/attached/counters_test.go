package attached

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	samples "github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// counted draws who consumes what, in one line.
func counted(devices []resourceapi.Device) string {
	var words []string
	for _, d := range devices {
		for _, consumed := range d.ConsumesCounters {
			amount := consumed.Counters[vfCounter].Value
			words = append(words, fmt.Sprintf("%s:%s/%s", d.Name, consumed.CounterSet, amount.String()))
		}
	}
	return strings.Join(words, " ")
}

func TestAPhysicalFunctionAndItsVirtualOnesExcludeEachOther(t *testing.T) {
	machine := samples.Machine(t, "intel-2s") // 3b:00.0 has 8 virtual functions, 3b:00.1 has 4, a8:00.0 none
	devices := WithCounters(Devices(machine, selected(t, deviceclasses.DeviceSelection{
		Presets: []string{"nic", "vf"}, Exclude: []string{"0000:3b:00.2", "0000:3b:00.3", "0000:3b:00.4", "0000:3b:00.5", "0000:3b:00.6"},
	})))
	want := "nic-0000-3b-00-7:pf-0000-3b-00-0/1 nic-0000-3b-01-0:pf-0000-3b-00-0/1 nic-0000-3b-01-1:pf-0000-3b-00-0/1 " +
		"nic-0000-3b-01-2:pf-0000-3b-00-1/1 nic-0000-3b-01-3:pf-0000-3b-00-1/1 nic-0000-3b-01-4:pf-0000-3b-00-1/1 nic-0000-3b-01-5:pf-0000-3b-00-1/1 " +
		"nic-0000-3b-00-1:pf-0000-3b-00-1/4 nic-0000-3b-00-0:pf-0000-3b-00-0/3"
	if got := counted(devices); got != want {
		t.Errorf("counters are %s\nwant %s", got, want)
	}
	var sets []string
	for _, set := range CounterSets(devices) {
		size := set.Counters[vfCounter].Value
		sets = append(sets, set.Name+"="+size.String())
	}
	if got := strings.Join(sets, " "); got != "pf-0000-3b-00-0=3 pf-0000-3b-00-1=4" {
		t.Errorf("counter sets are %s", got)
	}
}

func TestOnlyWhoCanBeExcludedHasACounter(t *testing.T) {
	for _, preset := range []string{"nic", "vf", "gpu"} {
		devices := WithCounters(Devices(samples.Machine(t, "intel-2s"), selected(t, deviceclasses.DeviceSelection{Presets: []string{preset}})))
		if got := counted(devices); got != "" || CounterSets(devices) != nil || len(devices) == 0 {
			t.Errorf("of %d devices of preset %s %s", len(devices), preset, got)
		}
	}
}

func TestCountersAreWhatTheAPITakes(t *testing.T) {
	samples.Each(t, func(t *testing.T, machine numa.Machine) {
		devices := Devices(machine, everything(t))
		before := counted(devices)
		devices = WithCounters(devices)
		sets := map[string]int64{}
		for _, set := range CounterSets(devices) {
			size := set.Counters[vfCounter].Value
			sets[set.Name] = size.Value()
			if problems := validation.IsDNS1123Label(set.Name); len(problems) > 0 || len(set.Counters) != 1 {
				t.Errorf("counter set %s of %d: %v", set.Name, len(set.Counters), problems)
			}
		}
		for _, d := range devices {
			if len(d.ConsumesCounters) > resourceapi.ResourceSliceMaxDeviceCounterConsumptionsPerDevice {
				t.Errorf("%s consumes %d sets", d.Name, len(d.ConsumesCounters))
			}
			for _, consumed := range d.ConsumesCounters {
				amount := consumed.Counters[vfCounter].Value
				if size := sets[consumed.CounterSet]; amount.Value() < 1 || amount.Value() > size {
					t.Errorf("%s consumes %s of %s, which has %d", d.Name, amount.String(), consumed.CounterSet, size)
				}
			}
		}
		if again := WithCounters(devices); counted(again) != counted(devices) || before != "" {
			t.Errorf("again, counters are %s; before, %s", counted(again), before)
		}
	})
}
