package numa

import (
	"fmt"
	"strings"
	"testing"
)

// ofCores returns the rig's files, all in one socket, with one file in the folder of each
// core's lowest CPU.
func ofCores(file string, values ...int) files {
	changes := files{}
	for cpu := range 16 {
		folder := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", cpu)
		changes[folder+"physical_package_id"], changes[folder+"package_cpus_list"] = "0", "0-15"
	}
	for i, value := range values {
		changes[fmt.Sprintf("sys/devices/system/cpu/cpu%d/%s", 2*i, file)] = fmt.Sprint(value)
	}
	return with(changes)
}

func (f files) and(changes files) files {
	for name, text := range changes {
		f[name] = text
	}
	return f
}

func TestCoresAreOfTheKindThatTheMachineTells(t *testing.T) {
	const p, e, s = PerformanceCores, EfficientCores, StandardCores
	standard := []CoreType{s, s, s, s, s, s, s, s}
	for name, row := range map[string]struct {
		files files
		want  []CoreType
	}{
		"nothing": {rigFiles(), standard},
		"units of three kinds": {with(files{
			"sys/devices/cpu_core/cpus": "0-5", "sys/devices/cpu_atom/cpus": "6-11", "sys/devices/cpu_lowpower/cpus": "12-15",
		}), []CoreType{p, p, p, e, e, e, e, e}},
		"a unit without CPUs of a kind": {with(files{"sys/devices/cpu_core/cpus": "0-15"}), []CoreType{p, p, p, p, p, p, p, p}},
		"units before capacities": {
			ofCores("cpu_capacity", 1024, 1024, 100, 100, 100, 100, 100, 100).and(files{"sys/devices/cpu_core/cpus": "0-15"}),
			[]CoreType{p, p, p, p, p, p, p, p},
		},
		"equal capacities": {ofCores("cpu_capacity", 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024), standard},
		"capacities": {
			ofCores("cpu_capacity", 1024, 1024, 446, 446, 446, 446, 446, 446), []CoreType{p, p, e, e, e, e, e, e},
		},
		"capacities before frequencies": {
			ofCores("cpu_capacity", 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024).and(
				ofCores("cpufreq/cpuinfo_max_freq", 9, 9, 1, 1, 1, 1, 1, 1)), standard,
		},
		"frequencies of two sockets": {
			ofCores("cpufreq/cpuinfo_max_freq", 5e6, 5e6, 5e6, 5e6, 2e6, 2e6, 2e6, 2e6).and(files{
				"sys/devices/system/cpu/cpu8/topology/physical_package_id": "1",
				"sys/devices/system/cpu/cpu0/topology/package_cpus_list":   "0-7",
			}), standard,
		},
		"favoured cores": { // 5.0 and 5.5 GHz
			ofCores("cpufreq/cpuinfo_max_freq", 5e6, 5e6, 55e5, 55e5, 5e6, 5e6, 5e6, 5e6), standard,
		},
		"favoured cores of a hybrid": {
			ofCores("cpufreq/cpuinfo_max_freq", 5e6, 5e6, 52e5, 52e5, 39e5, 39e5, 39e5, 39e5), []CoreType{p, p, p, p, e, e, e, e},
		},
		"a frequency is missing": {ofCores("cpufreq/cpuinfo_max_freq", 5e6, 5e6, 5e6, 2e6, 2e6, 2e6, 2e6), standard},
		"the base frequency alone": {
			ofCores("cpufreq/base_frequency", 19e5, 19e5, 19e5, 19e5, 14e5, 14e5, 14e5, 14e5), []CoreType{p, p, p, p, e, e, e, e},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := mustRead(t, row.files)
			var got []CoreType
			for i := range m.Cores {
				got = append(got, m.Cores[i].Type)
			}
			sameJSON(t, "the cores", got, row.want)
			for i, zone := range m.Zones { // of two cores
				want := row.want[2*i]
				if want != row.want[2*i+1] {
					want = MixedCores
				}
				if zone.CoreType != want {
					t.Errorf("zone %d has %s cores, want %s", i, zone.CoreType, want)
				}
			}
		})
	}
}

func TestAFrequencyThatIsNoneIsAnError(t *testing.T) {
	const name = "sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq"
	f := ofCores("cpufreq/cpuinfo_max_freq", 1, 1, 1, 1, 1, 1, 1, 1).and(files{name: "<unknown>"})
	if _, err := Read(f.tree()); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("Read error = %v", err)
	}
}

func TestZonesThatHaveNoneOfTheOnlineCPUs(t *testing.T) {
	f := with(files{"sys/devices/system/cpu/cpu0/cpu_capacity": "1024"})
	for node := range 4 {
		f[fmt.Sprintf("sys/devices/system/node/node%d/cpulist", node)] = "100"
	}
	m := mustRead(t, f)
	if len(m.Cores) != 0 || m.Zones[0].CoreType != "" || m.Zones[0].Nearest != nil || m.Zones[0].Kind != MemoryZone {
		t.Errorf("the machine is %+v", m)
	}
}
